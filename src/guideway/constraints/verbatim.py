"""`Verbatim`: an annotation of strings that must occur in the source text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guideway.errors import InvalidConstraintError, UnsupportedError
from guideway.frontends.json_schema.verbatim import NAME, has_format, marked

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler

__all__ = ["Verbatim"]


@dataclass(frozen=True)
class Verbatim:
    """An annotation: the string must occur in the source text. Use it as `Annotated[str, Verbatim()]`.

    `extract` knows the source text. For other functions, pass `PythonType(kind).quoting(text)`. In a JSON Schema, the
    annotation is the format "verbatim". A type such as `Annotated[str, Verbatim()] | None` also allows null, and a list
    of such strings may be empty.

    Args:
        word_boundaries: Whether the string must begin and end at word boundaries of the source, and not with white
            space.
        ignore_case: Whether letters may be written in either case.
        normalize_whitespace: Whether each run of white space of the source, such as a line break, is written as one
            space.
        allow_empty: Whether the string may be empty. If not, no string fits an empty source. With `word_boundaries`, no
            string fits a source that consists of white space, either.
    """

    word_boundaries: bool = True
    ignore_case: bool = False
    normalize_whitespace: bool = False
    allow_empty: bool = False

    @property
    def format(self) -> str:
        """The name of the format in a JSON Schema, with the options."""
        options = {
            "any-boundary": not self.word_boundaries,
            "ignore-case": self.ignore_case,
            "normalize-whitespace": self.normalize_whitespace,
            "allow-empty": self.allow_empty,
        }
        chosen = ",".join(name for name, is_set in options.items() if is_set)
        return f"{NAME}:{chosen}" if chosen else NAME

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: GetJsonSchemaHandler | None = None
    ) -> dict[str, Any]:
        """Return the JSON Schema of the annotated type, with the format in its strings. Pydantic calls this method.

        Raises `UnsupportedError` if the type has no string without a pattern, an enum or a format.
        """
        if handler is None:  # called on the class
            raise InvalidConstraintError("write Annotated[str, Verbatim()], with parentheses after Verbatim")
        made: dict[str, Any] = marked(handler(core_schema), self.format)
        if not has_format(made):
            raise UnsupportedError(
                "Verbatim() is for strings without a pattern, an enum or a format; write it on a str"
            )
        return made
