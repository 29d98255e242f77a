"""Whether a text fits a grammar: the kernel walks it byte by byte, in time linear in the text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from guideway.errors import Unsatisfiable
from guideway.grammar.nodes import Grammar
from guideway.grammar.program import encode

if TYPE_CHECKING:
    from guideway._kernel import Automaton, Vocabulary

__all__ = ["accepts", "byte_automaton", "fits", "is_empty"]

_END = 256


@cache
def _single_bytes() -> Vocabulary:
    from guideway._kernel import Vocabulary

    return Vocabulary([*(bytes([b]) for b in range(256)), b""], [_END], [])


def byte_automaton(grammar: Grammar) -> Automaton:
    """The automaton over single bytes; id 256 ends a text. Raises what `compile` does."""
    from guideway._kernel import Automaton

    return Automaton.compile(_single_bytes(), encode(grammar))


def accepts(automaton: Automaton, text: str) -> bool:
    """Whether an automaton over single bytes takes the whole text."""
    try:
        ids = [*text.encode("utf-8"), _END]
    except UnicodeEncodeError:  # a lone surrogate is no character
        return False
    return automaton.matcher().validate(ids) == len(ids)


def fits(grammar: Grammar, text: str) -> bool:
    """Whether the grammar derives the text. Raises `LimitExceeded` as `compile` does."""
    try:
        return accepts(byte_automaton(grammar), text)
    except Unsatisfiable:
        return False


def is_empty(grammar: Grammar) -> bool:
    """Whether the grammar derives no text at all."""
    try:
        byte_automaton(grammar)
    except Unsatisfiable:
        return True
    return False
