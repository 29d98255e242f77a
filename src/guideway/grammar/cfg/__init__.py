"""Lowers context-free rules to an equivalent `Grammar`, without empty productions and left recursion.

terms.py           the right sides of rules: texts, references, concatenation, alternation, repetition, exceptions
productions.py     terms -> productions
embedded.py        removal of the empty text from embedded grammars
scc.py             strongly connected components, callees first
fixpoint.py        a least fixpoint over productions: which variables derive a text, which the empty text
epsilon.py         elimination of empty productions
left_recursion.py  elimination of left recursion (left-corner transform)
regular_rules.py   variables with a regular language -> expressions
expressions.py     nullability and equality of expressions
lowering.py        all steps in order; which rules are unreachable or derive no text
writing.py         productions -> nodes
"""

from __future__ import annotations

from guideway.grammar.cfg.lowering import Lowered, lower
from guideway.grammar.cfg.terms import (
    Alternation,
    Concatenation,
    Embedded,
    Except,
    Ref,
    Repetition,
    Rule,
    Term,
    Text,
    parts_first,
    parts_of,
)

__all__ = [
    "Alternation",
    "Concatenation",
    "Embedded",
    "Except",
    "Lowered",
    "Ref",
    "Repetition",
    "Rule",
    "Term",
    "Text",
    "lower",
    "parts_first",
    "parts_of",
]
