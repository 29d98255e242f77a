"""Any source under a name."""

from __future__ import annotations

from typing import TypeVar

from guideway.errors import InvalidConstraint
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import Regular
from guideway.grammar.rules import Rule

from .base import Source
from .captures import Rules
from .terms import term_of

__all__ = ["Named"]

T_co = TypeVar("T_co", covariant=True)


class Named(Source[T_co]):
    """A source whose text is captured under a name. It allows what the source allows, and has its values."""

    def __init__(self, part: Source[T_co], name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a name is a str; got {type(name).__name__}")
        if not name.replace("-", "_").replace(".", "_").isidentifier():
            raise InvalidConstraint(f"{name!r} is not a name for a capture: letters, digits, '_', '-' and '.'")
        self.part, self.name = part, name

    def grammar(self) -> Grammar:
        """That of the source."""
        return self.part.grammar()

    def regular(self) -> Regular | None:
        """The language of the source, if it is regular."""
        return self.part.regular()

    def shape(self) -> Rules:
        """One rule of that name."""
        return Rules((Rule(self.name, term_of(self.part)),), self.name, {self.name: self.name})

    def parse(self, text: str) -> T_co:
        """As the source reads it."""
        return self.part.parse(text)

    def conflict(self, place: str | None) -> str | None:
        """As the source says it."""
        return self.part.conflict(place)

    def _content(self) -> object:
        return self.part, self.name

    def __repr__(self) -> str:
        return f"({self.part!r}).named({self.name!r})"
