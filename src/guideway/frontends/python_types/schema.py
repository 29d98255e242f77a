"""A JSON Schema generator for Pydantic that keeps what Pydantic's own generator omits.

This concerns decimals, bytes, dates with bounds, URLs, numeric keys, required discriminators, and the signatures of
callables. A type whose texts cannot be described exactly raises `UnsupportedError`.
"""

from __future__ import annotations

import inspect
import math
import re
import typing
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from guideway.caching import cached
from guideway.errors import InvalidConstraintError, UnsupportedError
from guideway.frontends.python_types.texts import FORMATS, STRIPPED, dates, ecma_pattern, past_or_future, url
from guideway.jsontext.pointer import pointer

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import GenerateJsonSchema

__all__ = ["arguments_model", "schema_generator"]

_KEYS = frozenset({"str", "any", "literal", "enum", "date", "datetime", "time", "uuid", "int"})
_INTEGER_KEY = {"pattern": "^(0|-?[1-9][0-9]{0,18})$"}
_NO_LEAP_SECOND = {"not": {"pattern": ":60"}}

SHORTEST_STEP = 1e-16
"""The smallest difference of two numbers in the generation profile."""

_NOT_HASHED = frozenset({"list", "dict", "set", "typed-dict"})
_NO_ENDLESS_TIME = {"not": {"pattern": "[0-9]{7}"}}


