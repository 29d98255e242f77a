"""A JSON Schema generator for Pydantic, with restrictions that Pydantic's generator omits.

Pydantic omits them for decimals, bytes, dates with bounds, URLs, numeric keys and discriminators, among others. A
schema allows only JSON texts that Pydantic accepts for the type, in some cases not all of them. A type without such a
schema raises `UnsupportedError`.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
import typing
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from guideway.arguments import short_repr
from guideway.caching import cached
from guideway.errors import InvalidConstraintError, UnsupportedError
from guideway.frontends.python_types.core_schemas import OF_STRINGS, check_shared, check_strict, strict_of
from guideway.frontends.python_types.json_strings import json_pattern
from guideway.frontends.python_types.patterns import ecma_pattern
from guideway.frontends.python_types.probes import (
    accepts,
    is_encoded_str,
    key_texts,
    length_bound,
    other_bound,
    read_from_json,
    special,
)
from guideway.frontends.python_types.texts import (
    FORMATS,
    NOT_PYTHON,
    STRIPPED,
    dates,
    past_or_future,
    time_zones,
    url,
)
from guideway.jsontext.pointer import pointer

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import GenerateJsonSchema

__all__ = ["arguments_model", "schema_generator"]

_KEYS = frozenset({"str", "any", "literal", "enum", "date", "datetime", "time", "uuid", "int"})
_INTEGER_KEY = {"pattern": "^(0|-?[1-9][0-9]{0,18})$"}
_NO_LEAP_SECOND = {"not": {"pattern": ":60"}}

SHORTEST_PLACES = 16
"""The maximum number of digits after the point of numbers that the generation profile writes.

