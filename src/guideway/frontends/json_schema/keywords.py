"""The keywords of JSON Schema: the shapes of their values, the types they apply to, differences between drafts."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from guideway.arguments import short_repr
from guideway.errors import InvalidConstraintError
from guideway.jsontext.pointer import pointer, shown

__all__ = [
    "ALL_TYPES",
    "BOOLS_ONCE",
    "DEFAULT_DIALECT",
    "DIALECTS",
    "KEYWORDS",
    "NOTES",
    "SCHEMAS",
    "SCHEMA_LISTS",
    "SCHEMA_MAPS",
    "Dialect",
    "Keyword",
    "check_keyword",
    "dialect_named",
    "without_vocabularies",
]

ALL_TYPES = frozenset({"null", "boolean", "number", "string", "array", "object"})
TYPE_NAMES = ALL_TYPES | {"integer"}


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword.

    Attributes:
        expected: The expected shape of the value, for error messages.
        fits: Returns whether a value has this shape.
        types: The types of instances that the keyword applies to.
    """

    expected: str
    fits: Callable[[object], bool]
    types: frozenset[str] = ALL_TYPES


def _is_int(value: object) -> bool:
    if isinstance(value, Decimal):
        return value >= 0 and value == value.to_integral_value()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


_SCHEMA_TYPES = frozenset({dict, bool})


def _is_schema(value: object) -> bool:
    return isinstance(value, (dict, bool))


def _is_schemas(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


def _is_schema_map(value: object) -> bool:
    return isinstance(value, dict) and _SCHEMA_TYPES.issuperset(map(type, value.values()))


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_type(value: object) -> bool:
    if type(value) is str:
        return value in TYPE_NAMES
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPE_NAMES for name in names)


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


def _is_dependencies(value: object) -> bool:
    return isinstance(value, dict) and all(_is_schema(one) or _is_names(one) for one in value.values())


def _is_name_map(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_names, value.values()))


def _is_divisor(value: object) -> bool:
    return _is_number(value) and value > 0  # type: ignore[operator]  # a number, by the first operand


KEYWORDS: dict[str, Keyword] = {
    "type": Keyword(f"one of {', '.join(sorted(TYPE_NAMES))}, or a list of them", _is_type),
    "enum": Keyword("a list", lambda value: isinstance(value, list)),
    "const": Keyword(*_ANY),
    "anyOf": Keyword(*_SCHEMAS),
    "allOf": Keyword(*_SCHEMAS),
    "oneOf": Keyword(*_SCHEMAS),
    "not": Keyword(*_SCHEMA),
    "if": Keyword(*_SCHEMA),
    "then": Keyword(*_SCHEMA),
    "else": Keyword(*_SCHEMA),
    "$ref": Keyword(*_STR),
    "$dynamicRef": Keyword(*_STR),
    "$recursiveRef": Keyword(*_STR),
    "properties": Keyword(*_SCHEMA_MAP, _OBJECT),
    "patternProperties": Keyword(*_SCHEMA_MAP, _OBJECT),
    "additionalProperties": Keyword(*_SCHEMA, _OBJECT),
    "propertyNames": Keyword(*_SCHEMA, _OBJECT),
    "unevaluatedProperties": Keyword(*_SCHEMA, _OBJECT),
    "required": Keyword("a list of strings", _is_names, _OBJECT),
    "minProperties": Keyword(*_COUNT, _OBJECT),
    "maxProperties": Keyword(*_COUNT, _OBJECT),
    "dependentRequired": Keyword("an object of lists of strings", _is_name_map, _OBJECT),
    "dependentSchemas": Keyword(*_SCHEMA_MAP, _OBJECT),
    "dependencies": Keyword("an object of schemas and lists of strings", _is_dependencies, _OBJECT),
    "items": Keyword(*_SCHEMA, _ARRAY),
    "prefixItems": Keyword(*_SCHEMAS, _ARRAY),
    "additionalItems": Keyword(*_SCHEMA, _ARRAY),
    "unevaluatedItems": Keyword(*_SCHEMA, _ARRAY),
    "contains": Keyword(*_SCHEMA, _ARRAY),
    "minContains": Keyword(*_COUNT, _ARRAY),
    "maxContains": Keyword(*_COUNT, _ARRAY),
    "minItems": Keyword(*_COUNT, _ARRAY),
    "maxItems": Keyword(*_COUNT, _ARRAY),
    "uniqueItems": Keyword(*_BOOL, _ARRAY),
    "minLength": Keyword(*_COUNT, _STRING),
    "maxLength": Keyword(*_COUNT, _STRING),
    "pattern": Keyword(*_STR, _STRING),
    "format": Keyword(*_STR, _STRING),
    "minimum": Keyword(*_LIMIT, _NUMBER),
    "maximum": Keyword(*_LIMIT, _NUMBER),
    "exclusiveMinimum": Keyword(*_LIMIT, _NUMBER),
    "exclusiveMaximum": Keyword(*_LIMIT, _NUMBER),
    "multipleOf": Keyword("a number above 0", _is_divisor, _NUMBER),
}
"""All assertion keywords and applicators, by name.

All other names assert nothing: those in `NOTES`, and names that are not in the specification, such as `nullable`.
`then` and `else` without `if`, and `minContains` without `contains`, have no effect.
"""

