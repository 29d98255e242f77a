"""Repetition of a constraint."""

from __future__ import annotations

from guideway.constraints.base import Constraint
from guideway.constraints.captures import Rules
from guideway.constraints.embed import separated, term_of
from guideway.constraints.mismatch import does_not_fit
from guideway.errors import InvalidConstraintError, LimitExceededError
from guideway.grammar.cfg import Repetition, Rule, Text, lower
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import fits
from guideway.grammar.regular import Literals

__all__ = ["Repeated"]


MAX_TIMES = 2**31 - 1
"""The largest repetition count that the kernel represents."""


class Repeated(Constraint[str]):
    """A constraint repeated `least` to `most` times (None: unbounded), with a separator. The value is the text."""

    def __init__(self, part: Constraint[object], least: int, most: int | None, separator: str) -> None:
        if not all(type(times) is int for times in (least, 0 if most is None else most)):
            raise TypeError(f"repetition counts must be ints, got {least!r} and {most!r}")
        if not isinstance(separator, str):
            raise TypeError(f"separator must be a str, got {type(separator).__name__}")
        if max(least, most or 0) > MAX_TIMES:
            raise LimitExceededError(f"repetition counts must be at most {MAX_TIMES:,}, got {max(least, most or 0):,}")
        if least < 0 or (most is not None and most < least):
            raise InvalidConstraintError(
                f"repetition counts need 0 <= least <= most, got least={least} and most={most}"
            )
        self.part, self.least, self.most, self.separator = part, least, most, separator
        one = term_of(part)
        between = Text(Literals((separator,)))
        term = separated(one, least, most, between) if separator else Repetition(one, least, most)
        self._shape = Rules((Rule("repeated", term),), "repeated")
        self._grammar = lower(list(self._shape.rules), "repeated").grammar

    def grammar(self) -> Grammar:
        """Return the grammar: one leaf if the part is regular, else lowered rules."""
        return self._grammar

    def shape(self) -> Rules:
        """Return the greedy repetition."""
        return self._shape

    def parse(self, text: str) -> str:
        """Return the text if it is a repetition of texts of the part."""
        if not fits(self._grammar, text):
            raise does_not_fit(self._grammar, text, f"does not match {self!r}")
        return text

    def _content(self) -> object:
        return self.part, self.least, self.most, self.separator

    def _shown(self) -> tuple[object, ...]:
        between = f", separator={self.separator!r}" if self.separator else ""
        return "(", self.part, f").repeat({self.least}, {self.most}{between})"
