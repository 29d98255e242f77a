"""`Format`: the texts of a named format, such as `date-time` or `email`."""

from __future__ import annotations

from guideway.arguments import short_repr
from guideway.constraints.base import Constraint
from guideway.constraints.mismatch import does_not_fit
from guideway.errors import InvalidConstraintError
from guideway.frontends.formats import FORMATS, format_language
from guideway.grammar.nodes import Grammar, leaf
from guideway.grammar.recognizer import fits

__all__ = ["Format"]


class Format(Constraint[str]):
    """The texts of a named format. The value is the text.

    Args:
        name: A format of JSON Schema, or "ip", "url", "semver", "phone" or "hex-colour".

    Raises:
        InvalidConstraintError: The name is unknown. The message lists the known names.
    """

    def __init__(self, name: str) -> None:
        if name not in FORMATS:
            raise InvalidConstraintError(
                f"unknown format {short_repr(name)}; known formats: {', '.join(sorted(FORMATS))}"
            )
        self.name = name

    def grammar(self) -> Grammar:
        """Return one leaf."""
        return leaf(format_language(self.name))

    def parse(self, text: str) -> str:
        """Return the text if it matches the format."""
        if not fits(self.grammar(), text):
            raise does_not_fit(self.grammar(), text, f"does not match the format {self.name!r}")
        return text

    def _content(self) -> object:
        return self.name

    def __repr__(self) -> str:
        return f"Format({self.name!r})"
