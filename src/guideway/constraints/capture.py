"""A constraint with a name for captures."""

from __future__ import annotations

from typing import TypeVar

from guideway.constraints.base import Constraint
from guideway.constraints.captures import Rules
from guideway.constraints.embed import term_of
from guideway.errors import InvalidConstraintError
from guideway.grammar.cfg import Rule
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import Regular

__all__ = ["Captured"]

T_co = TypeVar("T_co", covariant=True)


class Captured(Constraint[T_co]):
    """A constraint whose text is captured under a name. Its language and values are those of the inner constraint."""

    def __init__(self, part: Constraint[T_co], name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, got {type(name).__name__}")
        if not name.replace("-", "_").replace(".", "_").isidentifier():
            raise InvalidConstraintError(
                f"capture name may have letters, digits, '_', '-' and '.' and no leading digit, got {name!r}"
            )
        self.part, self.name = part, name
        self._plain: Constraint[T_co] = part._plain if isinstance(part, Captured) else part  # without nested names

    def grammar(self) -> Grammar:
        """Return the grammar of the inner constraint."""
        return self._plain.grammar()

    def regular(self) -> Regular | None:
        """Return the language of the inner constraint, if it is regular."""
        return self._plain.regular()

    def shape(self) -> Rules:
        """Return one rule with the name."""
        return Rules((Rule(self.name, term_of(self.part)),), self.name, {self.name: self.name})

    def parse(self, text: str) -> T_co:
        """Return the value of the inner constraint."""
        return self._plain.parse(text)

    def conflict(self, place: str | None) -> str | None:
        """Return the explanation of the inner constraint."""
        return self._plain.conflict(place)

    def _content(self) -> object:
        return self.part, self.name

    def _shown(self) -> tuple[object, ...]:
        return "(", self.part, f").capture({self.name!r})"
