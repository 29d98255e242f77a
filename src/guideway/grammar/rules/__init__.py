"""Context-free rules -> a `Grammar` that the kernel can walk: exact for every context-free grammar.

terms.py        what a rule can say: text, other rules, series, choices, repetition, exceptions, whole grammars
productions.py  terms -> productions
knots.py        which rules refer to each other, callees first
reaching.py     which rules can end, which can be empty: one worklist
empties.py      empty texts taken out of productions
corners.py      left recursion turned round
folding.py      what is regular becomes one expression
expressions.py  what is asked of expressions: empty texts, which are equal
lowering.py     all of it in order, group by group; which rules are reached, and which can end
writing.py      productions -> nodes
"""

from __future__ import annotations

from .lowering import Lowered, lower
from .terms import Choice, Except, Ref, Rule, Series, Term, Text, Times, Whole, parts_first, parts_of

__all__ = [
    "Choice",
    "Except",
    "Lowered",
    "Ref",
    "Rule",
    "Series",
    "Term",
    "Text",
    "Times",
    "Whole",
    "lower",
    "parts_first",
    "parts_of",
]