It is larger if the bounds of the numbers have 16 or more digits after the point.
"""

_NOT_HASHED = frozenset({"list", "dict", "set", "typed-dict"})

_OF_CORE = {*OF_STRINGS, "validate_by_alias", "validate_by_name"}
"""The options of a configuration that a class without one has from the core schema."""

_LARGEST = int(sys.float_info.max)
_LARGE_DIGITS = 307
"""Numbers with at most this number of digits are floats, also if they are rounded up to a number with one digit more."""

_NO_ENDLESS_TIME = {"not": {"pattern": "[0-9]{7}"}}


@cached(1)
def schema_generator() -> type[GenerateJsonSchema]:
    """Return the generator class, for the parameter `schema_generator` of Pydantic's functions."""
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import PydanticOmit

    class Generator(GenerateJsonSchema):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.names: dict[int, str] = {}
            """The names of fields by the `id` of their core schemas, for errors."""
            self.definitions_of_core: list[Any] = []
            """The core schemas that references refer to. Defaults are validated with them."""
            self.core_configs: list[Any] = []
            """The core configurations of the enclosing models, the innermost last."""

        @property
        def _json_bytes(self) -> str:
            """How bytes are written in JSON: "utf8", "base64" or "hex". Pydantic before 2.9 always uses "utf8"."""
            return getattr(self._config, "val_json_bytes", "utf8")

        def generate_inner(self, schema: Any) -> dict[str, Any]:
            found = self._own_schema(schema)
            if found is None:
                return super().generate_inner(schema)
            if "ref" not in schema:
                return found
            defined, reference = self.get_cache_defs_ref_schema(schema["ref"])
            self.definitions[defined] = found
            return reference

        def _own_schema(self, schema: Any) -> dict[str, Any] | None:
            """Return the schema of a core schema, never a reference to it. None: Pydantic's own schema is kept."""
            if is_encoded_str(schema) and _changes_case(schema["schema"], self._config):
                raise UnsupportedError(
                    "encoded text is not supported with str_to_lower or str_to_upper, which change it before it is decoded"
                )
            found = special(schema, self._json_bytes)
            if found is None and _is_strict_str(schema, self._config.strict):
                plain: Any = {name: value for name, value in schema.items() if name != "ref"}
                found = super().generate_inner(plain)
            if found is not None:
                config = self._config
                if not config.str_min_length and config.str_max_length is None:
                    return found
                # The configuration of the model can bound the length of all strings. These bounds also apply to the
                # strings of a type that Pydantic defines by a function.
                return {"allOf": [found, {"if": {"type": "string"}, "then": self.str_schema({"type": "str"})}]}
            if (name := other_bound(schema)) is not None:
                raise UnsupportedError(
                    f"{name} is not supported for this type; in a union, write it on each type, or check it in a validator"
                )
            if (bound := length_bound(schema)) is not None:
                self._check_least({"min_length": bound[1]} if bound[0] == "min" else {}, *_counted(schema["schema"]))
                made = self._own_schema(schema["schema"])
                return _with_length(self.generate_inner(schema["schema"]) if made is None else made, *bound)
            return None

        def decimal_schema(self, schema: Any) -> dict[str, Any]:
            return _decimal(schema)

        def bytes_schema(self, schema: Any) -> dict[str, Any]:
            if "min_length" in schema or "max_length" in schema:
                raise UnsupportedError("length bounds on bytes are not supported; use a str with length bounds")
            written = self._json_bytes
            return (
                {"type": "string"} if written == "utf8" else dict(FORMATS["hex" if written == "hex" else "base64url"])
            )

        def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
            check_strict(schema, self._config.strict)
            check_shared(schema)
            return _with_formats(super().generate(schema, mode))

        def definitions_schema(self, schema: Any) -> dict[str, Any]:
            self.definitions_of_core += schema["definitions"]
            return super().definitions_schema(schema)

        def model_schema(self, schema: Any) -> dict[str, Any]:
            self.core_configs.append(schema.get("config"))
            try:
                return super().model_schema(schema)
            finally:
                self.core_configs.pop()

        def _with_core_config(self, schema: Any) -> AbstractContextManager[None]:
            """Use the configuration in a core schema, which a class without one has from the model around it."""
            given = schema.get("config") or {}
            return self._config_wrapper_stack.push(
                {**self._config.config_dict, **{name: value for name, value in given.items() if name in _OF_CORE}}
            )

        def dataclass_schema(self, schema: Any) -> dict[str, Any]:
            self.core_configs.append(schema.get("config"))
            try:
                with self._with_core_config(schema):
                    return super().dataclass_schema(schema)
            finally:
                self.core_configs.pop()

        def field_is_required(self, field: Any, total: bool) -> bool:
            """Return whether the field must be given. It must also be given if Pydantic would reject its default."""
            return super().field_is_required(field, total) or self._has_invalid_default(field["schema"])

        def _has_invalid_default(self, schema: Any) -> bool:
            if schema["type"] != "default" or "default" not in schema:
                return False
            if not schema.get("validate_default", self._config.validate_default):
                return False
            return not accepts(
                schema["schema"], schema["default"], self.definitions_of_core, next(reversed(self.core_configs), None)
            )

        def fraction_schema(self, schema: Any) -> dict[str, Any]:
            if schema.keys() - {"type", "metadata", "ref", "strict", "serialization"}:
                raise UnsupportedError("a Fraction with bounds is not supported; check them in a validator")
            return dict(FORMATS["fraction"])

        def missing_sentinel_schema(self, schema: Any) -> dict[str, Any]:
            inner = schema.get("schema")
            if inner is None:
                raise UnsupportedError("MISSING has no JSON text; use it as an alternative of another type")
            made: Any = self.generate_inner(inner)
            return made  # type: ignore[no-any-return]  # of a base class without types

        def str_schema(self, schema: Any) -> dict[str, Any]:
            # The configuration of the model applies to what the type itself does not set.
            config = self._config
            general = {
                "min_length": config.str_min_length or None,
                "max_length": config.str_max_length,
                "strip_whitespace": config.str_strip_whitespace or None,
            }
            whole: Any = {**{name: value for name, value in general.items() if value is not None}, **schema}
            engine = schema.get("regex_engine") or config.regex_engine
            return _string(super().str_schema(whole), whole, engine == "python-re")

        def float_schema(self, schema: Any) -> dict[str, Any]:
            lows, highs = [schema.get("ge"), schema.get("gt")], [schema.get("le"), schema.get("lt")]
            if math.inf in lows or -math.inf in highs:  # Pydantic's schema leaves these bounds out
                return {"not": {}}
            made = super().float_schema(schema)
            if not schema.get("allow_inf_nan", self._config.allow_inf_nan):
                made = _finite(made)
            return _exact_multiples(_rounded(made))

        def literal_schema(self, schema: Any) -> dict[str, Any]:
            """Return the schema without the values that Pydantic reads from no JSON text, such as bytes."""
            expected = [one for one in schema["expected"] if read_from_json(one)]
            if not expected:
                raise UnsupportedError(
                    f"no JSON text is read as Literal[{short_repr(schema['expected'][0])}]; use a Literal of str, int or bool, "
                    "or the Enum itself"
                )
            made: Any = {**schema, "expected": expected}
            return super().literal_schema(made)

        def set_schema(self, schema: Any) -> dict[str, Any]:
            self._check_least(schema, *_counted(schema))
            return _hashable(super().set_schema(schema), schema)

        def frozenset_schema(self, schema: Any) -> dict[str, Any]:
            self._check_least(schema, *_counted(schema))
            return _hashable(super().frozenset_schema(schema), schema)

        def _check_least(self, schema: Any, inner: Any, what: str) -> None:
            """Raise `UnsupportedError` if `min_length` counts equal values once that the JSON text has twice.

            `inner` is the core schema of the counted values, which are `what`.
            """
            if (schema.get("min_length") or 0) > 1 and not _differ(inner, self.definitions_of_core, self._config):
                raise UnsupportedError(
                    f"min_length above 1 is not supported for {what} of which different texts can be equal values; "
                    "use a list"
                )

        def chain_schema(self, schema: Any) -> dict[str, Any]:
            if any(step.get("type") == "is-instance" for step in schema["steps"]):
                raise UnsupportedError("types that are validated by isinstance are not supported")
            if any(
                not step.get("type", "").startswith("function-") and step != {"type": "any"}
                for step in schema["steps"][1:]
            ):
                raise UnsupportedError(
                    "a text that is validated as several types in a row is not supported; use one type"
                )
            return super().chain_schema(schema)

        def is_subclass_schema(self, schema: Any) -> dict[str, Any]:
            raise UnsupportedError("classes as values (type[...]) are not supported")

        def json_schema(self, schema: Any) -> dict[str, Any]:
            inner = schema.get("schema")
            if inner is None or inner["type"] == "any":
                return dict(FORMATS["any json"])
            made = self.generate_inner(inner)
            return {"type": "string", "pattern": f"^{json_pattern(made, dict(self.definitions), self.ref_template)}$"}

        def url_schema(self, schema: Any) -> dict[str, Any]:
            return url(schema.get("allowed_schemes"), schema.get("max_length"))

        def multi_host_url_schema(self, schema: Any) -> dict[str, Any]:
            return url(schema.get("allowed_schemes"), schema.get("max_length"))

        def model_fields_schema(self, schema: Any) -> dict[str, Any]:
            _check_keys((name, field.get("validation_alias")) for name, field in schema["fields"].items())
            self.names.update((id(field), name) for name, field in schema["fields"].items())
            return self._with_other_keys(super().model_fields_schema(schema), schema, schema["fields"].items())

        def dataclass_args_schema(self, schema: Any) -> dict[str, Any]:
            fields = [field for field in schema["fields"] if field.get("init", True)]  # the others are not read
            schema = {**schema, "fields": fields}
            _check_keys((field["name"], field.get("validation_alias")) for field in fields)
            self.names.update((id(field), field["name"]) for field in schema["fields"])
            named = [(field["name"], field) for field in fields]
            schema["config"] = next(reversed(self.core_configs), None)  # of the dataclass
            return self._with_other_keys(super().dataclass_args_schema(schema), schema, named)

        def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
            _check_keys((name, field.get("validation_alias")) for name, field in schema["fields"].items())
            self.names.update((id(field), name) for name, field in schema["fields"].items())
            with self._with_core_config(schema):
                return self._with_other_keys(super().typed_dict_schema(schema), schema, schema["fields"].items())

        def _with_other_keys(
            self, made: dict[str, Any], schema: Any, fields: Iterable[tuple[str, Any]]
        ) -> dict[str, Any]:
            """Return the schema of an object, in which no other key is read as a field.

            Other keys of a field are further aliases and, if the configuration says so, its name. They can be keys of
            other fields, and with `extra="allow"` further keys. One is only allowed together with the key of the field.
            """
            config, own = schema.get("config") or {}, self._config
            if own.validate_by_alias is False or config.get("validate_by_alias") is False:
                return made
            is_open = "allow" in (schema.get("extra_behavior"), config.get("extra_fields_behavior"), own.extra)
            by_name = any((own.validate_by_name, own.populate_by_name, config.get("validate_by_name")))
            known = made.get("properties", {})
            needed: dict[str, list[str]] = {}
            never: dict[str, Any] = {}
            for name, field in fields:
                key, before, after = _keys_of(name, field.get("validation_alias"))
                for other in before:
                    if other in known:
                        raise UnsupportedError(
                            f"a field that is first read from a path of keys is not supported if another key of the "
                            f"object is {short_repr(other)}"
                        )
                    never[other] = {"not": {}}
                for other in [*after, name] if by_name else after:
                    if other != key and key not in made.get("required", ()) and (is_open or other in known):
                        needed.setdefault(other, []).append(key)
            if is_open and never:
                made = {**made, "properties": {**known, **never}}
            return {**made, "dependentRequired": needed} if needed else made

        def _in_field(self, field: Any, made: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
            """Return the schema of a field, which `made` returns.

            An `UnsupportedError` in it gets the JSON Pointer of the field.
            """
            try:
                alias = field.get("validation_alias")
                if isinstance(alias, list) and not any(isinstance(path, list) and len(path) == 1 for path in alias):
                    raise UnsupportedError(
                        f"a field that is read from a path of keys is not supported: {short_repr(alias)}"
                    )
                try:
                    return made(field)
                except PydanticOmit:
                    if not self.field_is_required(field, total=True):
                        raise
                    raise UnsupportedError("a required field without a JSON Schema is not supported") from None
            except UnsupportedError as error:
                place = pointer("", self.names[id(field)]) + (error.place or "")
                why = str(error) if error.place is None else str(error).removeprefix(f"{error.place}: ")
                raise UnsupportedError(f"{place}: {why}", place) from error

        def model_field_schema(self, schema: Any) -> dict[str, Any]:
            return self._in_field(schema, super().model_field_schema)

        def dataclass_field_schema(self, schema: Any) -> dict[str, Any]:
            return self._in_field(schema, super().dataclass_field_schema)

        def typed_dict_field_schema(self, schema: Any) -> dict[str, Any]:
            return self._in_field(schema, super().typed_dict_field_schema)

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
            return {
                "anyOf": [{**super().timedelta_schema(schema), **_NO_ENDLESS_TIME}, dict(FORMATS["signed duration"])]
            }

        def enum_schema(self, schema: Any) -> dict[str, Any]:
            """Return the schema of an enum without arrays and objects: Pydantic does not accept their JSON texts."""
            made = super().enum_schema(schema)
            values = made.get("enum")
            if isinstance(values, list):
                made["enum"] = [value for value in values if not isinstance(value, (list, dict))]
            return made

        def _mapping(self, schema: Any, made_by: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
            made = _with_keys(schema.get("keys_schema", {"type": "any"}), schema, made_by)
            self._check_least(schema, *_counted(schema))
            return made

        def dict_schema(self, schema: Any) -> dict[str, Any]:
            return self._mapping(schema, super().dict_schema)

        def ordered_dict_schema(self, schema: Any) -> dict[str, Any]:
            return self._mapping(schema, super().ordered_dict_schema)

        def frozendict_schema(self, schema: Any) -> dict[str, Any]:
            return self._mapping(schema, super().frozendict_schema)

        def counter_schema(self, schema: Any) -> dict[str, Any]:
            return self._mapping(schema, super().counter_schema)

        def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
            """Return the schema of a union. The discriminator is required, because Pydantic ignores its default."""
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


def _changes_case(schema: Any, config: Any) -> bool:
    """Return whether Pydantic changes the case of a str. `config`: the configuration of the model."""
    return bool(schema.get("to_lower", config.str_to_lower) or schema.get("to_upper", config.str_to_upper))


def _is_strict_str(schema: Any, strict: bool | None) -> bool:
    """Return whether Pydantic reads a type as a str because of strict mode. These types are IP addresses.

    `strict`: the configuration of the model.
    """
    if schema["type"] != "lax-or-strict" or not strict_of(schema, strict):
        return False
    inner = schema["strict_schema"]
    while inner is not None and inner["type"] != "str":
        inner = inner.get("json_schema", inner.get("schema"))
    return inner is not None


def _with_length(made: dict[str, Any], name: str, value: int) -> dict[str, Any]:
    """Return a schema with a bound on its number of characters, items or members. `name`: "min" or "max"."""
    keyword = {"string": "Length", "array": "Items", "object": "Properties"}.get(made.get("type", ""))
    if keyword is None:
        raise UnsupportedError(f"{name}_length is not supported for this type; check it in a validator")
    known = made.get(f"{name}{keyword}")
    most = max if name == "min" else min
    return {**made, f"{name}{keyword}": value if known is None else most(known, value)}


def _with_keys(keys: Any, schema: Any, made_by: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a mapping whose JSON keys Pydantic reads as the type of the keys.

    `keys` is the core schema of the keys. `made_by` returns Pydantic's schema, in which the pattern of the keys asserts
    nothing about other keys. Raises `UnsupportedError` for other types of keys.
    """
    if keys.get("type") not in _KEYS:
        raise UnsupportedError(f"dict keys of type {keys.get('type')!r} are not supported; use a list of pairs")
    made = made_by(schema)
    if keys.get("type") == "int":
        if keys.keys() - {"type", "metadata", "ref", "strict"}:
            raise UnsupportedError("int keys with bounds are not supported; use plain int, or a list of pairs")
        made["propertyNames"] = _INTEGER_KEY
    if keys["type"] in ("literal", "enum"):
        texts = key_texts(keys)
        if not texts:
            raise UnsupportedError("no dict key is read as a value of this Literal or Enum; use a list of pairs")
        made["propertyNames"] = {"enum": texts}
    for pattern, values in made.pop("patternProperties", {}).items():
        made["additionalProperties"] = values
        made["propertyNames"] = {**made.get("propertyNames", {}), "pattern": pattern}
    return made


def _decimal(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a decimal: a JSON number with the bounds and the maximum number of digits of the type.

    Pydantic reads a number with a fraction as a float, and the shortest text of the float as a decimal.
    """
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
    made = _finite(made, digits or 0, decimal=True)
    known = [given for given in (digits, places) if given is not None]
    if made["type"] == "number":
        made = _rounded(made, decimal=True, places=max(known, default=0), at_most=min(known, default=None))
    if (kept := _places(made.get("multipleOf", 0))) > 0:
        made = _between(made, 10.0 ** (15 - kept))  # floats keep 15 digits
    elif "multipleOf" in made and (made["type"] == "integer" or (digits or 0) > 27 or _beyond(made, 10**27)):
        made = _between(made, 10**27 * int(made["multipleOf"]))  # Pydantic's quotients have at most 28 digits
    both: list[dict[str, Any]] = []
    if places is not None:
        both.append(_digits(places, None))
    if digits is not None:  # the digits before and after the point together are limited
        ways = [_digits(n, digits - n) for n in range(digits + 1)]
        with_places = None if places is None else _digits(min(places, digits), max(digits - places, 0))
        both.append({"anyOf": ways} if with_places is None else with_places)
    return _limited(made, both)


def _beyond(made: dict[str, Any], limit: int) -> bool:
    """Return whether the schema of a number has a bound of at least this magnitude."""
    bounds = [made.get(name, 0) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")]
    return any(bound == bound and math.inf > abs(bound) >= limit for bound in bounds)  # NaN is refused later


def _finite(made: dict[str, Any], digits: int = 0, *, decimal: bool = False) -> dict[str, Any]:
    """Return the schema of numbers, with bounds that exclude the texts of numbers beyond the largest float.

    Texts have no more digits before the point than the bounds have, so numbers without such bounds are small enough.

    Args:
        made: The schema, with the bounds of the type.
        digits: The maximum number of digits that the type allows; 0: any.
        decimal: Whether Pydantic reads integers exactly, of any size.
    """
    if digits < _LARGE_DIGITS and not _beyond(made, 10**_LARGE_DIGITS):
        return made
    low = max((made[name] for name in ("minimum", "exclusiveMinimum") if name in made), default=None)
    high = min((made[name] for name in ("maximum", "exclusiveMaximum") if name in made), default=None)
    if (low is not None and low > _LARGEST) or (high is not None and high < -_LARGEST):
        return {**made, "type": "integer"} if decimal else {"not": {}}
    kept = {
        name: value
        for name, value in made.items()
        if name not in ("exclusiveMinimum", "exclusiveMaximum") or abs(value) <= _LARGEST
    }
    least, most = -_LARGEST if low is None else max(low, -_LARGEST), _LARGEST if high is None else min(high, _LARGEST)
    return {**kept, "minimum": least, "maximum": most}


def _digits(places: int, whole: int | None) -> dict[str, Any]:
    """Return the schema of numbers with at most `places` digits after the point and `whole` (None: any) before it."""
    made: dict[str, Any] = {"multipleOf": Decimal(1).scaleb(-places)}
    if whole is not None:
        made |= {"exclusiveMinimum": -(Decimal(10) ** whole), "exclusiveMaximum": Decimal(10) ** whole}
    if whole == 0:  # "0" has a digit before the point
        made["not"] = {"const": 0}
    return _rounded(made, decimal=True, places=places, at_most=places)


def _limited(made: dict[str, Any], more: list[dict[str, Any]]) -> dict[str, Any]:
    return {**made, "allOf": [*made.get("allOf", ()), *more]} if more else made


def _without_bounds(schema: Any, what: str) -> None:
    if any(schema.get(name) is not None for name in ("ge", "gt", "le", "lt", "multiple_of")):
        raise UnsupportedError(
            f"{what} with bounds is not supported; use it without bounds and check them in a validator"
        )


def _keys_of(name: str, alias: Any) -> tuple[str, list[str], list[str]]:
    """Return the key that is written for a field, and the keys with which its aliases before and after it begin."""
    if not isinstance(alias, list):
        return alias if isinstance(alias, str) else name, [], []
    paths = [path for path in alias if isinstance(path, list)]
    at = next((number for number, path in enumerate(paths) if len(path) == 1), len(paths))
    firsts = [path[0] for path in paths]
    return (firsts[at] if at < len(paths) else name), firsts[:at], firsts[at + 1 :]


def _check_keys(fields: Iterable[tuple[str, Any]]) -> None:
    """Raise `UnsupportedError` if two fields, given with their aliases, are read from the same key."""
    known: set[str] = set()
    for name, alias in fields:
        key, _, _ = _keys_of(name, alias)
        if key in known:
            raise UnsupportedError(f"two fields that are read from the key {short_repr(key)} are not supported")
        known.add(key)


def _string(made: dict[str, Any], schema: Any, python: bool) -> dict[str, Any]:
    """Return the schema of a str. `python`: whether Pydantic uses Python's `re` for patterns, as for compiled ones."""
    pattern = schema.get("pattern")
    if isinstance(pattern, re.Pattern) and pattern.flags & ~int(re.UNICODE):
        raise UnsupportedError(
            f"a compiled pattern with flags is not supported: {short_repr(pattern)}; write the flags inline"
        )
    if "pattern" in made:
        made["pattern"] = ecma_pattern(made["pattern"], python=python or isinstance(pattern, re.Pattern))
    more = [{"pattern": STRIPPED}] if schema.get("strip_whitespace") else []
    if schema.get("ascii_only"):
        more.append({"pattern": r"^[\x00-\x7f]*$"})
    return _limited(made, more)


def _rounded(
    made: dict[str, Any], *, decimal: bool = False, places: int = 0, at_most: int | None = None
) -> dict[str, Any]:
    """Return the schema of floats, changed so that no written number rounds to a number beyond a bound.

    If a number next to a bound could round to a number that is not allowed, the next float that is allowed is an
    inclusive bound.

    Args:
        made: The schema, with the bounds of the type.
        decimal: Whether the float is then read as a decimal, whose bounds need not be floats.
        places: A number of digits after the point that the type may allow.
        at_most: The number of digits after the point that it allows; None: any.
    """
    more: list[dict[str, Any]] = []
    low, high = made.get("exclusiveMinimum", -math.inf), made.get("exclusiveMaximum", math.inf)
    if not decimal and math.nextafter(low, math.inf) >= high:
        more.append({"not": {}})
    bounds = [made[name] for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if name in made]
    waiting: list[tuple[str, Decimal, float]] = []
    for name, closed, to in (
        ("exclusiveMinimum", "minimum", math.inf),
        ("exclusiveMaximum", "maximum", -math.inf),
        ("minimum", "minimum", math.inf),
        ("maximum", "maximum", -math.inf),
    ):
        if name in made and at_most is not None and abs(made[name]) < 10.0 ** (15 - at_most):
            continue  # floats keep the 15 digits of numbers next to this bound
        if name in made and (decimal or name != closed):
            first = _nearest(made[name], to, name == closed, decimal)
            if math.isfinite(first):
                waiting.append((closed, _exact(made[name]), first))
    while True:
        # Bounds with more digits allow numbers with more digits, which can be nearer to another bound.
        step = Decimal(1).scaleb(-max([SHORTEST_PLACES, places, *(_places(bound) + 1 for bound in bounds)]))
        found = next((one for one in waiting if abs(_exact(one[2]) - one[1]) > step), None)
        if found is None:
            return _limited(made, more)
        waiting.remove(found)
        more.append({found[0]: found[2]})
        bounds.append(found[2])


def _nearest(bound: Any, to: float, closed: bool, decimal: bool) -> float:
    """Return the float nearest to a bound that the bound allows, in the direction of the infinity `to`."""
    first, limit = float(bound), _exact(bound) if decimal else _exact(float(bound))
    while math.isfinite(first):
        beyond = (_exact(first) - limit) * (1 if to > 0 else -1)
        if beyond > 0 or (closed and beyond == 0):
            break
        first = math.nextafter(first, to)
    return first


def _exact(number: Any) -> Decimal:
    """Return a number as the decimal with its shortest text."""
    if isinstance(number, Decimal):
        return number
    return Decimal(float.__repr__(number) if isinstance(number, float) else int(number))


def _places(number: Any) -> int:
    """Return the number of digits after the point of a number in plain notation."""
    exponent = _exact(number).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _exact_multiples(made: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of floats, changed so that Pydantic finds each written multiple to be a multiple.

    Pydantic divides floats. The written numbers are bounded so that the multiples of a sum of few powers of two are
    floats. Other multiples are bounded so that the error of a float is less than Pydantic's tolerance of 1e-9.

    Raises `UnsupportedError` if the bounds of the type allow no such number.
    """
    if "multipleOf" not in made:
        return made
    numerator, denominator = float(made["multipleOf"]).as_integer_ratio()
    if numerator & (numerator - 1) == 0:  # a power of two: each float that a multiple rounds to is a multiple
        return made
    exact = _exact(made["multipleOf"]) == Decimal(float(made["multipleOf"]))
    return _between(made, 2**53 / denominator if exact else 2.0**22)


def _between(made: dict[str, Any], largest: float) -> dict[str, Any]:
    """Return the schema of multiples with a bound on their magnitude.

    Raises `UnsupportedError` if the bounds of the type allow no such number.
    """
    lows = [made[name] for name in ("minimum", "exclusiveMinimum") if name in made]
    highs = [made[name] for name in ("maximum", "exclusiveMaximum") if name in made]
    if max(lows, default=0) >= largest or min(highs, default=0) <= -largest:
        raise UnsupportedError(
            f"multiple_of={made['multipleOf']} with bounds beyond {Decimal(largest):.6g} is not supported, because Pydantic's "
            "arithmetic is not exact there; use an int"
        )
    return _limited(made, [{"minimum": -largest, "maximum": largest}])


def _counted(schema: Any) -> tuple[Any, str]:
    """Return the core schema of the values in a core schema that are counted once if they are equal, and their name.

    Validators around a set or a mapping are skipped. For other types, the core schema is that of None.
    """
    while "keys_schema" not in schema and schema["type"] not in ("set", "frozenset"):
        inner = next((schema[name] for name in ("schema", "lax_schema", "json_schema") if name in schema), None)
        if inner is None:
            return {"type": "none"}, "values"
        schema = inner
    if "keys_schema" in schema:
        keys = schema["keys_schema"]
        return {"type": "str"} if keys["type"] == "any" else keys, "keys"  # keys of any type are texts
    return schema.get("items_schema", {"type": "any"}), "items of a set"


def _differ(schema: Any, definitions: list[Any], config: Any) -> bool:
    """Return whether JSON values that are not equal are always read as values that are not equal, as far as is known.

    Args:
        schema: The core schema of the values.
        definitions: The core schemas that it may refer to.
        config: The configuration of the model.
    """
    todo = [schema]
    numeric: set[bool] = set()  # whether numbers (False) and booleans (True) are read
    followed: set[str] = set()
    while todo:
        one = todo.pop()
        kind = one["type"]
        if kind == "nullable":
            todo.append(one["schema"])
        elif kind == "definition-ref":
            if one["schema_ref"] not in followed:
                followed.add(one["schema_ref"])
                todo += [found for found in definitions if found["ref"] == one["schema_ref"]]
        elif kind == "tuple":
            todo += one["items_schema"]
        elif kind == "union":
            todo += [choice[0] if isinstance(choice, tuple) else choice for choice in one["choices"]]
        elif kind in ("literal", "enum"):
            values = one["expected"] if kind == "literal" else [member.value for member in one["members"]]
            numeric |= {type(value) is bool for value in values if isinstance(value, (bool, int, float))}
        elif kind == "str":
            if _changes_case(one, config):
                return False
            if followed and one.get("strip_whitespace", config.str_strip_whitespace):
                return False  # the schema of a definition does not have the configuration
        elif kind in ("int", "bool"):
            numeric.add(kind == "bool")
        elif kind not in ("none", "date"):
            return False
    return len(numeric) < 2  # True is equal to 1


def _hashable(made: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return the schema of a set. If the items may have any type, it excludes arrays and objects: they are not
    hashable.

    Raises `UnsupportedError` if the type of the items is not hashable, as far as this is known without validators.
    """
    items = schema.get("items_schema", {"type": "any"})
    if items["type"] == "any":
        return {**made, "items": {"type": ["null", "boolean", "number", "string"]}}
    todo = [items]
    while todo:
        one = todo.pop()
        kind = one["type"]
        if kind in _NOT_HASHED or (kind in ("model", "dataclass") and one["cls"].__hash__ is None):
            raise UnsupportedError(f"the items of a set must be hashable, got {short_repr(kind)}")
        if kind == "nullable":
            todo.append(one["schema"])
        elif kind == "tuple":
            todo += one["items_schema"]
        elif kind == "union":
            todo += [choice[0] if isinstance(choice, tuple) else choice for choice in one["choices"]]
        elif kind == "tagged-union":
            todo += one["choices"].values()
    return made


def _with_formats(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace names of formats that only Pydantic knows by their schemas. `schema` is modified and returned."""
    todo: list[Any] = [schema]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        elif isinstance(one, dict):
            name = one.get("format")
            if name == "zoneinfo" and one.get("type") == "string":
                del one["format"]
                one.update(time_zones())
            if name == "regex" and one.get("type") == "string":
                one["not"] = {"pattern": NOT_PYTHON}
            if isinstance(name, str) and name in FORMATS and one.get("type") == "string":
                del one["format"]
                one["allOf"] = [*one.get("allOf", []), FORMATS[name]]
            todo += (value for key, value in one.items() if key not in ("default", "examples", "const", "enum"))
    return schema


def arguments_model(function: Callable[..., Any]) -> type[BaseModel]:
    """Return a model whose fields are the parameters of a callable. It forbids other fields.

    Raises:
        InvalidConstraintError: The signature or its annotations cannot be read.
        UnsupportedError: A parameter cannot be passed by its name (`*args`, `**kwargs`, positional-only).
    """
    from pydantic import ConfigDict, create_model

    try:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(function, include_extras=True)
    except (TypeError, ValueError, NameError) as problem:
        raise InvalidConstraintError(f"cannot read the signature of {short_repr(function)}: {problem}") from problem
    fields: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UnsupportedError(
                f"the parameter {parameter} of {short_repr(function)} is not supported: parameters must be named"
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (hints.get(name, Any), default)
    title = getattr(function, "__name__", type(function).__name__)
    return create_model(title, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
