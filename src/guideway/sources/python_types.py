"""`PythonType`: a Python type as a constraint, and its values out of the texts, by Pydantic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from guideway.errors import InvalidConstraint, InvalidText, LimitExceeded, Unsupported
from guideway.grammar.nodes import Grammar

from .base import Source
from .json_schema import JsonSchema
from .json_schema.style import Escapes, KeyOrder, Whitespace

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["PythonType"]

T_co = TypeVar("T_co", covariant=True)


class PythonType(Source[T_co]):
    """The JSON texts of a Python type: what Pydantic says of it as JSON Schema, in the generation profile.

    Pydantic models, dataclasses, TypedDict, Literal, Enum, list, dict, tuple, unions, int, float, bool, str, None,
    date, and `Annotated` ones. `schema` is the JSON Schema (for prompts); `parse` makes the value. Types whose texts
    cannot be told exactly yet (datetime, bytes, Decimal, sets, …) are refused.
    """

    def __init__(
        self,
        annotation: Any,
        *,
        key_order: KeyOrder | None = None,
        whitespace: Whitespace | None = None,
        escapes: Escapes | None = None,
    ) -> None:
        self._annotation = annotation
        self._adapter = _adapter(annotation)
        self._json = JsonSchema(
            _schema_of(self._adapter),
            key_order=key_order,
            whitespace=whitespace,
            escapes=escapes,
            formats="strict",
        )
        _check_parts(self._adapter.core_schema)
        self.schema: Any = self._json.schema

    def grammar(self) -> Grammar:
        """The grammar of the JSON Schema."""
        return self._json.grammar()

    def parse(self, text: str) -> T_co:
        """The value; `InvalidText` holds Pydantic's words where its validators refuse the text."""
        from pydantic import ValidationError

        try:
            value: T_co = self._adapter.validate_json(text)
        except ValidationError as problem:
            raise InvalidText(str(problem)) from problem
        return value

    def _content(self) -> object:
        return self._json

    def __eq__(self, other: object) -> bool:
        """Of the same type, written the same way. (An annotation need not be hashable, so `_content` leaves it out.)"""
        return super().__eq__(other) and isinstance(other, PythonType) and bool(self._annotation == other._annotation)

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        name = self._annotation.__name__ if isinstance(self._annotation, type) else repr(self._annotation)
        return f"PythonType({name})"


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    if isinstance(annotation, TypeAdapter):
        return annotation
    try:
        return TypeAdapter(annotation)
    except (PydanticUserError, PydanticUndefinedAnnotation, NameError, TypeError) as problem:
        raise InvalidConstraint(
            f"{annotation!r} is not a type whose values can be read from JSON: {problem}"
        ) from problem
    except RecursionError:
        raise LimitExceeded("the type is nested too deeply") from None


def _schema_of(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    try:
        return adapter.json_schema(mode="validation")
    except PydanticUserError as problem:
        raise Unsupported(f"the type has no JSON Schema: {problem}") from problem
    except RecursionError:
        raise LimitExceeded("the type is nested too deeply") from None


def _check_parts(core_schema: object) -> None:
    """Refuse parts of which the JSON Schema does not say exactly what their texts must be."""
    for part in _parts(core_schema):
        kind = part.get("type")
        if kind in ("bytes", "complex", "decimal"):
            raise Unsupported(f"values of the type {kind}")
        keys = part.get("keys_schema") if kind == "dict" else None
        if isinstance(keys, dict) and keys.get("type") not in ("str", "any", "literal", "enum"):
            raise Unsupported(f"a dict whose keys are {keys.get('type')!r} and not str")


def _parts(core_schema: object) -> Iterator[dict[str, Any]]:
    """Every mapping in Pydantic's own description of a type."""
    todo, seen = [core_schema], set[int]()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            yield one
            todo += one.values()
        elif isinstance(one, (list, tuple)):
            todo += one
