"""`PythonType`: a Python type as a constraint. Pydantic provides the JSON Schema and constructs the values."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints, is_typeddict

from guideway.arguments import short_repr, shortened
from guideway.constraints.base import Constraint
from guideway.constraints.captures import Reading
from guideway.constraints.json_schema import JsonSchema
from guideway.errors import (
    ConstraintError,
    InvalidConstraintError,
    InvalidTextError,
    LimitExceededError,
    MissingDependencyError,
    UnsupportedError,
)
from guideway.frontends.json_schema.style import Escapes, KeyOrder, Whitespace
from guideway.frontends.python_types.schema import arguments_model, schema_generator
from guideway.frontends.python_types.size import check_size
from guideway.grammar.nodes import Grammar
from guideway.grammar.substrings import Source
from guideway.jsontext.decoder import loads
from guideway.jsontext.pointer import pointer

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

__all__ = ["PythonType", "field_adapters"]

T_co = TypeVar("T_co", covariant=True)

MAX_SHOWN = 2000
"""Maximum number of characters of a rejected text in an error message."""


class PythonType(Constraint[T_co]):
    """The JSON texts of a Python type, in the profile "generation". The value is an instance of the type.

    Supported: Pydantic models, dataclasses, TypedDict, Literal, Enum, list, dict, set, tuple, unions, int, float,
    Decimal, bool, str, bytes, None, dates and times, UUIDs, addresses, and `Annotated` types. For a function, the
    constraint is on its arguments, and the value is a dict (`f(**value)`). Types whose texts cannot be described
    exactly (complex, dicts with float keys, …) are refused.

    Args:
        annotation: The type or function.
        key_order: As for `JsonSchema`.
        whitespace: As for `JsonSchema`.
        escapes: As for `JsonSchema`.

    Attributes:
        schema: The JSON Schema of the type, for use in prompts.

    Raises:
        InvalidConstraintError: `annotation` is not a type, or another argument is not valid.
        UnsupportedError: The texts of the type cannot be described exactly.
        MissingDependencyError: The type needs a package that is not installed.
        LimitExceededError: The type is nested too deeply, or too large.
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
        self._arguments = isinstance(annotation, (FunctionType, MethodType))
        self._adapter = _adapter(arguments_model(annotation) if self._arguments else annotation)
        self._json = JsonSchema(
            _schema_of(self._adapter),
            key_order=key_order,
            whitespace=whitespace,
            escapes=escapes,
            formats="strict",
            unknown_keywords="ignore",  # extra keys of a type's schema are metadata
        )
        self._format: str | None = None
        self.schema: Any = self._json.schema

    def quoting(self, text: str) -> PythonType[T_co]:
        """Return this constraint with a source text: strings with `Verbatim()` must be substrings of it.

        Args:
            text: The source text.

        Raises:
            InvalidConstraintError: The source is not a str, or has a lone surrogate.
            LimitExceededError: The source is too long.
        """
        made = self._copied()
        made._json = self._json.quoting(text)
        return made

    def verbatim(self, format: str) -> PythonType[T_co]:
        """Return this constraint with a format in each string schema without `const`, `enum`, `format` and `pattern`.

        Args:
            format: The name of the format, such as "verbatim".
        """
        made = self._copied()
        made._json, made._format = self._json.verbatim(format), format
        made.schema = made._json.schema
        return made

    def excluding(self, values: Sequence[tuple[str, Any]], record: Any) -> PythonType[T_co]:
        """Return this constraint without certain values at certain locations.

        Args:
            values: Pairs of a JSON Pointer and a JSON value that is not allowed there.
            record: A JSON value that fits this constraint and has these locations; see `JsonSchema.excluding`.
        """
        made = self._copied()
        made._json = self._json.excluding(values, record)
        return made

    def _copied(self) -> PythonType[T_co]:
        made = type(self).__new__(type(self))
        made.__dict__ = dict(self.__dict__)  # a copy, because other constraints may share this `__dict__`
        for name in ("_digest", "_stable", "_stored"):  # these belong to the original constraint
            made.__dict__.pop(name, None)
        return made

    @property
    def is_verbatim(self) -> bool:
        """Whether a string of the type has `Verbatim()`."""
        return self._json.is_verbatim

    @property
    def quoted_sources(self) -> tuple[Source, ...]:
        """The source text as `Source` objects, one for each set of options of `Verbatim()`.

        The tuple is empty if there is no source text.
        """
        return self._json.quoted_sources

    @property
    def quoted(self) -> str | None:
        """The source text; None: there is none."""
        return self._json.quoted

    def grammar(self) -> Grammar:
        """Return the grammar of the JSON Schema."""
        return self._json.grammar()

    def _lowered_part(self) -> Constraint[Any]:
        return self._json

    def shape(self) -> Reading:
        """Return the function that captures each value under its JSON Pointer."""
        return self._json.shape()

    def parse(self, text: str) -> T_co:
        """Return the value of a text.

        Args:
            text: JSON text.

        Raises:
            InvalidTextError: Pydantic rejects the text for this type, a validator of the type rejects it, or a verbatim
                string is not in the source text. The message is that of Pydantic, with the beginning of the text. With a
                source text and a verbatim string, the JSON Schema is checked first, as by `JsonSchema.parse`.
        """
        from pydantic import ValidationError

        if self.quoted is not None and self.is_verbatim:
            self._json.parse(text)
        try:
            value: T_co = self._adapter.validate_json(text)
        except ValidationError as problem:
            shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
            raise InvalidTextError(
                f"{shortened(str(problem), 2000)}\nin the text {shown}",
                text=text,
                place=_place(problem.errors(include_url=False)[0], text),
            ) from problem
        if self._arguments:
            return {name: getattr(value, name) for name in type(value).model_fields}  # type: ignore[attr-defined, return-value]  # a model
        return value

    def exact_schema(self) -> Any:
        """Return a copy of the schema, as a JSON value. `JsonSchema` reads all digits of its floats."""
        return self._json.exact_schema()

    def conflict(self, place: str | None) -> str | None:
        """Return a phrase with the keywords that contradict each other; see `Constraint.conflict`."""
        return self._json.conflict(place)

    def _content(self) -> object:
        return self._json

    def _equal_unhashed(self, other: PythonType[Any]) -> bool:
        return bool(self._annotation == other._annotation)  # annotations need not be hashable

    def __repr__(self) -> str:
        name = self._annotation.__name__ if isinstance(self._annotation, type) else short_repr(self._annotation, 500)
        return f"PythonType({name})"


