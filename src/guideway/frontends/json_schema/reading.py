"""Reads the keywords of a schema into a term. Each keyword adds assertions to the bundle, literals, or a fork."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from decimal import Decimal
from typing import Any

from guideway._kernel import nests_deeper
from guideway.errors import LimitExceededError
from guideway.frontends.json_schema.bundles import (
    ARRAY,
    NUMBER,
    OBJECT,
    STRING,
    WHOLE_DIGITS,
    ArrayPart,
    Bundle,
    Group,
    NumberPart,
    ObjectPart,
    StringPart,
    box_key,
    is_void,
    merge,
    tidy_array,
)
from guideway.frontends.json_schema.keywords import BOOLS_ONCE, KEYWORDS, Dialect, check_keyword
from guideway.frontends.json_schema.terms import Fork, Place, Term, want
from guideway.jsontext.pointer import pointer, shown

__all__ = [
    *("KEYWORD_NAMES", "MAX_COUNT", "MAX_PLAIN", "PLAIN_TERMS", "TYPE_BITS"),
    *("bundle_of_values", "listed_texts", "plain_term", "read_schema"),
]

MAX_COUNT = 2**31 - 1
"""The maximum count of characters or items that is distinguished. No text is longer."""

TYPE_BITS = {"null": 1, "boolean": 6, "number": 8, "integer": 8, "string": 16, "array": 32, "object": 64}

_LIST = re.compile(r"\^(?:([\w ]+)|\((?:\?:)?([\w |]+)\))\$", re.ASCII)  # a pattern that lists its texts
MAX_PLAIN = 4
"""The maximum number of members of a schema that is checked for being a single type."""

MAX_VALUE_DEPTH = 400
"""The maximum nesting depth of the values of `enum` and `const`."""

Child = Callable[[Place, object, tuple["str | int", ...]], int]


class _Reading:
    """The state of reading one schema."""

    __slots__ = ("also", "bundle", "child", "forks", "place")

    def __init__(self, place: Place, child: Child) -> None:
        self.place = place
        self.child = child
        self.bundle = Bundle()
        self.also: list[int] = []
        self.forks: list[Fork] = []

    def at(self, *names: str | int) -> str:
        return pointer(self.place.pointer, *names)

    @property
    def number(self) -> NumberPart:
        made = self.bundle.number = self.bundle.number or NumberPart()
        return made

    @property
    def string(self) -> StringPart:
        made = self.bundle.string = self.bundle.string or StringPart()
        return made

    @property
    def array(self) -> ArrayPart:
        made = self.bundle.array = self.bundle.array or ArrayPart()
        return made

    @property
    def object(self) -> ObjectPart:
        made = self.bundle.object = self.bundle.object or ObjectPart()
        return made


def read_schema(place: Place, child: Child, ref: Callable[[Place, str, str], int]) -> Term:
    """Return the term of a schema.

    Args:
        place: The schema at its location.
        child: Returns the literal of a subschema.
        ref: Returns the literal of a reference.

    Raises:
        InvalidConstraintError: If the value of a keyword has the wrong shape.
    """
    schema = place.schema
    if not isinstance(schema, dict):
        return _FREE if schema else Term(Bundle(0))
    dialect = place.resource.dialect
    names = KEYWORD_NAMES.intersection(schema)
    plain = plain_term(schema, names, dialect)
    if plain is not None:
        return plain
    if dialect.ref_alone and "$ref" in names:
        literal = ref(place, "$ref", str(schema["$ref"]))
        return Term(also=(literal,), leads=(literal,))
    found, different = {}, dialect.unknown | BOOLS_ONCE
    for name, value in schema.items():
        if name in names and (
            (name not in different and KEYWORDS[name].fits(value))
            or check_keyword(name, value, place.pointer, dialect) is not None
        ):
            found[name] = value
    reading = _Reading(place, child)
    for name, value in found.items():
        reader = _READERS.get(name)
        if reader is not None:
            reader(reading, value, found)
    for name in _REFERENCES:
        if name in found:
            reading.also.append(ref(place, name, found[name]))
    bundle = _settled(reading.bundle)
    if "enum" in found:
        bundle = _with_values(reading, bundle, "enum", found)
    if "const" in found:
        bundle = _with_values(reading, bundle, "const", found)
    leads = tuple(reading.also)
    for fork in reading.forks:
        fork.beside = bundle
        leads += fork.literals
    told = None
    if not _EVALUATING.isdisjoint(found):
        counts = dialect.contains_evaluates and "contains" in found
        told = (found, dialect.items_list, child(place, found["contains"], ("contains",)) if counts else None)
    return Term(bundle, tuple(reading.also), tuple(reading.forks), _left(place, child, found), told, leads)


def plain_term(schema: dict[str, Any], names: Set[str], dialect: Dialect) -> Term | None:
    """The shared term of a schema with these keywords that asserts at most one type. None for other schemas."""
    if not names:
        return _FREE
    if len(names) == 1 and "type" in names and "type" not in dialect.unknown:
        known = _PLAIN_DIGITS if dialect.digits_only else _PLAIN
        return known.get(schema["type"]) if type(schema["type"]) is str else None
    return None


def _left(place: Place, child: Child, found: dict[str, Any]) -> tuple[int | None, int | None] | None:
    """The literals of `unevaluatedProperties` and `unevaluatedItems`."""
    if "unevaluatedProperties" not in found and "unevaluatedItems" not in found:
        return None
    names = ("unevaluatedProperties", "unevaluatedItems")
    keys, items = (child(place, found[name], (name,)) if name in found else None for name in names)
    return keys, items


def _with_values(r: _Reading, bundle: Bundle, name: str, found: dict[str, Any]) -> Bundle:
    """Read `enum` and `const`. Constant arrays and objects become a separate schema if there are other assertions."""
    values = found[name] if name == "enum" else [found[name]]
    if nests_deeper(values, MAX_VALUE_DEPTH):  # the keys of all nested values have a quadratic length
        message = f"at {shown(r.place.pointer)}: the values of {name} are nested deeper than {MAX_VALUE_DEPTH} levels"
        raise LimitExceededError(message, r.place.pointer)
    made = bundle_of_values(values)
    if made.boxes and not bundle.free:
        r.also.append(r.child(r.place, {"enum": values}, (name,)))
        return bundle
    return merge(bundle, made) or Bundle(0)


def _settled(bundle: Bundle) -> Bundle:
    """Remove parts of excluded types from a new bundle, and types whose part is unsatisfiable."""
    types = bundle.types
    number, string, array, object_ = bundle.number, bundle.string, bundle.array, bundle.object
    if number and is_void(number):
        types &= ~NUMBER
    if string and types & STRING and string.most is not None and string.fewest > string.most:
        types &= ~STRING
    if array and types & ARRAY:
        array = tidy_array(array)
        types &= ~0 if array else ~ARRAY
    if object_ and object_.most is not None and max(object_.fewest, len(object_.required)) > object_.most:
        types &= ~OBJECT
    bundle.types = types
    bundle.number = number if types & NUMBER else None
    bundle.string = string if types & STRING else None
    bundle.array = array if types & ARRAY else None
    bundle.object = object_ if types & OBJECT else None
    return bundle


# -- keywords: each adds its assertions


def _type(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    names = [value] if isinstance(value, str) else value
    types = 0
    for name in names:
        types |= TYPE_BITS[name]
    r.bundle.types &= types
    if "integer" in names and "number" not in names:
        r.number.multiple += (1,)
        if r.place.resource.dialect.digits_only:
            r.number.digits_only = True


def bundle_of_values(values: list[Any]) -> Bundle:
    """The bundle that allows exactly these values."""
    types = 0
    numbers: set[int | Decimal] = set()
    strings: dict[str, None] = {}
    boxes: dict[str, object] = {}
    for value in values:
        if value is None:
            types |= 1
        elif value is True:
            types |= 2
        elif value is False:
            types |= 4
        elif isinstance(value, str):
            strings[value] = None
        elif isinstance(value, (int, Decimal)):
            numbers.add(value)
        else:
            boxes[box_key(value)] = value
            types |= ARRAY if isinstance(value, list) else OBJECT
    made = Bundle(types)
    if numbers:
        made.types |= NUMBER
        made.number = NumberPart(given=frozenset(numbers))
    if strings:
        made.types |= STRING
        made.string = StringPart(given=strings)
    if boxes:
        made.boxes = boxes
    return made


def _limit(name: str) -> Callable[[_Reading, Any, dict[str, Any]], None]:
    def read(r: _Reading, value: Any, found: dict[str, Any]) -> None:
        number = r.number
        is_open = found.get("exclusiveM" + name[1:]) is True
        if number.low is None or value > number.low or (value == number.low and is_open):
            number.low, number.open_low = value, is_open

    def read_high(r: _Reading, value: Any, found: dict[str, Any]) -> None:
        number = r.number
        is_open = found.get("exclusiveM" + name[1:]) is True
        if number.high is None or value < number.high or (value == number.high and is_open):
            number.high, number.open_high = value, is_open

    return read if name == "minimum" else read_high


def _exclusive_minimum(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, bool):
        return
    number = r.number
    if number.low is None or value >= number.low:
        number.low, number.open_low = value, True


def _exclusive_maximum(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, bool):
        return
    number = r.number
    if number.high is None or value <= number.high:
        number.high, number.open_high = value, True


def _multiple_of(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    r.number.multiple += (value,)


def _count(r: _Reading, name: str, value: Any) -> int:
    made = int(value)
    if made > MAX_COUNT and name.startswith("min"):
        at = r.at(name)
        raise LimitExceededError(f"at {shown(at)}: the count must be at most {MAX_COUNT}", at)
    return min(made, MAX_COUNT)


def _counter(part: str, slot: str, name: str) -> Callable[[_Reading, Any, dict[str, Any]], None]:
    def read(r: _Reading, value: Any, found: dict[str, Any]) -> None:
        setattr(getattr(r, part), slot, _count(r, name, value))

    return read


def listed_texts(pattern: str) -> dict[str, None] | None:
    """The texts that a pattern lists. None if it is not a list."""
    found = _LIST.fullmatch(pattern)
    return dict.fromkeys((found[1] or found[2]).split("|")) if found else None


def _test(kind: str) -> Callable[[_Reading, Any, dict[str, Any]], None]:
    def read(r: _Reading, value: Any, found: dict[str, Any]) -> None:
        listed = listed_texts(value) if kind == "pattern" else None
        if listed and not found.get("minLength") and "maxLength" not in found:
            r.string.given = listed
        else:
            r.string.tests += ((True, kind, value, r.at(kind)),)

    return read


def _items(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, list):
        r.array.prefix = tuple(want(r.child(r.place, one, ("items", i))) for i, one in enumerate(value))
        if "additionalItems" in found:
            r.array.rest = want(r.child(r.place, found["additionalItems"], ("additionalItems",)))
    else:
        r.array.rest = want(r.child(r.place, value, ("items",)))


def _prefix_items(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    r.array.prefix = tuple(want(r.child(r.place, one, ("prefixItems", i))) for i, one in enumerate(value))


def _contains(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    least = _count(r, "minContains", found["minContains"]) if "minContains" in found else 1
    most = min(int(found["maxContains"]), MAX_COUNT) if "maxContains" in found else None
    literal = r.child(r.place, value, ("contains",))
    if (most is not None and least > most) or (literal == 1 and least):
        r.bundle.types &= ~ARRAY
    elif literal != 1 and (least or most is not None):
        r.array.contains += ((0, want(literal), least, most),)


def _unique(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    if value:
        r.array.unique = True


def _group(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    """Read `properties`, `patternProperties` and `additionalProperties` together, at the first of them."""
    part = r.object
    if part.groups:
        return
    place, child = r.place, r.child
    names = {name: want(child(place, one, ("properties", name))) for name, one in found.get("properties", {}).items()}
    patterns = tuple(
        (pattern, r.at("patternProperties", pattern), want(child(place, one, ("patternProperties", pattern))))
        for pattern, one in found.get("patternProperties", {}).items()
    )
    extra = found.get("additionalProperties")
    rest = None if extra is None else want(child(place, extra, ("additionalProperties",)))
    part.groups = (Group(names, patterns, rest, "properties" in found),)


def _required(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    if value:
        r.object.required = dict.fromkeys(value)


def _property_names(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    r.object.keys = want(r.child(r.place, value, ("propertyNames",)))


def _dependent(r: _Reading, keyword: str, value: Any) -> None:
    for name, one in value.items():
        at = r.at(keyword, name)
        if isinstance(one, list):
            if one:
                r.forks.append(Fork("when", at, name=name, needs=tuple(one)))
        else:
            literal = r.child(r.place, one, (keyword, name))
            r.forks.append(Fork("when", at, (literal,), name))


def _all_of(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    r.also += (r.child(r.place, one, ("allOf", i)) for i, one in enumerate(value))


def _choice(kind: str, name: str) -> Callable[[_Reading, Any, dict[str, Any]], None]:
    def read(r: _Reading, value: Any, found: dict[str, Any]) -> None:
        literals = tuple(r.child(r.place, one, (name, i)) for i, one in enumerate(value))
        r.forks.append(Fork(kind, r.at(name), literals))

    return read


def _not(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    r.also.append(r.child(r.place, value, ("not",)) ^ 1)


def _if(r: _Reading, value: Any, found: dict[str, Any]) -> None:
    branches = tuple(r.child(r.place, found[name], (name,)) if name in found else 0 for name in ("if", "then", "else"))
    r.forks.append(Fork("if", r.at("if"), branches))


_READERS: dict[str, Callable[[_Reading, Any, dict[str, Any]], None]] = {
    "type": _type,
    "minimum": _limit("minimum"),
    "maximum": _limit("maximum"),
    "exclusiveMinimum": _exclusive_minimum,
    "exclusiveMaximum": _exclusive_maximum,
    "multipleOf": _multiple_of,
    "minLength": _counter("string", "fewest", "minLength"),
    "maxLength": _counter("string", "most", "maxLength"),
    "pattern": _test("pattern"),
    "format": _test("format"),
    "items": _items,
    "prefixItems": _prefix_items,
    "minItems": _counter("array", "fewest", "minItems"),
    "maxItems": _counter("array", "most", "maxItems"),
    "uniqueItems": _unique,
    "contains": _contains,
    "properties": _group,
    "patternProperties": _group,
    "additionalProperties": _group,
    "required": _required,
    "minProperties": _counter("object", "fewest", "minProperties"),
    "maxProperties": _counter("object", "most", "maxProperties"),
    "propertyNames": _property_names,
    "dependentRequired": lambda r, value, found: _dependent(r, "dependentRequired", value),
    "dependentSchemas": lambda r, value, found: _dependent(r, "dependentSchemas", value),
    "dependencies": lambda r, value, found: _dependent(r, "dependencies", value),
    "allOf": _all_of,
    "anyOf": _choice("any", "anyOf"),
    "oneOf": _choice("one", "oneOf"),
    "not": _not,
    "if": _if,
}
_EVALUATING = frozenset(
    {
        *("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "items"),
        *("prefixItems", "unevaluatedItems", "contains"),
    }
)
_LATER = frozenset(
    {
        *("enum", "const", "$ref", "$dynamicRef", "$recursiveRef", "then", "else", "minContains", "maxContains"),
        *("additionalItems", "unevaluatedProperties", "unevaluatedItems"),
    }
)
KEYWORD_NAMES = frozenset(_READERS) | _LATER
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_FREE = Term(plain=True)
_PLAIN = {
    name: Term(Bundle(bits, number=NumberPart(multiple=(1,)) if name == "integer" else None), plain=True)
    for name, bits in TYPE_BITS.items()
}
_PLAIN_DIGITS = {**_PLAIN, "integer": Term(Bundle(TYPE_BITS["integer"], number=WHOLE_DIGITS), plain=True)}
PLAIN_TERMS = (_FREE, *_PLAIN.values(), _PLAIN_DIGITS["integer"])
