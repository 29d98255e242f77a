"""Every keyword of JSON Schema: what its value must be, which types it speaks about, and what becomes of it here.

To enforce a keyword that is refused now: lower it in lowering.py, and change its row here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from guideway.errors import InvalidConstraint, Unsupported

__all__ = ["ALL_TYPES", "KEYWORDS", "Dialect", "Keyword", "check_keyword", "dialect_of", "meet", "name_of", "pointer"]

ALL_TYPES = frozenset({"null", "boolean", "number", "string", "array", "object"})
TYPE_NAMES = ALL_TYPES | {"integer"}


@dataclass(frozen=True, slots=True)
class Keyword:
    """A row: the shape of the value, the types it speaks about, and when it says nothing at all."""

    expected: str
    fits: Callable[[object], bool]
    types: frozenset[str] = ALL_TYPES
    refused: bool = False
    idle: Callable[[object], bool] = lambda value: False


def _is_int(value: object) -> bool:
    if isinstance(value, Decimal):
        return value >= 0 and value == value.to_integral_value()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _is_schema(value: object) -> bool:
    return isinstance(value, (dict, bool))


def _is_schemas(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


def _is_schema_map(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_schema, value.values()))


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_type(value: object) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPE_NAMES for name in names)


def _free(value: object) -> bool:
    return value is True or value == {}


_NUMBER = frozenset({"number"})
_STRING = frozenset({"string"})
_ARRAY = frozenset({"array"})
_OBJECT = frozenset({"object"})
_COUNT = ("a whole number, not negative", _is_int)
_LIMIT = ("a number", _is_number)
_SCHEMA = ("a schema (an object or a boolean)", _is_schema)
_SCHEMAS = ("a list of schemas, not empty", _is_schemas)
_SCHEMA_MAP = ("an object of schemas", _is_schema_map)
_STR = ("a string", lambda value: isinstance(value, str))
_BOOL = ("a boolean", lambda value: isinstance(value, bool))
_ANY = ("anything", lambda value: True)
_MAP = ("an object", lambda value: isinstance(value, dict))

KEYWORDS: dict[str, Keyword] = {
    "type": Keyword(f"one of {', '.join(sorted(TYPE_NAMES))}, or a list of them", _is_type),
    "enum": Keyword("a list", lambda value: isinstance(value, list)),
    "const": Keyword(*_ANY),
    "anyOf": Keyword(*_SCHEMAS),
    "allOf": Keyword(*_SCHEMAS),
    "oneOf": Keyword(*_SCHEMAS),
    "$ref": Keyword(*_STR),
    "properties": Keyword(*_SCHEMA_MAP, _OBJECT),
    "required": Keyword("a list of strings", _is_names, _OBJECT),
    "additionalProperties": Keyword(*_SCHEMA, _OBJECT),
    "items": Keyword(*_SCHEMA, _ARRAY),
    "prefixItems": Keyword(*_SCHEMAS, _ARRAY),
    "additionalItems": Keyword(*_SCHEMA, _ARRAY),
    "minItems": Keyword(*_COUNT, _ARRAY),
    "maxItems": Keyword(*_COUNT, _ARRAY),
    "minLength": Keyword(*_COUNT, _STRING),
    "maxLength": Keyword(*_COUNT, _STRING),
    "pattern": Keyword(*_STR, _STRING),
    "format": Keyword(*_STR, _STRING),
    "minimum": Keyword(*_LIMIT, _NUMBER),
    "maximum": Keyword(*_LIMIT, _NUMBER),
    "exclusiveMinimum": Keyword(*_LIMIT, _NUMBER),
    "exclusiveMaximum": Keyword(*_LIMIT, _NUMBER),
    "multipleOf": Keyword(*_LIMIT, _NUMBER, refused=True),
    "not": Keyword(*_SCHEMA, refused=True, idle=lambda value: value is False),
    "if": Keyword(*_SCHEMA, refused=True),
    "$dynamicRef": Keyword(*_STR, refused=True),
    "$recursiveRef": Keyword(*_STR, refused=True),
    "patternProperties": Keyword(*_SCHEMA_MAP, _OBJECT, refused=True, idle=lambda value: value == {}),
    "propertyNames": Keyword(*_SCHEMA, _OBJECT, refused=True, idle=_free),
    "minProperties": Keyword(*_COUNT, _OBJECT, refused=True, idle=lambda value: value == 0),
    "maxProperties": Keyword(*_COUNT, _OBJECT, refused=True),
    "dependentRequired": Keyword(*_MAP, _OBJECT, refused=True, idle=lambda value: value == {}),
    "dependentSchemas": Keyword(*_SCHEMA_MAP, _OBJECT, refused=True, idle=lambda value: value == {}),
    "dependencies": Keyword(*_MAP, _OBJECT, refused=True, idle=lambda value: value == {}),
    "unevaluatedProperties": Keyword(*_SCHEMA, _OBJECT, refused=True, idle=_free),
    "unevaluatedItems": Keyword(*_SCHEMA, _ARRAY, refused=True, idle=_free),
    "contains": Keyword(*_SCHEMA, _ARRAY, refused=True),
    "uniqueItems": Keyword(*_BOOL, _ARRAY, refused=True, idle=lambda value: value is False),
}
"""Every keyword that asserts something. All others are annotations, and so is what the specification does not know:
`then` and `else` without `if`, `minContains` without `contains`, `nullable`, `discriminator`.
"""

_SINCE_2019 = frozenset({"dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the drafts, as far as it matters here."""

    name: str
    unknown: frozenset[str] = frozenset()  # assertion keywords of other drafts: annotations in this one
    ref_alone: bool = False  # `$ref` hides the keywords beside it
    items_list: bool = False  # `items` may be a list, with `additionalItems`


