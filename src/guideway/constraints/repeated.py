"""Any source, several times."""

from __future__ import annotations

from guideway.constraints.base import Constraint
from guideway.constraints.captures import Rules
from guideway.constraints.embed import separated, term_of
from guideway.errors import InvalidConstraintError, InvalidTextError, LimitExceededError
from guideway.grammar.cfg import Rule, Text, Times, lower
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import fits
from guideway.grammar.regular import Literals

__all__ = ["Repeated"]


MAX_TIMES = 2**31 - 1
"""What the kernel counts to."""


class Repeated(Constraint[str]):
    """A source `least` to `most` times (None: no end), with a separator between. The value is the text itself."""

    def __init__(self, part: Constraint[object], least: int, most: int | None, separator: str) -> None:
        if not all(type(times) is int for times in (least, 0 if most is None else most)):
            raise TypeError(f"numbers of times are ints; got {least!r} and {most!r}")
        if not isinstance(separator, str):
            raise TypeError(f"a separator is a str; got {type(separator).__name__}")
        if max(least, most or 0) > MAX_TIMES:
            raise LimitExceededError(f"more than {MAX_TIMES:,} times")
        if least < 0 or (most is not None and most < least):
            raise InvalidConstraintError(f"at least {least} and at most {most} times")
        self.part, self.least, self.most, self.separator = part, least, most, separator
        one = term_of(part)
        between = Text(Literals((separator,)))
        term = separated(one, least, most, between) if separator else Times(one, least, most)
        self._shape = Rules((Rule("repeated", term),), "repeated")
        self._grammar = lower(list(self._shape.rules), "repeated").grammar

    def grammar(self) -> Grammar:
        """Rules, lowered; one leaf where the part is regular."""
        return self._grammar

    def shape(self) -> Rules:
        """The repetition, as often as can be."""
        return self._shape

    def parse(self, text: str) -> str:
        """The text itself, if it can be cut into the parts."""
        if not fits(self._grammar, text):
            raise InvalidTextError(f"{text!r} does not fit {self!r}")
        return text

    def _content(self) -> object:
        return self.part, self.least, self.most, self.separator

    def _shown(self) -> tuple[object, ...]:
        between = f", separator={self.separator!r}" if self.separator else ""
        return "(", self.part, f").repeat({self.least}, {self.most}{between})"