@cached(1)
def schema_generator() -> type[GenerateJsonSchema]:
    """Return the generator class for Pydantic."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.names: dict[int, str] = {}
            """Names of fields by the `id` of their schemas, for errors."""

        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            return _decimal(schema)

        def bytes_schema(self, schema: Any) -> dict[str, Any]:
            if "min_length" in schema or "max_length" in schema:
                raise UnsupportedError("length bounds on bytes are not supported; use a str with length bounds")
            return {"type": "string"}

        def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
            return _with_formats(super().generate(schema, mode))

        def str_schema(self, schema: Any) -> dict[str, Any]:
            return _string(super().str_schema(schema), schema)

        def float_schema(self, schema: Any) -> dict[str, Any]:
            return _rounded(super().float_schema(schema))

        def literal_schema(self, schema: Any) -> dict[str, Any]:
            """Return the schema without bytes literals, since no JSON text is parsed as bytes."""
            made: Any = {**schema, "expected": [one for one in schema["expected"] if not isinstance(one, bytes)]}
            if not made["expected"]:
                raise UnsupportedError("a Literal of bytes is not supported; use a Literal of str")
            return super().literal_schema(made)

        def set_schema(self, schema: Any) -> dict[str, Any]:
            return _hashable(super().set_schema(schema), schema)

        def frozenset_schema(self, schema: Any) -> dict[str, Any]:
            return _hashable(super().frozenset_schema(schema), schema)

        def chain_schema(self, schema: Any) -> dict[str, Any]:
            if any(step.get("type") == "is-instance" for step in schema["steps"]):
                raise UnsupportedError("types that are validated by isinstance are not supported")
            return super().chain_schema(schema)

        def is_subclass_schema(self, schema: Any) -> dict[str, Any]:
            raise UnsupportedError("classes as values (type[...]) are not supported")

        def json_schema(self, schema: Any) -> dict[str, Any]:
            raise UnsupportedError("JSON inside a string (Json[...]) is not supported; use the inner type")

        def url_schema(self, schema: Any) -> dict[str, Any]:
            return url(schema.get("allowed_schemes"), schema.get("max_length"))

        def multi_host_url_schema(self, schema: Any) -> dict[str, Any]:
            return url(schema.get("allowed_schemes"), schema.get("max_length"))

        def model_fields_schema(self, schema: Any) -> dict[str, Any]:
            self.names.update((id(field), name) for name, field in schema["fields"].items())
            return super().model_fields_schema(schema)

        def dataclass_args_schema(self, schema: Any) -> dict[str, Any]:
            self.names.update((id(field), field["name"]) for field in schema["fields"])
            return super().dataclass_args_schema(schema)

        def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
            self.names.update((id(field), name) for name, field in schema["fields"].items())
            return super().typed_dict_schema(schema)

        def model_field_schema(self, schema: Any) -> dict[str, Any]:
            return _in_field(self.names[id(schema)], schema, super().model_field_schema)

        def dataclass_field_schema(self, schema: Any) -> dict[str, Any]:
            return _in_field(self.names[id(schema)], schema, super().dataclass_field_schema)

        def typed_dict_field_schema(self, schema: Any) -> dict[str, Any]:
            return _in_field(self.names[id(schema)], schema, super().typed_dict_field_schema)

        def complex_schema(self, schema: Any) -> dict[str, Any]:
            raise UnsupportedError("complex numbers are not supported; use tuple[float, float]")

        def callable_schema(self, schema: Any) -> dict[str, Any]:
            raise UnsupportedError(
                "callables as values are not supported; to generate arguments, pass the function itself as the type"
            )

        def date_schema(self, schema: Any) -> dict[str, Any]:
            if schema.get("gt") == date.max or schema.get("lt") == date.min:
                return {"not": {}}
            day = timedelta(1)
            lows = [schema.get("ge"), schema["gt"] + day if schema.get("gt") else None]
            highs = [schema.get("le"), schema["lt"] - day if schema.get("lt") else None]
            low, high = past_or_future(schema.get("now_op"))
            lows, highs = [one for one in (*lows, low) if one], [one for one in (*highs, high) if one]
            return _limited(super().date_schema(schema), dates(max(lows, default=None), min(highs, default=None)))

        def datetime_schema(self, schema: Any) -> dict[str, Any]:
            _without_bounds(schema, "a datetime")
            made = {**super().datetime_schema(schema), **_NO_LEAP_SECOND}
            if schema.get("tz_constraint") == "naive":
                made = FORMATS["naive date-time"]
            elif schema.get("tz_constraint") not in (None, "aware"):
                raise UnsupportedError("a datetime with a fixed UTC offset is not supported; use an aware datetime")
            return _limited(made, dates(*past_or_future(schema.get("now_op")), end="[Tt]"))

        def time_schema(self, schema: Any) -> dict[str, Any]:
            _without_bounds(schema, "a time")
            return {**super().time_schema(schema), **_NO_LEAP_SECOND}

        def timedelta_schema(self, schema: Any) -> dict[str, Any]:
            _without_bounds(schema, "a timedelta")
            return {**super().timedelta_schema(schema), **_NO_ENDLESS_TIME}

        def enum_schema(self, schema: Any) -> dict[str, Any]:
            """Return the schema without members that no JSON text is parsed as, such as tuples."""
            made = super().enum_schema(schema)
            values = made.get("enum")
            if isinstance(values, list):
                made["enum"] = [value for value in values if not isinstance(value, (list, dict))]
            return made

        def dict_schema(self, schema: Any) -> dict[str, Any]:
            keys = schema.get("keys_schema", {"type": "any"})
            if keys.get("type") not in _KEYS:
                raise UnsupportedError(f"dict keys of type {keys.get('type')!r} are not supported; use a list of pairs")
            made = super().dict_schema(schema)
            if keys.get("type") == "int":
                if keys.keys() - {"type", "metadata", "ref", "strict"}:
                    raise UnsupportedError("int keys with bounds are not supported; use plain int, or a list of pairs")
                made["propertyNames"] = _INTEGER_KEY
            return made

        def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
            """Return the schema with a required tag: Pydantic needs the tag even if it has a default."""
            made = super().tagged_union_schema(schema)
            name = made.get("discriminator", {}).get("propertyName")
            if not isinstance(name, str) or "oneOf" not in made:
                return made
            return {
                **{key: value for key, value in made.items() if key != "oneOf"},
                "anyOf": made["oneOf"],
                "required": [name],
            }

    return Generator


def _decimal(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON number with the bounds and the maximum number of digits of the type."""
    made: dict[str, Any] = {"type": "number"}
    for name, keyword in (
        ("ge", "minimum"),
        ("gt", "exclusiveMinimum"),
        ("le", "maximum"),
        ("lt", "exclusiveMaximum"),
        ("multiple_of", "multipleOf"),
    ):
        if schema.get(name) is not None:
            made[keyword] = schema[name]
    digits, places = schema.get("max_digits"), schema.get("decimal_places")
    both: list[dict[str, Any]] = []
    if places is not None:
        both.append(_digits(places, None))
    if digits is not None:  # digits after the point count too, so each one leaves one fewer before it
        ways = [_digits(n, digits - n) for n in range(digits + 1)]
        both.append(_digits(places, digits - places) if places is not None else {"anyOf": ways})
    return _limited(made, both)


