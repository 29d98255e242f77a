"""Arrow columns for the values of constraints: the type of a column, and the conversion of JSON values to it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guideway.arguments import short_repr
from guideway.constraints import Constraint, JsonSchema, PythonType
from guideway.errors import InvalidTextError, MissingDependencyError
from guideway.jsontext.encoder import write_json
from guideway.jsontext.pointer import target

__all__ = ["Column", "column_of", "pyarrow"]

MAX_DEPTH = 32
"""The maximum nesting of an Arrow type. A more deeply nested value is a string that contains its JSON text."""

_SCALARS = ("string", "integer", "number", "boolean", "null")


def pyarrow() -> Any:
    """Import pyarrow and return the module. Raises `MissingDependencyError` if it is not installed."""
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"Arrow types need pyarrow: pip install 'guideway[batch]' ({error})") from error
    return pyarrow


@dataclass(frozen=True)
class Column:
    """A column of values.

    Attributes:
        type: The Arrow type.
        convert: Converts a JSON value to a Python value from which Arrow makes this type.
    """

    type: Any
    convert: Callable[[Any], Any]


def column_of(constraint: Constraint[Any] | None) -> Column:
    """Return the column for the values of a constraint; None: for texts.

    The type is determined by the JSON Schema. Objects with `properties` become structs of these, without other keys, if
    `additionalProperties` is false or absent; objects without `properties` whose `additionalProperties` is an object
    become maps; arrays with one schema for all items become lists. The formats "date" and "date-time" become dates and
    times. Strings, numbers, booleans and null become scalars. All other values become strings with their JSON text.
    Values of constraints without a schema are strings.
    """
    schema = constraint.schema if isinstance(constraint, (JsonSchema, PythonType)) else None
    if schema is None:
        return _column(pyarrow().string(), _text)
    return _Types(schema).column(schema, MAX_DEPTH)


class _Types:
    def __init__(self, document: Any) -> None:
        self._document = document

    def column(self, schema: Any, depth: int) -> Column:
        arrow = pyarrow()
        schema = self._resolved(schema)
        if depth == 0 or not isinstance(schema, Mapping):
            return _json()
        kinds = self._kinds(schema)
        if kinds == {"object"}:
            return self._object(schema, depth)
        if kinds == {"array"}:
            return self._array(schema, depth)
        if kinds == {"string"}:
            return _strings(schema)
        if kinds == {"boolean"}:
            return Column(arrow.bool_(), _plain)
        if kinds == {"integer"}:
            return _column(arrow.int64(), _int64)
        if kinds and kinds <= {"integer", "number"}:
            return _column(arrow.float64(), float)
        return _json() if kinds else Column(arrow.null(), _plain)

    def _resolved(self, schema: Any) -> Any:
        """Return a schema without references and wrappers at its top.

        A reference is replaced by its target. A union (`anyOf`, `oneOf`) loses its schemas with the type "null"; if one
        schema is left, it replaces the union, otherwise the result is `{"anyOf": [...]}`. An `allOf` of one schema,
        in a schema without `type` and `properties`, is replaced by this schema. Returns None if a reference is no JSON
        Pointer into the document or has no target, and after `MAX_DEPTH` steps.
        """
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, Mapping):
                return schema
            reference, every = schema.get("$ref"), schema.get("allOf")
            parts = next((schema[name] for name in ("anyOf", "oneOf") if isinstance(schema.get(name), list)), None)
            if isinstance(reference, str):
                schema = target(self._document, reference)
            elif parts is not None:
                left = [one for one in parts if not (isinstance(one, Mapping) and one.get("type") == "null")]
                if len(left) != 1:
                    return {"anyOf": left}
                schema = left[0]
            elif isinstance(every, list) and len(every) == 1 and not {"properties", "type"} & schema.keys():
                schema = every[0]
            else:
                return schema
        return None

    def _kinds(self, schema: Mapping[str, Any]) -> set[str]:
        """Return the JSON types of the values of a schema, without null.

        All types are returned if they are not known, or if a union has arrays or objects.
        """
        values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
        if isinstance(values, list):
            return {_kind(value) for value in values} - {"null"}
        kinds = schema.get("type")
        if isinstance(kinds, str):
            return {kinds} - {"null"}
        if isinstance(kinds, list):
            return {one for one in kinds if isinstance(one, str)} - {"null"}
        parts = schema.get("anyOf")
        if isinstance(parts, list):
            inner = [self._resolved(part) for part in parts]
            if all(isinstance(one, Mapping) for one in inner):
                kinds = set().union(*(self._kinds(one) for one in inner))
                return kinds if kinds <= set(_SCALARS) else {*_SCALARS, "object", "array"}
        return {*_SCALARS, "object", "array"}

    def _object(self, schema: Mapping[str, Any], depth: int) -> Column:
        arrow = pyarrow()
        properties = schema.get("properties")
        rest = schema.get("additionalProperties")
        if isinstance(properties, Mapping) and properties and rest in (None, False):
            columns = {name: self.column(one, depth - 1) for name, one in properties.items()}
            made = arrow.struct([arrow.field(name, one.type) for name, one in columns.items()])

            def struct(value: Any) -> Any:
                return {name: one.convert(value[name]) if name in value else None for name, one in columns.items()}

            return _column(made, struct)
        if not properties and isinstance(rest, Mapping):
            inner = self.column(rest, depth - 1)

            def pairs(value: Any) -> Any:
                return [(_text(name), inner.convert(one)) for name, one in value.items()]

            return _column(arrow.map_(arrow.string(), inner.type), pairs)
        return _json()

    def _array(self, schema: Mapping[str, Any], depth: int) -> Column:
        items, first = schema.get("items"), schema.get("prefixItems")
        if first or isinstance(items, list) or not isinstance(items, Mapping):
            return _json()
        inner = self.column(items, depth - 1)
        made = pyarrow().list_(inner.type)
        return _column(made, lambda value: [inner.convert(one) for one in value])


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer"
    return "object" if isinstance(value, Mapping) else "array" if isinstance(value, Sequence) else "number"


def _plain(value: Any) -> Any:
    return value


def _column(kind: Any, convert: Callable[[Any], Any]) -> Column:
    return Column(kind, lambda value: None if value is None else convert(value))


def _json() -> Column:
    return _column(pyarrow().string(), lambda value: _text(write_json(value)))


def _strings(schema: Mapping[str, Any]) -> Column:
    arrow = pyarrow()
    if schema.get("format") == "date":
        return _column(arrow.date32(), _date)
    if schema.get("format") == "date-time":
        return _column(arrow.timestamp("us", tz="UTC"), _time)
    return _column(arrow.string(), _text)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidTextError(f"the text does not fit a column: {error.reason} at {error.start}", text=value) from None
    return value


def _int64(value: Any) -> int:
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise InvalidTextError(
            f"the integer {short_repr(number, 40)} does not fit a column of 64 bits", text=str(value)
        )
    return number


def _date(value: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(value)
    except ValueError as error:
        raise InvalidTextError(f"the date {short_repr(value, 40)} does not fit a column: {error}", text=value) from None


def _time(value: str) -> datetime.datetime:
    text = value.upper()
    try:
        whole, dot, rest = text.partition(".")
        if dot:
            digits = len(rest) - len(rest.lstrip("0123456789"))
            text = f"{whole}.{rest[:digits][:6]:0<6}{rest[digits:]}"  # Python 3.10 reads only three or six digits
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(datetime.timezone.utc)
    except (ValueError, OverflowError) as error:
        raise InvalidTextError(f"the time {short_repr(value, 40)} does not fit a column: {error}", text=value) from None
