"""A schema -> a grammar: one node per place of the schema, made from a list of what is still to do.

Nothing recurses: a schema of any depth costs memory only. A place that is reached with fewer types than its own
(`type` beside `$ref` or `anyOf`) gets a node of its own for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from guideway.errors import InvalidConstraint, Unsupported
from guideway.grammar.nodes import Alternative, Array, Grammar, Leaf, Object, Property, Sequence
from guideway.grammar.regular import ANY_TEXT, NEVER, Literals, Not, Regular, both, chars, either, literal, repeat

from . import scalars
from .disjoint import are_disjoint
from .keywords import ALL_TYPES, KEYWORDS, check_keyword, dialect_of, meet, pointer
from .reader import identity, write_json
from .refs import resolve
from .scalars import Keywords, kind_of
from .style import Style
from .tidy import tidied

__all__ = ["Lowering"]

_FREE = "*"  # the place of `true`, which the whole document shares
_SPACE = repeat(chars("  ", "\t\t", "\n\n", "\r\r"))
_SCALARS = ("null", "boolean", "number", "integer", "string")
_APPLICATORS = ("anyOf", "oneOf", "allOf")


class Lowering:
    """One walk over one document."""

    def __init__(self, document: object, style: Style) -> None:
        self._document = document
        self._style = style
        self._dialect = dialect_of(document)
        self._grammar = Grammar()
        self._numbers: dict[tuple[str, frozenset[str]], int] = {}
        self._todo: list[tuple[int, object, str, frozenset[str]]] = []
        self._values: list[tuple[int, object, str]] = []
        self._assertions: dict[str, Keywords] = {}
        self._refusals: dict[str, str] = {}
        self._followed: dict[tuple[str, frozenset[str]], tuple[object, str, frozenset[str]]] = {}  # ends of references
        self.contract: dict[tuple[str, str], str] = {}

    def run(self) -> Grammar:
        """The grammar; `Unsupported` names every place that is refused."""
        root = self._schema(self._document, "", ALL_TYPES)
        while self._todo or self._values:
            if self._values:
                self._define_value(*self._values.pop())
                continue
            number, schema, place, types = self._todo.pop()
            try:
                self._define(number, schema, place, types)
            except Unsupported as problem:
                self._refuse(problem.place or place, str(problem))
                self._never(number)
        self._raise_refusals()
        if self._style.whitespace == "any":
            space = self._grammar.add(Leaf(_SPACE))
            root = self._grammar.add(Sequence((space, root, space)))
        self._grammar.root = root
        return tidied(self._grammar)

    # -- places

    def _schema(self, schema: object, place: str, types: frozenset[str]) -> int:
        """The number of the node of a schema; it is defined later."""
        try:
            schema, place, types = self._follow(schema, place, types)
        except Unsupported as problem:
            self._refuse(problem.place or place, str(problem))
            schema = False
        if schema is True or schema == {}:
            place = _FREE
        key = (place, types)
        if key not in self._numbers:
            self._numbers[key] = self._grammar.reserve(None if place == _FREE else place)
            self._todo.append((self._numbers[key], schema, place, types))
        return self._numbers[key]

    def _follow(self, schema: object, place: str, types: frozenset[str]) -> tuple[object, str, frozenset[str]]:
        """Follow a schema that is a reference to what it means, and keep the types that are allowed beside it."""
        seen: set[str] = set()
        steps: list[tuple[str, frozenset[str]]] = []
        while isinstance(schema, dict) and "$ref" in schema:
            if place in seen:
                raise InvalidConstraint(f"at {place!r}: the reference leads back to itself", place)
            if (place, types) in self._followed:
                schema, place, types = self._followed[place, types]
                break
            seen.add(place)
            steps.append((place, types))
            keywords = self._keywords(schema, place)
            types = self._types(keywords, types)
            for name in keywords:
                if name not in ("$ref", "type") and _speaks(name, types):
                    self._refuse(pointer(place, name), f"{name} beside $ref")
            place, schema = resolve(self._document, str(schema["$ref"]), place)
        self._followed.update(dict.fromkeys(steps, (schema, place, types)))
        return schema, place, types

    def _keywords(self, schema: dict[str, object], place: str) -> Keywords:
        """The keywords that assert something here, their values looked at."""
        if place not in self._assertions:
            found: dict[str, object] = {}
            alone = self._dialect.ref_alone and "$ref" in schema
            for name, value in schema.items():
                at = pointer(place, name)
                row = check_keyword(name, value, at, self._dialect) if not alone or name == "$ref" else None
                if row is None or row.idle(value):
                    self.contract[place, name] = "annotation"
                else:
                    found[name] = value
                    self.contract[place, name] = "enforced"
            self._assertions[place] = found
        return self._assertions[place]

    def _types(self, keywords: Keywords, types: frozenset[str]) -> frozenset[str]:
        if "type" not in keywords:
            return types
        named = keywords["type"]
        names = frozenset(named if isinstance(named, list) else [named])
        return meet(types, names - {"integer"} if "number" in names else names)

    # -- schemas

    def _define(self, number: int, schema: object, place: str, types: frozenset[str]) -> None:
        if schema is False:
            self._never(number)
            return
        keywords = self._keywords(schema, place) if isinstance(schema, dict) else {}
        types = self._types(keywords, types)
        self.contract.update(((place, name), "no effect") for name in keywords if not _speaks(name, types))
        keywords = {name: value for name, value in keywords.items() if _speaks(name, types)}
        for name in keywords:
            if KEYWORDS[name].refused:
                self._refuse(pointer(place, name), f"the keyword {name}")
        applicator = next((name for name in _APPLICATORS if name in keywords), None)
        if applicator:
            self._branches(number, applicator, keywords, place, types)
        elif "enum" in keywords or "const" in keywords:
            self._given(number, keywords, place, types)
        else:
            self._typed(number, keywords, place, types)

    def _branches(self, number: int, name: str, keywords: Keywords, place: str, types: frozenset[str]) -> None:
        """`anyOf`, and `oneOf` and `allOf` where they mean the same."""
        for other in keywords:
            if other not in (name, "type") and not KEYWORDS[other].refused:
                self._refuse(pointer(place, other), f"{other} beside {name}")
        branches = _list(keywords, name)
        places = [pointer(place, name, i) for i in range(len(branches))]
        if name == "allOf" and len(branches) > 1:
            self._refuse(pointer(place, name), "allOf of several schemas")
        if name == "oneOf" and not are_disjoint(branches, places, self._resolved):
            self._refuse(
                pointer(place, name), "oneOf whose branches are not told apart by type, const or a tag property"
            )
        parts = [self._schema(branch, at, types) for branch, at in zip(branches, places, strict=True)]
        self._grammar.define(number, Alternative(tuple(dict.fromkeys(parts))))

    def _resolved(self, schema: object, place: str) -> tuple[object, str]:
        schema, place, _ = self._follow(schema, place, ALL_TYPES)
        return schema, place

    def _typed(self, number: int, keywords: Keywords, place: str, types: frozenset[str]) -> None:
        regulars = [self._scalar(name, keywords, place) for name in _SCALARS if name in types]
        frames: list[Array | Object | None] = []
        if "array" in types:
            frames.append(self._array(keywords, place))
        if "object" in types:
            frames.append(self._object(keywords, place))
        self._union(number, regulars, frames)

    def _union(self, number: int, regulars: Iterable[Regular], frames: list[Array | Object | None]) -> None:
        """One node that is any of these."""
        kept = [text for text in regulars if text is not NEVER]
        nodes: list[Leaf | Array | Object] = [Leaf(either(kept))] if kept else []
        nodes += [frame for frame in frames if frame is not None]
        if len(nodes) == 1:
            self._grammar.define(number, nodes[0])
        elif nodes:
            parts = tuple(self._grammar.add(node, self._grammar.places[number]) for node in nodes)
            self._grammar.define(number, Alternative(parts))
        else:
            self._never(number)

    def _scalar(self, name: str, keywords: Keywords, place: str) -> Regular:
        if name == "null":
            return literal("null")
        if name == "boolean":
            return literal("true", "false")
        try:
            if name == "string":
                return scalars.string(keywords, place, self._style)
            return scalars.number(keywords, name == "integer", place, self._style)
        except Unsupported as problem:
            return self._refuse(problem.place or place, str(problem))

    def _array(self, keywords: Keywords, place: str) -> Array | None:
        fewest = scalars.count(keywords, "minItems", place) or 0
        most = scalars.count(keywords, "maxItems", place)
        items, at = keywords.get("items", True), pointer(place, "items")
        leading = "prefixItems"
        if isinstance(items, list):  # drafts before 2020-12
            leading = "items"
            items, at = keywords.get("additionalItems", True), pointer(place, "additionalItems")
        prefix = [
            self._schema(item, pointer(place, leading, i), ALL_TYPES)
            for i, item in enumerate(_list(keywords, leading)[:most])
        ]
        if items is False:
            most = len(prefix) if most is None else min(most, len(prefix))
        if most is not None and fewest > most:
            return None
        rest = None if items is False or most == len(prefix) else self._schema(items, at, ALL_TYPES)
        return Array(self._style.marks("[]"), tuple(prefix), rest, fewest, most)

    def _object(self, keywords: Keywords, place: str) -> Object | None:
        given, needed = keywords.get("properties", {}), set(map(str, _list(keywords, "required")))
        properties = given if isinstance(given, dict) else {}
        names = list(dict.fromkeys([*properties, *map(str, _list(keywords, "required"))]))
        extra, extra_at = keywords.get("additionalProperties", True), pointer(place, "additionalProperties")
        closed = extra is False or (
            self._style.closed and "properties" in keywords and "additionalProperties" not in keywords
        )
        if extra is False and needed - properties.keys():
            return None
        entries = []
        for name in names:
            at = pointer(place, "properties", name) if name in properties else extra_at
            value = self._schema(properties.get(name, extra), at, ALL_TYPES)
            entries.append(Property(self._style.strings([name]), value, name in needed))
        others: tuple[Property, ...] = ()
        if not closed:
            keys = both(ANY_TEXT, Not(Literals(tuple(names)))) if names else ANY_TEXT
            others = (Property(self._style.quoted(keys), self._schema(extra, extra_at, ALL_TYPES), False),)
        ordered = self._style.key_order == "schema"
        return Object(self._style.marks("{}"), tuple(entries), others, ordered)

    # -- given values

    def _given(self, number: int, keywords: Keywords, place: str, types: frozenset[str]) -> None:
        """`enum` and `const`: those of the values that the keywords beside them allow."""
        values = [keywords["const"]] if "const" in keywords else _list(keywords, "enum")
        if "const" in keywords and "enum" in keywords:
            allowed = set(map(identity, _list(keywords, "enum")))
            values = [value for value in values if identity(value) in allowed]
        kinds = types | {"integer"} if "number" in types else types
        values = [value for value in values if kind_of(value) in kinds]
        boxes = [value for value in values if isinstance(value, (list, dict))]
        for name in keywords:
            if boxes and name not in ("enum", "const", "type") and meet(KEYWORDS[name].types, _kinds(boxes)):
                self._refuse(pointer(place, name), f"{name} beside given arrays or objects")
        at = pointer(place, "const" if "const" in keywords else "enum")
        parts = self._given_scalars(values, keywords, place)
        if boxes and self._style.fixed:
            texts = (write_json(box, self._style.comma, self._style.colon) for box in boxes)
            parts.append(Literals(tuple(dict.fromkeys(texts))))
            boxes = []
        nodes = [self._value(box, at) for box in boxes]
        kept = [part for part in parts if part is not NEVER]
        nodes += [self._grammar.add(Leaf(either(kept)), at)] if kept else []
        self._grammar.define(number, Alternative(tuple(nodes)))

    def _given_scalars(self, values: list[object], keywords: Keywords, place: str) -> list[Regular]:
        style = self._style
        words = {write_json(value) for value in values if value is None or isinstance(value, bool)}
        parts: list[Regular] = [Literals(tuple(sorted(words)))] if words else []
        numbers = [v for v in values if isinstance(v, (int, Decimal)) and not isinstance(v, bool)]
        strings = list(dict.fromkeys(value for value in values if isinstance(value, str)))
        try:
            parts.append(scalars.given_numbers(numbers, keywords, place, style))
            parts.append(scalars.string(keywords, place, style, strings))
        except Unsupported as problem:
            self._refuse(problem.place or place, str(problem))
        return parts

    def _value(self, value: object, place: str) -> int:
        number = self._grammar.reserve(place)
        self._values.append((number, value, place))
        return number

    def _define_value(self, number: int, value: object, place: str) -> None:
        """The node of one given value, where it can be written in several ways."""
        node: Leaf | Array | Object
        if isinstance(value, list):
            items = tuple(self._value(item, place) for item in value)
            node = Array(self._style.marks("[]"), items, None, len(items), len(items))
        elif isinstance(value, dict):
            ordered = self._style.key_order == "schema"
            entries = (Property(self._style.strings([key]), self._value(v, place), True) for key, v in value.items())
            node = Object(self._style.marks("{}"), tuple(entries), (), ordered)
        else:
            node = Leaf(either(part for part in self._given_scalars([value], {}, place) if part is not NEVER))
        self._grammar.define(number, node)

    # -- what is not possible

    def _never(self, number: int) -> None:
        self._grammar.define(number, Leaf(NEVER))

    def _refuse(self, place: str, what: str) -> Regular:
        self._refusals.setdefault(place, what)
        return NEVER

    def _raise_refusals(self) -> None:
        """One error for all of them."""
        if not self._refusals:
            return
        lines = [f"at {place!r}: {what}" for place, what in self._refusals.items()]
        first = next(iter(self._refusals))
        if len(lines) == 1:
            raise Unsupported(f"not supported {lines[0]}", first)
        raise Unsupported(f"not supported in {len(lines)} places:\n  " + "\n  ".join(lines), first)


def _speaks(name: str, types: frozenset[str]) -> bool:
    """Whether a keyword has a say in values of these types."""
    return bool(meet(KEYWORDS[name].types, types))


def _list(keywords: Keywords, name: str) -> list[object]:
    value = keywords.get(name, [])
    return value if isinstance(value, list) else []


def _kinds(values: list[list[object] | dict[str, object]]) -> frozenset[str]:
    return frozenset(map(kind_of, values))