NOTES = frozenset(
    name
    for line in (
        "$schema $id id $anchor $dynamicAnchor $recursiveAnchor $vocabulary $comment $defs definitions",
        "title description default examples deprecated readOnly writeOnly",
        "contentEncoding contentMediaType contentSchema",
    )
    for name in line.split()
)
"""The keywords of the specification that assert nothing."""

SCHEMAS = frozenset(
    {
        *("not", "if", "then", "else", "additionalProperties", "propertyNames", "unevaluatedProperties", "items"),
        *("additionalItems", "unevaluatedItems", "contains", "contentSchema"),
    }
)
"""Keywords whose value is a schema. `items` may also be a list of schemas in some drafts."""

SCHEMA_LISTS = frozenset({"anyOf", "allOf", "oneOf", "prefixItems", "items"})
"""Keywords whose value is a list of schemas."""

SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})
"""Keywords whose value is an object of schemas. In `dependencies`, lists of keys are allowed too."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features in which a draft of JSON Schema differs from others. Some of its vocabularies may be missing."""

    name: str
    unknown: frozenset[str] = frozenset()  # keywords of other drafts or missing vocabularies: no assertions here
    ref_alone: bool = False  # `$ref` disables its sibling keywords
    items_list: bool = False  # `items` may be a list, with `additionalItems`
    id_keyword: str = "$id"
    anchors: bool = False  # True: `$anchor` names a schema; False: an identifier with a fragment does
    dynamic_refs: bool = False  # the draft has `$dynamicRef`
    bool_limits: bool = False  # `exclusiveMinimum` is a boolean that modifies `minimum`
    digits_only: bool = False  # the text of an integer has neither fraction nor exponent
    contains_evaluates: bool = False  # items that match `contains` are evaluated for `unevaluatedItems`
    # a schema that has only these names is not checked for warnings
    plain: frozenset[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        plain = (NOTES | KEYWORDS.keys()) - self.unknown - {"format", *(("$ref",) if self.ref_alone else ())}
        object.__setattr__(self, "plain", frozenset(plain))


_SINCE_2020 = frozenset({"prefixItems", "$dynamicRef"})
_SINCE_2019 = frozenset(
    {
        *("dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "minContains"),
        *("maxContains", "$recursiveRef"),
    }
)
_SINCE_7 = frozenset({"if", "then", "else"})
_SINCE_6 = frozenset({"const", "contains", "propertyNames"})
_OLD = _SINCE_2020 | _SINCE_2019

_DRAFT_2020 = Dialect(
    "2020-12",
    frozenset({"$recursiveRef", "additionalItems"}),
    anchors=True,
    dynamic_refs=True,
    contains_evaluates=True,
)
_DRAFT_2019 = Dialect("2019-09", _SINCE_2020, items_list=True, anchors=True)
_DRAFT_7 = Dialect("draft-07", _OLD, ref_alone=True, items_list=True)
_DRAFT_6 = Dialect("draft-06", _OLD | _SINCE_7, ref_alone=True, items_list=True)
_DRAFT_4 = Dialect(
    "draft-04",
    _OLD | _SINCE_7 | _SINCE_6,
    ref_alone=True,
    items_list=True,
    id_keyword="id",
    bool_limits=True,
    digits_only=True,
)
DIALECTS = {
    "json-schema.org/draft/2020-12/schema": _DRAFT_2020,
    "json-schema.org/draft/2019-09/schema": _DRAFT_2019,
    "json-schema.org/draft-07/schema": _DRAFT_7,
    "json-schema.org/draft-06/schema": _DRAFT_6,
    "json-schema.org/draft-04/schema": _DRAFT_4,
    "json-schema.org/schema": _DRAFT_2020,
}
"""The dialects by the URI in `$schema`, without scheme and fragment."""

DEFAULT_DIALECT = _DRAFT_2020

_VOCABULARIES = {
    "validation": frozenset(
        name
        for name, row in KEYWORDS.items()
        if name.lower().startswith(("m", "exclusive"))
        or name in ("type", "enum", "const", "pattern", "required", "dependentRequired", "uniqueItems")
    ),
    "unevaluated": frozenset({"unevaluatedItems", "unevaluatedProperties"}),
    "format-assertion": frozenset(),
}


def without_vocabularies(dialect: Dialect, words: Mapping[str, object]) -> Dialect:
    """Return a dialect without the keywords of the vocabularies that the `$vocabulary` of a metaschema does not list.

    Only the vocabularies of `_VOCABULARIES` can be left out.

    Args:
        dialect: The dialect of the draft.
        words: The value of `$vocabulary`.
    """
    given = {uri.rpartition("/")[2] for uri in words}
    if dialect.name == "2019-09":
        given.add("unevaluated")
    missing = frozenset().union(*(names for name, names in _VOCABULARIES.items() if name not in given))
    return replace(dialect, unknown=dialect.unknown | missing)


def dialect_named(name: str) -> Dialect:
    """Return the dialect with a short name (`"draft-07"`, `"2020-12"`) or a URI.

    Raises:
        InvalidConstraintError: There is no such dialect. The message lists the names.
    """
    for uri, dialect in DIALECTS.items():
        if name in (dialect.name, uri) or name.partition("://")[2].rstrip("#") == uri:
            return dialect
    known = ", ".join(dict.fromkeys(repr(dialect.name) for dialect in DIALECTS.values()))
    raise InvalidConstraintError(f"dialect={short_repr(name)}: expected one of {known}")


_ITEMS_LIST = Keyword("a schema or a list of schemas", lambda value: value == [] or _is_schemas(value), _ARRAY)
_BOOL_LIMIT = Keyword(*_BOOL, _NUMBER)
BOOLS_ONCE = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
"""Keywords whose value was a boolean in draft 4."""


def check_keyword(name: str, value: object, place: str, dialect: Dialect) -> Keyword | None:
    """Check the value of a keyword.

    Args:
        name: The keyword.
        value: Its value.
        place: The JSON Pointer of the schema.
        dialect: The dialect of the schema.

    Returns:
        The `Keyword` with this name; None: the name asserts nothing in this dialect.

    Raises:
        InvalidConstraintError: The value has the wrong shape.
    """
    row = KEYWORDS.get(name)
    if row is None or name in dialect.unknown:
        return None
    if row.fits(value) and not (dialect.bool_limits and row.expected == "a number" and name.startswith("excl")):
        return row
    if name == "items" and dialect.items_list and isinstance(value, list):
        row = _ITEMS_LIST
    elif dialect.bool_limits and name.startswith("exclusive"):
        row = _BOOL_LIMIT
    if not row.fits(value):
        hint = _hint(name, value)
        raise InvalidConstraintError(
            f"at {shown(pointer(place, name))}: the value of {name!r} must be {row.expected}{hint}",
            pointer(place, name),
        )
    return row


_OTHER_NAMES = {
    "integer": ("int", "int32", "int64", "long", "uint"),
    "number": ("float", "double", "decimal", "real", "num", "numeric"),
    "string": ("str", "text", "char", "varchar"),
    "boolean": ("bool",),
    "object": ("dict", "map", "struct", "record", "mapping"),
    "array": ("list", "tuple", "set", "sequence"),
    "null": ("none", "nil", "nonetype"),
}
_ADVICE = {
    "any": "; for {0}, leave the keyword out",
    "enum": "; got {0}: to list the values, write the keyword 'enum' without 'type'",
    "const": "; got {0}: for one value, write the keyword 'const' without 'type'",
    "undefined": "; got {0}: to let a property be absent, leave it out of 'required'",
    "date": "; got {0}, did you mean 'string' with 'format': 'date'?",
    "time": "; got {0}, did you mean 'string' with 'format': 'time'?",
    "datetime": "; got {0}, did you mean 'string' with 'format': 'date-time'?",
    "date-time": "; got {0}, did you mean 'string' with 'format': 'date-time'?",
    "json_object": "; got {0}, which is a response format of an API: the schema of any object has the type 'object'",
    "json_schema": "; got {0}, which is a response format of an API: pass the schema in it",
}
_SIMILAR = 0.75
"""The minimum similarity of a suggestion, as `difflib` counts it.

"interger" and "integer": 0.93; "enum" and "number": 0.6.
"""

_TYPE_OF = {other: name for name, others in _OTHER_NAMES.items() for other in (name, *others)}


def _hint(name: str, value: object) -> str:
    """Return what the author of a schema may have meant by an invalid value, for the error message. "" if not known."""
    if name == "items" and isinstance(value, list):
        return (
            '; a list of schemas is called prefixItems, or give dialect="draft-07" (or "$schema") for a schema of a '
            "draft before 2020-12, where items may be a list"
        )
    if name != "type":
        return ""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and one not in TYPE_NAMES:
            if one.lower() in _ADVICE:
                return _ADVICE[one.lower()].format(repr(one))
            near = difflib.get_close_matches(one.lower(), TYPE_NAMES, 1, _SIMILAR)
            close = _TYPE_OF.get(one.lower()) or next(iter(near), None)
            return f"; got {short_repr(one)}" + ("" if close is None else f", did you mean {close!r}?")
    return f"; got {short_repr(value, 60)}"
