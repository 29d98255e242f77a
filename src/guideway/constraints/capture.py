"""Any source under a name."""

from __future__ import annotations

from typing import TypeVar

from guideway.constraints.base import Constraint
from guideway.constraints.captures import Rules
from guideway.constraints.embed import term_of
from guideway.errors import InvalidConstraintError
from guideway.grammar.cfg import Rule
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import Regular

__all__ = ["Named"]

T_co = TypeVar("T_co", covariant=True)


class Named(Constraint[T_co]):
    """A source whose text is captured under a name. It allows what the source allows, and has its values."""

    def __init__(self, part: Constraint[T_co], name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"a name is a str; got {type(name).__name__}")
        if not name.replace("-", "_").replace(".", "_").isidentifier():
            raise InvalidConstraintError(f"{name!r} is not a name for a capture: letters, digits, '_', '-' and '.'")
        self.part, self.name = part, name
        self._plain: Constraint[T_co] = part._plain if isinstance(part, Named) else part  # without any names

    def grammar(self) -> Grammar:
        """That of the source."""
        return self._plain.grammar()

    def regular(self) -> Regular | None:
        """The language of the source, if it is regular."""
        return self._plain.regular()

    def shape(self) -> Rules:
        """One rule of that name."""
        return Rules((Rule(self.name, term_of(self.part)),), self.name, {self.name: self.name})

    def parse(self, text: str) -> T_co:
        """As the source reads it."""
        return self._plain.parse(text)

    def conflict(self, place: str | None) -> str | None:
        """As the source says it."""
        return self._plain.conflict(place)

    def _content(self) -> object:
        return self.part, self.name

    def _shown(self) -> tuple[object, ...]:
        return "(", self.part, f").capture({self.name!r})"
