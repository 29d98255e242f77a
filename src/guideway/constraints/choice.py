"""`Choice`: one of some fixed texts."""

from __future__ import annotations

from collections.abc import Iterable

from guideway.constraints.base import Constraint, check_text, leaf
from guideway.errors import InvalidConstraintError, InvalidTextError
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import Literals

__all__ = ["Choice"]


class Choice(Constraint[str]):
    """One of the given texts; tens of thousands are fine. A text given twice counts once."""

    def __init__(self, texts: Iterable[str]) -> None:
        if isinstance(texts, str):
            raise InvalidConstraintError("a choice is a list of texts, not one text")
        if not isinstance(texts, Iterable):
            raise InvalidConstraintError(f"a choice is a list of texts, not {type(texts).__name__}")
        checked = (check_text(text, f"text {number} of the choice") for number, text in enumerate(texts))
        self.texts = tuple(dict.fromkeys(checked))
        if not self.texts:
            raise InvalidConstraintError("a choice needs at least one text")
        self._members = frozenset(self.texts)

    def grammar(self) -> Grammar:
        """One leaf of literals."""
        return leaf(Literals(self.texts))

    def parse(self, text: str) -> str:
        """The text itself, if it is one of the choices."""
        if text not in self._members:
            raise InvalidTextError(f"{text!r} is none of the {len(self.texts)} choices")
        return text

    def _content(self) -> object:
        return self.texts

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.texts[:8]))
        return f"Choice([{shown}{', …' if len(self.texts) > 8 else ''}])"
