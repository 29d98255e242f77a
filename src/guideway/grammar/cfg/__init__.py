"""Lowers context-free rules to a `Grammar` for the kernel. Exact for every context-free grammar.

terms.py           the right sides of rules: text, references, sequences, choices, repetition, exceptions, grammars
productions.py     terms -> productions
scc.py             strongly connected components, callees first
fixpoint.py        which rules can terminate and which can be empty: one worklist
epsilon.py         elimination of empty productions
left_recursion.py  elimination of left recursion (left-corner transform)
regular_rules.py   regular rules -> one expression
expressions.py     emptiness and equality of expressions
lowering.py        all steps in order; which rules are reachable and productive
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
