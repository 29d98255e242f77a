"""Pydantic's JSON Schema of a type, with what it loses put back: decimals, bytes, keys that are numbers, tags that must
be there, and the signatures of callables."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from guideway.errors import InvalidConstraint, Unsupported

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import GenerateJsonSchema

__all__ = ["arguments_model", "schema_generator"]

_KEYS = frozenset({"str", "any", "literal", "enum", "date", "datetime", "time", "uuid", "int"})
_INTEGER_KEY = {"pattern": "^(0|-?[1-9][0-9]{0,18})$"}
_NO_LEAP_SECOND = {"not": {"pattern": ":60"}}

_NO_ENDLESS_TIME = {"not": {"pattern": "[0-9]{7}"}}


@cache
def schema_generator() -> type[GenerateJsonSchema]:
    """The generator to hand to Pydantic."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            return _decimal(schema)

        def bytes_schema(self, schema: Any) -> dict[str, Any]:
            if "min_length" in schema or "max_length" in schema:
                raise Unsupported("bytes of a given length: JSON counts characters")
            return {"type": "string"}

        def complex_schema(self, schema: Any) -> dict[str, Any]:
            raise Unsupported("values of the type complex")

        def datetime_schema(self, schema: Any) -> dict[str, Any]:
            return {**super().datetime_schema(schema), **_NO_LEAP_SECOND}

        def time_schema(self, schema: Any) -> dict[str, Any]:
            return {**super().time_schema(schema), **_NO_LEAP_SECOND}

        def timedelta_schema(self, schema: Any) -> dict[str, Any]:
            return {**super().timedelta_schema(schema), **_NO_ENDLESS_TIME}

        def enum_schema(self, schema: Any) -> dict[str, Any]:
            """Without members that no JSON text is read as: a tuple is none of `[1, 2]`."""
            made = super().enum_schema(schema)
            values = made.get("enum")
            if isinstance(values, list):
                made["enum"] = [value for value in values if not isinstance(value, (list, dict))]
            return made

        def dict_schema(self, schema: Any) -> dict[str, Any]:
            keys = schema.get("keys_schema", {"type": "any"})
            if keys.get("type") not in _KEYS:
                raise Unsupported(f"a dict whose keys are {keys.get('type')!r}")
            made = super().dict_schema(schema)
            if keys.get("type") == "int":
                if keys.keys() - {"type", "metadata", "ref", "strict"}:
                    raise Unsupported("a dict whose keys are limited integers")
                made["propertyNames"] = _INTEGER_KEY
            return made

        def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
            """Pydantic reads the tag before all else, so it must be there even where it has a default."""
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
    """A JSON number with the bounds, and no more digits than the type allows."""
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
        both.append({"multipleOf": Decimal(1).scaleb(-places)})
    if digits is not None:
        whole = digits - (places or 0)
        if places is None:
            raise Unsupported("a Decimal with max_digits and without decimal_places")
        both.append({"exclusiveMinimum": -(Decimal(10) ** whole), "exclusiveMaximum": Decimal(10) ** whole})
    return {**made, "allOf": both} if both else made


def arguments_model(function: Callable[..., Any]) -> type[BaseModel]:
    """A model whose fields are the parameters of a callable. Raises `Unsupported` for `*args` and the like."""
    from pydantic import ConfigDict, create_model

    try:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(function, include_extras=True)
    except (TypeError, ValueError, NameError) as problem:
        raise InvalidConstraint(f"the signature of {function!r} cannot be read: {problem}") from problem
    fields: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise Unsupported(f"the parameter {parameter} of {function!r}: only those that have a name")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (hints.get(name, Any), default)
    title = getattr(function, "__name__", type(function).__name__)
    return create_model(title, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
