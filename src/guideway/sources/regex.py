"""`Regex`: the texts that a pattern matches as a whole, with the meaning of Python's `re`."""

from __future__ import annotations

from guideway.errors import InvalidConstraint, InvalidText
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import Regular

from .base import Source, leaf
from .fits import fits
from .patterns import parse_pattern

__all__ = ["Regex"]


class Regex(Source[str]):
    """The texts that `re.fullmatch(pattern, text)` matches.

    Groups, classes, counts, lazy quantifiers (the same texts), anchors and the flags i, s, x, a are exact. Refused with
    a caret under the place: look-around, back-references, `\\b`, possessive and atomic groups, `^` and `$` under (?m).
    """

    def __init__(self, pattern: str) -> None:
        if not isinstance(pattern, str):
            raise InvalidConstraint(f"a pattern is a str, not {type(pattern).__name__}")
        self.pattern = pattern
        self._regular = parse_pattern(pattern, "python")

    def grammar(self) -> Grammar:
        """One leaf."""
        return leaf(self._regular)

    def regular(self) -> Regular:
        """The language."""
        return self._regular

    def parse(self, text: str) -> str:
        """The text itself, if it matches."""
        if not fits(self.grammar(), text):  # not `re`, which may take exponential time
            raise InvalidText(f"{text!r} does not match {self.pattern!r}")
        return text

    def _content(self) -> object:
        return self.pattern

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"
