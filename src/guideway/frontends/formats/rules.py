"""How the grammars of formats are written down: as patterns of ECMA-262, one per rule of a specification."""

from __future__ import annotations

from functools import lru_cache

from guideway.frontends.regex import parse_pattern
from guideway.grammar.lengths import of_length
from guideway.grammar.regular import Regular, both

__all__ = ["limited", "spelled"]


@lru_cache(maxsize=256)
def spelled(pattern: str) -> Regular:
    """The texts that a pattern matches as a whole."""
    return parse_pattern(pattern, "ecma")


def limited(language: Regular, most: int) -> Regular:
    """Those texts of a language that have at most so many characters."""
    return both(*of_length([language], 0, most))