def _digits(places: int, whole: int | None) -> dict[str, Any]:
    """Return numbers with at most `places` digits after the point and `whole` before it."""
    made: dict[str, Any] = {"multipleOf": Decimal(1).scaleb(-places)}
    if whole is not None:
        made |= {"exclusiveMinimum": -(Decimal(10) ** whole), "exclusiveMaximum": Decimal(10) ** whole}
    return made


def _limited(made: dict[str, Any], more: list[dict[str, Any]]) -> dict[str, Any]:
    return {**made, "allOf": more} if more else made


def _without_bounds(schema: Any, what: str) -> None:
    if any(schema.get(name) is not None for name in ("ge", "gt", "le", "lt")):
        raise UnsupportedError(
            f"{what} with bounds is not supported; use it without bounds and check them in a validator"
        )


def _in_field(name: str, field: Any, made: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a field. Errors inside it get its JSON Pointer as `place`."""
    try:
        alias = field.get("validation_alias")
        if isinstance(alias, list) and not any(isinstance(path, list) and len(path) == 1 for path in alias):
            raise UnsupportedError(f"a field that is read from a path of keys is not supported: {alias!r}")
        return made(field)
    except UnsupportedError as error:
        place = pointer("", name) + (error.place or "")
        why = str(error) if error.place is None else str(error).removeprefix(f"{error.place}: ")
        raise UnsupportedError(f"{place}: {why}", place) from error


def _string(made: dict[str, Any], schema: Any) -> dict[str, Any]:
    pattern = schema.get("pattern")
    if isinstance(pattern, re.Pattern) and pattern.flags & ~int(re.UNICODE):
        raise UnsupportedError(f"a compiled pattern with flags is not supported: {pattern!r}; write the flags inline")
    if "pattern" in made:
        made["pattern"] = ecma_pattern(made["pattern"])
    return _limited(made, [{"pattern": STRIPPED}] if schema.get("strip_whitespace") else [])


def _rounded(made: dict[str, Any]) -> dict[str, Any]:
    """If numbers next to an exclusive bound would round to it, use the next float as an inclusive bound."""
    more: list[dict[str, Any]] = []
    low, high = made.get("exclusiveMinimum", -math.inf), made.get("exclusiveMaximum", math.inf)
    if math.nextafter(low, math.inf) >= high:
        more.append({"not": {}})
    for name, closed, to in (("exclusiveMinimum", "minimum", math.inf), ("exclusiveMaximum", "maximum", -math.inf)):
        if name in made:
            bound, following = float(made[name]), math.nextafter(made[name], to)
            if abs(following - bound) > SHORTEST_STEP:
                more.append({closed: following})
    return _limited(made, more)


def _hashable(made: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return the schema of a set without items that are not hashable."""
    items = schema.get("items_schema", {"type": "any"})
    if items["type"] == "any":
        return {**made, "items": {"type": ["null", "boolean", "number", "string"]}}
    if items["type"] in _NOT_HASHED or (items["type"] == "model" and items["cls"].__hash__ is None):
        raise UnsupportedError(f"the items of a set must be hashable, got {items['type']!r}")
    return made


def _with_formats(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace names of formats that only Pydantic knows by their schemas."""
    todo: list[Any] = [schema]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        elif isinstance(one, dict):
            name = one.get("format")
            if isinstance(name, str) and name in FORMATS and one.get("type") == "string":
                del one["format"]
                one["allOf"] = [*one.get("allOf", []), FORMATS[name]]
            todo += (value for key, value in one.items() if key not in ("default", "examples", "const", "enum"))
    return schema


def arguments_model(function: Callable[..., Any]) -> type[BaseModel]:
    """Return a model whose fields are the parameters of a callable.

    Raises:
        InvalidConstraintError: The signature cannot be read.
        UnsupportedError: A parameter has no name (`*args`, `**kwargs`, positional-only).
    """
    from pydantic import ConfigDict, create_model

    try:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(function, include_extras=True)
    except (TypeError, ValueError, NameError) as problem:
        raise InvalidConstraintError(f"cannot read the signature of {function!r}: {problem}") from problem
    fields: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UnsupportedError(
                f"the parameter {parameter} of {function!r} is not supported: parameters must be named"
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (hints.get(name, Any), default)
    title = getattr(function, "__name__", type(function).__name__)
    return create_model(title, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
