"""`Format`: the texts of a named format, such as `date-time` or `email`."""

from __future__ import annotations

from guideway.constraints.base import Constraint, leaf
from guideway.errors import InvalidConstraintError, InvalidTextError
from guideway.frontends.formats import FORMATS, format_language
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import fits

__all__ = ["Format"]


class Format(Constraint[str]):
    """The texts of a format: those of JSON Schema, and `ip`, `url`, `semver`, `phone`, `hex-colour`.

    The value is the text. An unknown name raises `InvalidConstraintError`, which lists the known ones.
    """

    def __init__(self, name: str) -> None:
        if name not in FORMATS:
            raise InvalidConstraintError(f"there is no format {name!r}; there are {', '.join(sorted(FORMATS))}")
        self.name = name

    def grammar(self) -> Grammar:
        """One leaf."""
        return leaf(format_language(self.name))

    def parse(self, text: str) -> str:
        """The text itself, if it has the format."""
        if not fits(self.grammar(), text):
            raise InvalidTextError(f"{text!r} is not of the format {self.name!r}")
        return text

    def _content(self) -> object:
        return self.name

    def __repr__(self) -> str:
        return f"Format({self.name!r})"
