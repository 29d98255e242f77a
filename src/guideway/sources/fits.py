"""Whether a text fits a grammar: the kernel walks it byte by byte, in time linear in the text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from guideway.errors import Unsatisfiable
from guideway.grammar.nodes import Grammar
from guideway.grammar.program import encode

if TYPE_CHECKING:
    from guideway._kernel import Vocabulary

__all__ = ["fits"]

_END = 256


@cache
def _single_bytes() -> Vocabulary:
    from guideway._kernel import Vocabulary

    return Vocabulary([*(bytes([b]) for b in range(256)), b""], [_END], [])


def fits(grammar: Grammar, text: str) -> bool:
    """Whether the grammar derives the text. Raises `LimitExceeded` as `compile` does."""
    from guideway._kernel import Automaton

    try:
        ids = [*text.encode("utf-8"), _END]
        matcher = Automaton.compile(_single_bytes(), encode(grammar)).matcher()
    except (UnicodeEncodeError, Unsatisfiable):  # a lone surrogate is no character
        return False
    return matcher.validate(ids) == len(ids)
