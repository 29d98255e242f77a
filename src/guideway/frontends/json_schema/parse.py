"""Parses schemas.

The keywords of a schema become a `SchemaAnalysis`: assertions about the value, conjuncts (schemas that must also hold)
and applicators (disjunctions, such as that of `anyOf`). `SchemaGraph` gives a number (literal) to each schema that is
reached from the root, and replaces references by the numbers of their targets. An in-place applicator such as `anyOf`
applies other schemas to the same value. An analysis is not changed after construction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from guideway._kernel import nests_deeper
from guideway.errors import InvalidConstraintError, LimitExceededError, UnsupportedError
from guideway.frontends.json_schema.assertions import (
    ALL,
    ANYTHING,
    ARRAY,
    NUMBER,
    OBJECT,
    STRING,
    UNCONSTRAINED,
    WHOLE_DIGITS,
    ArrayAssertions,
    Conjunction,
    NumberAssertions,
    ObjectAssertions,
    PropertyRules,
    StringAssertions,
    TypeAssertions,
    conjunction_of,
    constant_key,
    is_empty_interval,
    merge,
    tidy_array,
)
from guideway.frontends.json_schema.keywords import BOOLS_ONCE, KEYWORDS, Dialect, check_keyword
from guideway.frontends.json_schema.references import Documents, Resource
from guideway.frontends.json_schema.unevaluated import NOTHING_EVALUATED, Evaluated, evaluated_by
from guideway.jsontext.pointer import pointer, shown

__all__ = [
    "KEYWORD_NAMES",
    "MAX_COUNT",
    "MAX_PLAIN",
    "TYPE_BITS",
    "Applicator",
    "SchemaAnalysis",
    "SchemaGraph",
    "SchemaNode",
    "Scope",
    "assertions_of_constants",
    "listed_texts",
    "parse_schema",
    "plain_analyses",
    "plain_analysis",
]

Scope = tuple[Resource, ...]


class SchemaNode:
    """A schema at a location.

    Attributes:
        literal: The even number of the schema.
        schema: The schema: a dict or a bool.
        pointer: Its JSON Pointer.
        resource: The resource that contains it.
        scope: The dynamic scope: the resources that the path from the root to this schema enters. It is not recorded
            (empty) unless `Documents.dynamic` is true.
        analysis: The analysis; None: the schema was not parsed yet.
    """

    __slots__ = ("analysis", "literal", "pointer", "resource", "schema", "scope")

    def __init__(self, literal: int, schema: Any, where: str, resource: Resource, scope: Scope) -> None:
        self.literal = literal
        self.schema = schema
        self.pointer = where
        self.resource = resource
        self.scope = scope
        self.analysis: SchemaAnalysis | None = None


@dataclass(slots=True, eq=False)
class Applicator:
    """An in-place applicator that is a disjunction.

    Attributes:
        kind: "anyOf", "oneOf", "if" or "dependent". The last means: if an object has the key `name`, it must also have
            `required_keys` and meet `literals`.
        place: The JSON Pointer of the keyword.
        literals: "anyOf" and "oneOf": the branches. "if": the schemas of `if`, `then` and `else`; 0 for one that is
            missing. "dependent": the schema that the object must meet, if there is one.
        name: The key of the kind "dependent".
        required_keys: The keys of the kind "dependent" that `name` requires.
        `beside`: The assertions of the schema that contains the applicator.
    """

    kind: str
    place: str
    literals: tuple[int, ...] = ()
    name: str = ""
    required_keys: tuple[str, ...] = ()
    beside: TypeAssertions = UNCONSTRAINED


@dataclass(slots=True, eq=False)
class SchemaAnalysis:
    """The analysis of one schema.

    Attributes:
        own: The assertions of the keywords that are not in-place applicators or references.
        conjuncts: Literals that must also hold: those of `allOf`, `not` and references, and in some cases of `enum` and
            `const` (see `_with_values`).
        applicators: Disjunctions, all of which must hold.
        unevaluated: The literals of `unevaluatedProperties` and `unevaluatedItems`, None for a keyword that the schema
            does not have; None: it has neither.
        evaluating: The arguments of `evaluated_by`; None: no keyword evaluates keys or items.
        in_place: The literals that apply to the same value: those of `conjuncts` and `applicators`.
        plain: Whether the schema has no keyword, or only `type` with a single name. All such schemas share one analysis
            for each type. In draft 4, "integer" has another analysis.
    """

    own: TypeAssertions = UNCONSTRAINED
    conjuncts: tuple[int, ...] = ()
    applicators: tuple[Applicator, ...] = ()
    unevaluated: tuple[int | None, int | None] | None = None
    evaluating: tuple[dict[str, Any], bool, int | None] | None = None
    in_place: tuple[int, ...] = ()
    plain: bool = False

    @property
    def evaluates(self) -> Evaluated:
        """The keys and items that the keywords of this schema evaluate, without its in-place applicators."""
        return evaluated_by(*self.evaluating) if self.evaluating else NOTHING_EVALUATED


MAX_COUNT = 2**31 - 1
"""The maximum value of keywords such as `maxLength`. Larger maxima are reduced to it, and larger minima are refused."""

TYPE_BITS = {"null": 1, "boolean": 6, "number": 8, "integer": 8, "string": 16, "array": 32, "object": 64}

_LIST = re.compile(r"\^(?:([\w ]+)|\((?:\?:)?([\w |]+)\))\$", re.ASCII)  # a pattern that lists its texts
MAX_PLAIN = 4
"""The maximum number of members of a schema that `SchemaGraph.plain_analysis` parses."""

MAX_VALUE_DEPTH = 400
"""The maximum nesting depth of the values of `enum` and `const`."""

Child = Callable[[SchemaNode, object, tuple["str | int", ...]], int]


class _SchemaParser:
    """The result so far while the keywords of one schema are parsed one by one.

    Attributes:
        place: The schema at its location.
        child: Returns the literal of a subschema.
        assertions: The assertions of the keywords, by type of value.
        conjuncts: Literals of schemas that must also hold, such as those of `allOf`.
        applicators: The disjunctions, such as `anyOf`.
    """

    __slots__ = ("applicators", "assertions", "child", "conjuncts", "place")

    def __init__(self, place: SchemaNode, child: Child) -> None:
        self.place = place
        self.child = child
        self.assertions = TypeAssertions()
        self.conjuncts: list[int] = []
        self.applicators: list[Applicator] = []

    def at(self, *names: str | int) -> str:
        return pointer(self.place.pointer, *names)

    @property
    def number(self) -> NumberAssertions:
        made = self.assertions.number = self.assertions.number or NumberAssertions()
        return made

    @property
    def string(self) -> StringAssertions:
        made = self.assertions.string = self.assertions.string or StringAssertions()
        return made

    @property
    def array(self) -> ArrayAssertions:
        made = self.assertions.array = self.assertions.array or ArrayAssertions()
        return made

    @property
    def object(self) -> ObjectAssertions:
        made = self.assertions.object = self.assertions.object or ObjectAssertions()
        return made


def parse_schema(place: SchemaNode, child: Child, ref: Callable[[SchemaNode, str, str], int]) -> SchemaAnalysis:
    """Return the analysis of a schema.

    Args:
        place: The schema at its location.
        child: Returns the literal of a subschema. Its arguments are `place`, the subschema, and the reference tokens
            from `place` to it.
        ref: Returns the literal of the target of a reference. Its arguments are `place`, the keyword and its value.

    Raises:
        InvalidConstraintError: The value of a keyword has the wrong shape. A reference has no schema as its target, or
            leads back to itself.
        LimitExceededError: A minimum is too large, or the values of `enum` or `const` are nested too deep.
    """
    schema = place.schema
    if not isinstance(schema, dict):
        return _FREE if schema else SchemaAnalysis(TypeAssertions(0))
    dialect = place.resource.dialect
    names = KEYWORD_NAMES.intersection(schema)
    plain = plain_analysis(schema, names, dialect)
    if plain is not None:
        return plain
    if dialect.ref_alone and "$ref" in names:
        literal = ref(place, "$ref", str(schema["$ref"]))
        return SchemaAnalysis(conjuncts=(literal,), in_place=(literal,))
    found, different = {}, dialect.unknown | BOOLS_ONCE
    for name, value in schema.items():
        if name in names and (
            (name not in different and KEYWORDS[name].fits(value))
            or check_keyword(name, value, place.pointer, dialect) is not None
        ):
            found[name] = value
    parser = _SchemaParser(place, child)
    for name, value in found.items():
        parse_keyword = _PARSERS.get(name)
        if parse_keyword is not None:
            parse_keyword(parser, value, found)
    for name in _REFERENCES:
        if name in found:
            parser.conjuncts.append(ref(place, name, found[name]))
    assertions = _settled(parser.assertions)
    if "enum" in found:
        assertions = _with_values(parser, assertions, "enum", found)
    if "const" in found:
        assertions = _with_values(parser, assertions, "const", found)
    if assertions.types == ALL and assertions.unconstrained:
        assertions = UNCONSTRAINED
    in_place = tuple(parser.conjuncts)
    for applicator in parser.applicators:
        applicator.beside = assertions
        in_place += applicator.literals
    evaluating = None
    if not _EVALUATING.isdisjoint(found):
        counts = dialect.contains_evaluates and "contains" in found
        evaluating = (found, dialect.items_list, child(place, found["contains"], ("contains",)) if counts else None)
    return SchemaAnalysis(
        assertions,
        tuple(parser.conjuncts),
        tuple(parser.applicators),
        _unevaluated(place, child, found),
        evaluating,
        in_place,
    )


def plain_analyses(digits_only: bool) -> dict[str, SchemaAnalysis]:
    """Return the shared analyses of schemas that assert only one type, by the type.

    Args:
        digits_only: The value of `Dialect.digits_only`.
    """
    return _PLAIN_DIGITS if digits_only else _PLAIN


def plain_analysis(schema: dict[str, Any], names: Set[str], dialect: Dialect) -> SchemaAnalysis | None:
    """Return the shared analysis of a schema without keywords, or only with `type` and one name. None for others.

    Args:
        schema: The schema.
        names: The names in `schema` that are in `KEYWORD_NAMES`.
        dialect: The dialect of the schema.
    """
    if not names:
        return _FREE
    if len(names) == 1 and "type" in names and "type" not in dialect.unknown:
        known = plain_analyses(dialect.digits_only)
        return known.get(schema["type"]) if type(schema["type"]) is str else None
    return None


def _unevaluated(place: SchemaNode, child: Child, found: dict[str, Any]) -> tuple[int | None, int | None] | None:
    """Return `SchemaAnalysis.unevaluated` for a schema with the keywords `found`."""
    if "unevaluatedProperties" not in found and "unevaluatedItems" not in found:
        return None
    names = ("unevaluatedProperties", "unevaluatedItems")
    keys, items = (child(place, found[name], (name,)) if name in found else None for name in names)
    return keys, items


def _with_values(r: _SchemaParser, assertions: TypeAssertions, name: str, found: dict[str, Any]) -> TypeAssertions:
    """Add the assertions of a keyword to `assertions`, and return the result. `name`: "enum" or "const".

    If the values include arrays or objects, and `assertions` restricts more than the types, the keyword becomes a
    separate schema. Its literal is added to the conjuncts, and `assertions` is returned unchanged.
    """
    values = found[name] if name == "enum" else [found[name]]
    if nests_deeper(values, MAX_VALUE_DEPTH):  # the cache keys of all nested values together have a quadratic length
        message = f"at {shown(r.place.pointer)}: the values of {name} are nested deeper than {MAX_VALUE_DEPTH} levels"
        raise LimitExceededError(message, r.place.pointer)
    made = assertions_of_constants(values)
    if made.composites and not assertions.unconstrained:
        r.conjuncts.append(r.child(r.place, {"enum": values}, (name,)))
        return assertions
    return merge(assertions, made) or TypeAssertions(0)


def _settled(assertions: TypeAssertions) -> TypeAssertions:
    """Remove types whose limits contradict each other, and the assertions about types that are not allowed.

    `assertions` is modified and returned.
    """
    types = assertions.types
    number, string, array, object_ = assertions.number, assertions.string, assertions.array, assertions.object
    if number and is_empty_interval(number):
        types &= ~NUMBER
    if string and types & STRING and string.maximum is not None and string.minimum > string.maximum:
        types &= ~STRING
    if array and types & ARRAY:
        array = tidy_array(array)
        types &= ~0 if array else ~ARRAY
    if object_ and object_.maximum is not None and max(object_.minimum, len(object_.required)) > object_.maximum:
        types &= ~OBJECT
    assertions.types = types
    assertions.number = number if types & NUMBER else None
    assertions.string = string if types & STRING else None
    assertions.array = array if types & ARRAY else None
    assertions.object = object_ if types & OBJECT else None
    return assertions


# -- keywords: each function adds the assertions or applicators of one keyword, some also those of the keywords that
# modify it. `found` has all keywords of the schema


def _type(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    names = [value] if isinstance(value, str) else value
    types = 0
    for name in names:
        types |= TYPE_BITS[name]
    r.assertions.types &= types
    if "integer" in names and "number" not in names:
        r.number.multiple += (1,)
        if r.place.resource.dialect.digits_only:
            r.number.digits_only = True


def assertions_of_constants(values: list[Any]) -> TypeAssertions:
    """Return assertions that allow exactly these values."""
    types = 0
    numbers: set[int | Decimal] = set()
    strings: dict[str, None] = {}
    composites: dict[str, object] = {}
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
            composites[constant_key(value)] = value
            types |= ARRAY if isinstance(value, list) else OBJECT
    made = TypeAssertions(types)
    if numbers:
        made.types |= NUMBER
        made.number = NumberAssertions(enum=frozenset(numbers))
    if strings:
        made.types |= STRING
        made.string = StringAssertions(enum=strings)
    if composites:
        made.composites = composites
    return made


def _limit(name: str) -> Callable[[_SchemaParser, Any, dict[str, Any]], None]:
    def read(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
        number = r.number
        is_open = found.get("exclusiveM" + name[1:]) is True
        if number.low is None or value > number.low or (value == number.low and is_open):
            number.low, number.open_low = value, is_open

    def read_high(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
        number = r.number
        is_open = found.get("exclusiveM" + name[1:]) is True
        if number.high is None or value < number.high or (value == number.high and is_open):
            number.high, number.open_high = value, is_open

    return read if name == "minimum" else read_high


def _exclusive_minimum(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, bool):
        return
    number = r.number
    if number.low is None or value >= number.low:
        number.low, number.open_low = value, True


def _exclusive_maximum(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, bool):
        return
    number = r.number
    if number.high is None or value <= number.high:
        number.high, number.open_high = value, True


def _multiple_of(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    r.number.multiple += (value,)


def _count(r: _SchemaParser, name: str, value: Any) -> int:
    made = int(value)
    if made > MAX_COUNT and name.startswith("min"):
        at = r.at(name)
        raise LimitExceededError(f"at {shown(at)}: the count must be at most {MAX_COUNT}", at)
    return min(made, MAX_COUNT)


def _counter(part: str, slot: str, name: str) -> Callable[[_SchemaParser, Any, dict[str, Any]], None]:
    def read(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
        setattr(getattr(r, part), slot, _count(r, name, value))

    return read


def listed_texts(pattern: str) -> dict[str, None] | None:
    """Return the texts that a pattern such as `^(a|b)$` lists, as the keys of a dict.

    None for other patterns, and if the texts have other characters than ASCII letters, digits, "_" and spaces.
    """
    found = _LIST.fullmatch(pattern)
    return dict.fromkeys((found[1] or found[2]).split("|")) if found else None


def _test(kind: str) -> Callable[[_SchemaParser, Any, dict[str, Any]], None]:
    def read(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
        listed = listed_texts(value) if kind == "pattern" else None
        if listed and not found.get("minLength") and "maxLength" not in found:
            r.string.enum = listed
        else:
            r.string.tests += ((True, kind, value, r.at(kind)),)

    return read


def _items(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, list):
        r.array.prefix = tuple(conjunction_of(r.child(r.place, one, ("items", i))) for i, one in enumerate(value))
        if "additionalItems" in found:
            r.array.rest = conjunction_of(r.child(r.place, found["additionalItems"], ("additionalItems",)))
    else:
        r.array.rest = conjunction_of(r.child(r.place, value, ("items",)))


def _prefix_items(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    r.array.prefix = tuple(conjunction_of(r.child(r.place, one, ("prefixItems", i))) for i, one in enumerate(value))


def _contains(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    least = _count(r, "minContains", found["minContains"]) if "minContains" in found else 1
    maximum = min(int(found["maxContains"]), MAX_COUNT) if "maxContains" in found else None
    literal = r.child(r.place, value, ("contains",))
    if (maximum is not None and least > maximum) or (literal == 1 and least):
        r.assertions.types &= ~ARRAY
    elif literal != 1 and (least or maximum is not None):
        r.array.contains += ((0, conjunction_of(literal), least, maximum),)


def _unique(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    if value:
        r.array.unique = True


def _properties(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    """Read `properties`, `patternProperties` and `additionalProperties`. The first call reads all three of them."""
    part = r.object
    if part.rule_sets:
        return
    place, child = r.place, r.child
    names = {
        name: conjunction_of(child(place, one, ("properties", name)))
        for name, one in found.get("properties", {}).items()
    }
    patterns = tuple(
        (pattern, r.at("patternProperties"), conjunction_of(child(place, one, ("patternProperties", pattern))))
        for pattern, one in found.get("patternProperties", {}).items()
    )
    additional = found.get("additionalProperties")
    rest = None if additional is None else conjunction_of(child(place, additional, ("additionalProperties",)))
    part.rule_sets = (PropertyRules(names, patterns, rest, "properties" in found),)


def _required(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    if value:
        r.object.required = dict.fromkeys(value)


def _property_names(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    r.object.keys = conjunction_of(r.child(r.place, value, ("propertyNames",)))


def _dependent(r: _SchemaParser, keyword: str, value: Any) -> None:
    for name, one in value.items():
        at = r.at(keyword, name)
        if isinstance(one, list):
            if one:
                r.applicators.append(Applicator("dependent", at, name=name, required_keys=tuple(one)))
        else:
            literal = r.child(r.place, one, (keyword, name))
            r.applicators.append(Applicator("dependent", at, (literal,), name))


def _all_of(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    r.conjuncts += (r.child(r.place, one, ("allOf", i)) for i, one in enumerate(value))


def _choice(kind: str) -> Callable[[_SchemaParser, Any, dict[str, Any]], None]:
    def read(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
        literals = tuple(r.child(r.place, one, (kind, i)) for i, one in enumerate(value))
        r.applicators.append(Applicator(kind, r.at(kind), literals))

    return read


def _not(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    r.conjuncts.append(r.child(r.place, value, ("not",)) ^ 1)


def _if(r: _SchemaParser, value: Any, found: dict[str, Any]) -> None:
    branches = tuple(r.child(r.place, found[name], (name,)) if name in found else 0 for name in ("if", "then", "else"))
    r.applicators.append(Applicator("if", r.at("if"), branches))


_PARSERS: dict[str, Callable[[_SchemaParser, Any, dict[str, Any]], None]] = {
    "type": _type,
    "minimum": _limit("minimum"),
    "maximum": _limit("maximum"),
    "exclusiveMinimum": _exclusive_minimum,
    "exclusiveMaximum": _exclusive_maximum,
    "multipleOf": _multiple_of,
    "minLength": _counter("string", "minimum", "minLength"),
    "maxLength": _counter("string", "maximum", "maxLength"),
    "pattern": _test("pattern"),
    "format": _test("format"),
    "items": _items,
    "prefixItems": _prefix_items,
    "minItems": _counter("array", "minimum", "minItems"),
    "maxItems": _counter("array", "maximum", "maxItems"),
    "uniqueItems": _unique,
    "contains": _contains,
    "properties": _properties,
    "patternProperties": _properties,
    "additionalProperties": _properties,
    "required": _required,
    "minProperties": _counter("object", "minimum", "minProperties"),
    "maxProperties": _counter("object", "maximum", "maxProperties"),
    "propertyNames": _property_names,
    "dependentRequired": lambda r, value, found: _dependent(r, "dependentRequired", value),
    "dependentSchemas": lambda r, value, found: _dependent(r, "dependentSchemas", value),
    "dependencies": lambda r, value, found: _dependent(r, "dependencies", value),
    "allOf": _all_of,
    "anyOf": _choice("anyOf"),
    "oneOf": _choice("oneOf"),
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
KEYWORD_NAMES = frozenset(_PARSERS) | _LATER
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_FREE = SchemaAnalysis(plain=True)
_PLAIN = {
    name: SchemaAnalysis(
        TypeAssertions(bits, number=NumberAssertions(multiple=(1,)) if name == "integer" else None), plain=True
    )
    for name, bits in TYPE_BITS.items()
}
_PLAIN_DIGITS = {
    **_PLAIN,
    "integer": SchemaAnalysis(TypeAssertions(TYPE_BITS["integer"], number=WHOLE_DIGITS), plain=True),
}


class SchemaGraph:
    """Assigns literals to schemas.

    Attributes:
        documents: The main document and the documents that it may refer to.
        places: The schemas at their locations, and schemas that the expansion to alternatives has added. The literal of
            `places[n]` is 2n, and that of its negation is 2n+1. The first is the schema `true`.
        refusals: By the JSON Pointer of each keyword or schema that cannot be enforced, the reason.
        resolved_references: The JSON Pointers of schemas that were replaced by the target of their `$ref`, each with
            this keyword. A schema can occur several times.
    """

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self.places: list[SchemaNode] = [SchemaNode(0, True, "", documents.main, ())]
        # literals by (identity of the schema, dynamic scope); the places keep the schemas alive
        self._literals: dict[tuple[int, tuple[Resource, ...]], int] = {}
        # the same for schemas of which only the `$ref` applies: the literal of the target
        self._targets: dict[tuple[int, tuple[Resource, ...]], int] = {}
        self._values: dict[str, int] = {}
        self.refusals: dict[str, str] = {}
        self.resolved_references: list[tuple[str, str]] = []

    def root(self) -> int:
        """Return the literal of the root schema of the main document."""
        main = self.documents.main
        return self.literal(main.root, main.place, main, (main,) if self.documents.dynamic else ())

    def literal(self, schema: object, where: str, resource: Resource, scope: tuple[Resource, ...]) -> int:
        """Return the literal of a schema. If only its `$ref` applies, this is the literal of the target.

        A reference that `_refuse` records has the literal 1.

        Args:
            schema: The schema, a dict or a bool.
            where: Its JSON Pointer.
            resource: The resource that contains it.
            scope: Its dynamic scope.

        Raises:
            InvalidConstraintError: The reference has no schema as its target, or leads back to itself.
        """
        chain: dict[tuple[int, tuple[Resource, ...]], None] = {}
        found = None
        while found is None:
            if not isinstance(schema, dict):
                found = 0 if schema else 1
                break
            if not schema:
                found = 0
                break
            key = (id(schema), scope)
            found = self._literals.get(key)
            if found is not None:
                break
            if "$ref" not in schema or not self._only_ref(schema, resource):
                place = SchemaNode(2 * len(self.places), schema, where, resource, scope)
                self.places.append(place)
                found = self._literals[key] = place.literal
                break
            if key in chain:
                raise InvalidConstraintError(
                    f"at {shown(where)}: this $ref leads back to itself, so it describes no value", where
                )
            if len(schema) > 1:
                self.documents.unusual.append((schema, where, resource.dialect))
            self.resolved_references.append((where, "$ref"))
            found = self._targets.get(key)
            if found is None:
                chain[key] = None
                try:
                    schema, where, resource, scope = self._target(schema, where, resource, scope, "$ref")
                except UnsupportedError as problem:
                    found = self._refuse(problem, where)
        for key in chain:
            self._targets[key] = found
        return found

    def is_own(self, place: SchemaNode) -> bool:
        """Return whether a place has the resource of the main document, no dynamic scope, and its schema's analysis.

        Places that `any_of`, `all_of` and `Expander._without_unevaluated` have added have another analysis.
        """
        return self._literals.get((id(place.schema), ())) == place.literal and place.resource is self.documents.main

    def _only_ref(self, schema: dict[str, Any], resource: Resource) -> bool:
        if not isinstance(schema["$ref"], str):
            return False
        return (
            len(schema) == 1
            or resource.dialect.ref_alone
            or not any(name in KEYWORDS for name in schema if name != "$ref")
        )

    def _target(
        self, schema: dict[str, Any], where: str, resource: Resource, scope: tuple[Resource, ...], name: str
    ) -> tuple[object, str, Resource, tuple[Resource, ...]]:
        documents, reference = self.documents, str(schema[name])
        at = pointer(where, name)
        if name == "$recursiveRef":
            found, target, home = documents.resolve("#", resource, at)
            if home.recursive:
                outer = next((one for one in scope if one.recursive), home)
                found, target, home = outer.root, outer.place, outer
        else:
            found, target, home = documents.resolve(reference, resource, at)
            anchor = reference.partition("#")[2]
            if name == "$dynamicRef" and anchor in home.dynamic and home.dynamic[anchor][0] is found:
                outer = next((one for one in scope if anchor in one.dynamic), home)
                found, target = outer.dynamic[anchor]
                home = outer
        return found, target, home, self._scope(scope, home)

    def _scope(self, scope: tuple[Resource, ...], home: Resource) -> tuple[Resource, ...]:
        if not self.documents.dynamic or home in scope:
            return scope
        return (*scope, home)

    def child(self, place: SchemaNode, schema: object, names: tuple[str | int, ...]) -> int:
        """Return the literal of a subschema of a schema. `names` are the reference tokens from `place` to it."""
        if schema is True:
            return 0
        if schema is False:
            return 1
        resource, scope = place.resource, place.scope
        owners = self.documents.owners
        if owners and id(schema) in owners:
            resource = owners[id(schema)]
            scope = self._scope(scope, resource)
        if type(schema) is dict and schema and "$ref" not in schema:  # the common case: `literal`, inlined
            key = (id(schema), scope)
            found = self._literals.get(key)
            if found is None:
                found = self._literals[key] = 2 * len(self.places)
                self.places.append(SchemaNode(found, schema, pointer(place.pointer, *names), resource, scope))
            return found
        return self.literal(schema, pointer(place.pointer, *names), resource, scope)

    def _reference(self, place: SchemaNode, name: str, reference: str) -> int:
        try:
            found, where, home, scope = self._target(place.schema, place.pointer, place.resource, place.scope, name)
        except UnsupportedError as problem:
            return self._refuse(problem, place.pointer)
        return self.literal(found, where, home, scope)

    def _refuse(self, problem: UnsupportedError, place: str) -> int:
        """Record a reference to a document that was not supplied or has an unknown dialect.

        Returns the literal 1 (`false`) in place of the target. `Lowering.finish` raises an error that lists all
        recorded references.
        """
        self.refusals.setdefault(place if problem.place is None else problem.place, str(problem))
        return 1

    def value_literal(self, place: SchemaNode, schema: dict[str, Any]) -> int:
        """Return the literal of a schema such as `{"enum": […]}` that is not part of the document.

        Equal schemas have the same literal. `place` is the location that errors name.
        """
        key = constant_key(schema)
        if key not in self._values:
            self._values[key] = self.literal(schema, place.pointer, place.resource, place.scope)
        return self._values[key]

    def any_of(self, place: SchemaNode, literals: tuple[int, ...]) -> Conjunction:
        """Return a conjunction that is equivalent to the disjunction of literals. `place`: the location for errors."""
        if 0 in literals:
            return ANYTHING
        made = SchemaNode(2 * len(self.places), {}, place.pointer, place.resource, place.scope)
        made.analysis = SchemaAnalysis(applicators=(Applicator("anyOf", place.pointer, literals),), in_place=literals)
        self.places.append(made)
        return frozenset((made.literal,))

    def all_of(self, place: SchemaNode, conjunction: Conjunction) -> int:
        """Return one literal that is equivalent to a conjunction. `place`: the location for errors."""
        if len(conjunction) < 2:
            return next(iter(conjunction), 0)
        literals = tuple(sorted(conjunction))
        made = SchemaNode(2 * len(self.places), {}, place.pointer, place.resource, place.scope)
        made.analysis = SchemaAnalysis(conjuncts=literals, in_place=literals)
        self.places.append(made)
        return made.literal

    def analysis(self, place: SchemaNode) -> SchemaAnalysis:
        """Return the analysis of the schema at a place. It is stored there. Raises the errors of `parse_schema`."""
        if place.analysis is None:
            schema, dialect = place.schema, place.resource.dialect
            if type(schema) is dict and not dialect.plain.issuperset(schema):
                self.documents.unusual.append((schema, place.pointer, dialect))
            place.analysis = parse_schema(place, self.child, self._reference)
        return place.analysis

    def plain_analysis(self, place: SchemaNode) -> SchemaAnalysis | None:
        """Return the analysis of a schema if it is plain (`SchemaAnalysis.plain`). None for other schemas.

        None also for a schema with more than `MAX_PLAIN` members that was not parsed yet.
        """
        if place.analysis is None and len(place.schema) > MAX_PLAIN:
            return None
        analysis = self.analysis(place)
        return analysis if analysis.plain else None
