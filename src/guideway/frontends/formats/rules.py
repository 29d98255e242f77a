"""Helpers to write the grammars of formats as ECMA-262 patterns, one per rule of a specification."""

from __future__ import annotations

from guideway.caching import cached
from guideway.frontends.regex import parse_pattern
from guideway.grammar.lengths import of_length
from guideway.grammar.regular import Regular, both

__all__ = ["limited", "spelled"]


@cached(256)
def spelled(pattern: str) -> Regular:
    """Return the texts that a pattern matches completely."""
    return parse_pattern(pattern, "ecma")


def limited(language: Regular, most: int) -> Regular:
    """Return the texts of a language with at most `most` characters."""
    return both(*of_length([language], 0, most))
