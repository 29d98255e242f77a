"""Any source, several times."""

from __future__ import annotations

from guideway.errors import InvalidConstraint, InvalidText
from guideway.grammar.nodes import Grammar
from guideway.grammar.rules import Rule, Series, Term, Text, Times, Whole, lower

from .base import Literal, Source
from .fits import fits

__all__ = ["Repeated"]


class Repeated(Source[str]):
    """A source `least` to `most` times (None: no end), with a separator between. The value is the text itself."""

    def __init__(self, part: Source[object], least: int, most: int | None, separator: str) -> None:
        if least < 0 or (most is not None and most < least):
            raise InvalidConstraint(f"at least {least} and at most {most} times")
        self.part, self.least, self.most, self.separator = part, least, most, separator
        one = self._term(part)
        if not separator or most == 0:
            term: Term = Times(one, least, most)
        else:
            more = Times(
                Series((self._term(Literal(separator)), one)), max(least - 1, 0), None if most is None else most - 1
            )
            term = Times(Series((one, more)), min(least, 1), 1)
        self._grammar = lower([Rule("repeated", term)], "repeated").grammar

    @staticmethod
    def _term(source: Source[object]) -> Term:
        language = source.regular()
        return Text(language) if language is not None else Whole(source.grammar())

    def grammar(self) -> Grammar:
        """Rules, lowered; one leaf where the part is regular."""
        return self._grammar

    def parse(self, text: str) -> str:
        """The text itself, if it can be cut into the parts."""
        if not fits(self._grammar, text):
            raise InvalidText(f"{text!r} does not fit {self!r}")
        return text

    def _content(self) -> object:
        return self.part, self.least, self.most, self.separator

    def __repr__(self) -> str:
        between = f", separator={self.separator!r}" if self.separator else ""
        return f"({self.part!r}).repeat({self.least}, {self.most}{between})"