_OLD = frozenset({"prefixItems", "$dynamicRef"})
_DIALECTS = {
    "json-schema.org/draft/2020-12/schema": Dialect(
        "2020-12", frozenset({"dependencies", "$recursiveRef", "additionalItems"})
    ),
    "json-schema.org/draft/2019-09/schema": Dialect("2019-09", _OLD | {"dependencies"}, items_list=True),
    "json-schema.org/draft-07/schema": Dialect("draft-07", _OLD | _SINCE_2019 | {"$recursiveRef"}, True, True),
    "json-schema.org/draft-06/schema": Dialect("draft-06", _OLD | _SINCE_2019 | {"$recursiveRef", "if"}, True, True),
}
_DEFAULT = _DIALECTS["json-schema.org/draft/2020-12/schema"]


def dialect_of(schema: object) -> Dialect:
    """The dialect that a document names with `$schema`; 2020-12 where it names none."""
    name = schema.get("$schema") if isinstance(schema, dict) else None
    if name is None:
        return _DEFAULT
    if not isinstance(name, str):
        raise InvalidConstraint("at '/$schema': expected a string", "/$schema")
    found = _DIALECTS.get(name.partition("://")[2].rstrip("#"))
    if found is None:
        known = ", ".join(dialect.name for dialect in _DIALECTS.values())
        raise Unsupported(f"at '/$schema': the dialect {name!r} is not supported; these are: {known}", "/$schema")
    return found


def check_keyword(name: str, value: object, place: str, dialect: Dialect) -> Keyword | None:
    """The row of a keyword whose value has been looked at; None for an annotation."""
    row = KEYWORDS.get(name)
    if row is None or name in dialect.unknown:
        return None
    if name == "items" and dialect.items_list and isinstance(value, list):
        row = Keyword("a list of schemas", lambda value: value == [] or _is_schemas(value), _ARRAY)
    if not row.fits(value):
        hint = "; a list of schemas is called prefixItems" if name == "items" and isinstance(value, list) else ""
        raise InvalidConstraint(f"at {place!r}: the value of {name!r} must be {row.expected}{hint}", place)
    return row


def meet(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """The types in both; a number may be an integer."""
    common = left & right
    if "number" not in common and (
        ("integer" in left and "number" in right) or ("number" in left and "integer" in right)
    ):
        common |= {"integer"}
    return common - {"integer"} if "number" in common else common


def pointer(place: str, *names: str | int) -> str:
    """The JSON Pointer of something inside the place."""
    return place + "".join("/" + str(name).replace("~", "~0").replace("/", "~1") for name in names)


def name_of(part: str) -> str:
    """The key that a part of a JSON Pointer stands for."""
    return part.replace("~1", "/").replace("~0", "~")
