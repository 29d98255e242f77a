"""`Choice`: one of a list of texts."""

from __future__ import annotations

from collections.abc import Iterable

from guideway.constraints.base import Constraint, check_text
from guideway.constraints.mismatch import does_not_fit
from guideway.errors import InvalidConstraintError
from guideway.grammar.nodes import Grammar, leaf
from guideway.grammar.regular import Literals

__all__ = ["Choice"]


class Choice(Constraint[str]):
    """One of the given texts. The value is the text.

    There may be tens of thousands of texts. Duplicates are ignored.

    Args:
        texts: The allowed texts, at least one.

    Raises:
        InvalidConstraintError: `texts` is empty, is a str or not iterable, or has an item that is not a str or has a lone
            surrogate.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        if isinstance(texts, str):
            raise InvalidConstraintError(f"Choice needs a list of texts, got a str; use Choice([{texts[:80]!r}])")
        if not isinstance(texts, Iterable):
            raise InvalidConstraintError(f"Choice needs a list of texts, got {type(texts).__name__}")
        checked = (check_text(text, f"text {number} of the choice") for number, text in enumerate(texts))
        self.texts = tuple(dict.fromkeys(checked))
        if not self.texts:
            raise InvalidConstraintError("Choice needs at least one text, got an empty list")
        self._members = frozenset(self.texts)

    def grammar(self) -> Grammar:
        """Return one leaf of literals."""
        return leaf(Literals(self.texts))

    def parse(self, text: str) -> str:
        """Return the text if it is one of the choices."""
        if text not in self._members:
            raise does_not_fit(self.grammar(), text, f"is not one of the {len(self.texts)} choices")
        return text

    def _content(self) -> object:
        return self.texts

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.texts[:8]))
        return f"Choice([{shown}{', …' if len(self.texts) > 8 else ''}])"