def _place(problem: ErrorDetails, text: str) -> str | None:
    """Return the JSON Pointer of the value that an error of Pydantic is about; None: the text cannot be decoded.

    Parts of the location that are no key or index of the value, such as names of union branches, are left out. For a
    missing key, the result is the JSON Pointer of its object.
    """
    try:
        here: Any = loads(text)
    except (ValueError, ConstraintError):
        return None
    place = ""
    for name in problem["loc"]:
        known: dict[Any, Any] = here if isinstance(here, dict) else {}
        if isinstance(here, list):
            known = dict(enumerate(here))
        if name in known:
            here, place = known[name], pointer(place, name)
    return place


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    from pydantic import BaseModel, TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
    from pydantic_core import SchemaError

    if isinstance(annotation, TypeAdapter):
        return annotation
    if annotation is BaseModel:
        raise InvalidConstraintError("BaseModel has no fields; pass a subclass of it")
    check_size(annotation)
    try:
        return TypeAdapter(annotation)
    except (
        PydanticUserError,
        PydanticUndefinedAnnotation,
        SchemaError,
        NameError,
        TypeError,
        ValueError,
        AttributeError,
    ) as problem:
        raise InvalidConstraintError(
            f"{short_repr(annotation, 200)} is not a type that Pydantic can read from JSON: {_reason(problem)}"
        ) from problem
    except ImportError as problem:
        raise MissingDependencyError(f"the type needs a package that is not installed: {problem}") from problem
    except RecursionError:
        raise LimitExceededError("the type is nested too deeply: Python's recursion limit was reached") from None


def _reason(problem: Exception) -> str:
    """Return the first line of Pydantic's message, without its advice about the configuration of models."""
    return shortened(re.split(r"\. Set `|\n", str(problem))[0], 1000)


def _schema_of(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError
    from pydantic_core import PydanticOmit

    try:
        return adapter.json_schema(mode="validation", schema_generator=schema_generator())
    except PydanticUserError as problem:
        raise UnsupportedError(f"the type has no JSON Schema: {_reason(problem)}") from problem
    except PydanticOmit as problem:
        raise UnsupportedError("the type has no JSON Schema: it is a SkipJsonSchema") from problem
    except ImportError as problem:
        raise MissingDependencyError(f"the type needs a package that is not installed: {problem}") from problem
    except RecursionError:
        raise LimitExceededError("the type is nested too deeply: Python's recursion limit was reached") from None


def field_adapters(source: PythonType[Any]) -> dict[str, TypeAdapter[Any]]:
    """Return a `TypeAdapter` for each field of a model, dataclass or TypedDict.

    The key is the alias of the field, or its name. For dataclasses and TypedDicts, it is the name. Fields of models
    whose alias is not a str are left out. The result is empty for other types, and if the type of a field cannot be
    resolved.
    """
    from pydantic import BaseModel, TypeAdapter

    annotation = source._annotation
    found: dict[str, Any] = {}
    try:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            for name, field in annotation.model_fields.items():
                key = field.validation_alias or field.alias or name
                if isinstance(key, str):
                    found[key] = field.rebuild_annotation()
        elif dataclasses.is_dataclass(annotation) or is_typeddict(annotation):
            found = get_type_hints(annotation, include_extras=True)
        return {key: TypeAdapter(kind) for key, kind in found.items()}
    except Exception:  # the type of a field cannot be resolved outside its class: use plain JSON values
        return {}
