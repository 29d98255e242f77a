"""Languages of formats: the language of an ECMA-262 pattern, and a limit on the length of its texts."""

from __future__ import annotations

from guideway.caching import cached
from guideway.frontends.regex import parse_pattern
from guideway.grammar.lengths import of_length
from guideway.grammar.regular import Regular, both

__all__ = ["limited", "spelled"]


@cached(256)
def spelled(pattern: str) -> Regular:
    """Return the language of the texts that an ECMA-262 pattern matches completely."""
    return parse_pattern(pattern, "ecma")


def limited(language: Regular, most: int) -> Regular:
    """Return the texts of a language with at most `most` characters."""
    return both(*of_length([language], 0, most))
