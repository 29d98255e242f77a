"""The oracle of a JSON Schema, derived from the schema itself.

The texts of a schema depend on the meaning of its keywords and on the profile, which defines how values are written.
Supported: type, properties, required, additionalProperties, items, prefixItems, minItems, maxItems, enum, const,
minLength, maxLength, pattern (by a table, because patterns are not parsed here), numeric bounds, format: date, anyOf,
local $ref.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from typing import Any, Literal
from urllib.parse import unquote

import jsonschema

from guideway.grammar import nodes as ir

from . import regular
from .entries import OpenKey, said
from .machine import Fixed, OneOf, Oracle, Reader, Spaces, Stack, Term
from .numbers import Bounds, Number, viable
from .spelling import Text, decode
from .values import ByValue, viable as can_fit

TYPES = ("null", "boolean", "number", "string", "array", "object")
FREE, NOWHERE = "*", "!"  # the places of the schemas that allow everything, and nothing


@dataclass(frozen=True, slots=True)
class Profile:
    """How values are written."""

    key_order: Literal["schema", "any"] = "schema"
    whitespace: Literal["one-line", "compact", "any"] = "one-line"
    escapes: Literal["canonical", "any"] = "canonical"
    closed: bool = True  # `properties` without additionalProperties: no other keys
    exact: bool = False  # numbers in every legal spelling

    def piece(self, text: str) -> Stack:
        """Returns a punctuation mark with the optional whitespace around it."""
        if self.whitespace == "any":
            return Spaces(), Fixed(text.encode()), Spaces()
        return (Fixed((text + " " * (self.whitespace == "one-line" and text in ",:")).encode()),)

    def string(self, expr: regular.Expr) -> Stack:
        """A JSON string whose characters are a member of `expr`."""
        body = Text(expr, "json" if self.escapes == "canonical" else "json-any")
        return Fixed(b'"'), body, Fixed(b'"')


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the schema at a place."""

    place: str


@dataclass(frozen=True, slots=True)
class Members:
    """The rest of an object, its brace included: the names taken (in order: or passed by), and other keys used."""

    place: str
    taken: frozenset[str]
    first: bool
    used: frozenset[str] = frozenset()

    def named(self, key: bytes) -> Members:
        """Once a key that is not among the names has been read."""
        return replace(self, used=self.used | {said(key.decode()) or ""})


@dataclass(frozen=True, slots=True)
class Items:
    """The rest of an array, its bracket included, after `count` items."""

    place: str
    count: int


@dataclass(frozen=True, slots=True)
class Date(Reader):
    """A calendar date `YYYY-MM-DD`, read so far."""

    text: str = ""

    @property
    def done(self) -> bool:
        """Whether it is a whole date."""
        return len(self.text) == 10

    def step(self, byte: int) -> Date | None:
        """After one more byte: is there any date that begins so?"""
        text = self.text + chr(byte)
        for year in ("2000", "2001"):  # a leap year and a common one
            for rest in ("-01-31", "-02-28", "-02-29", "-10-30"):
                if _is_date(text + (year + rest)[len(text) :]):
                    return Date(text)
        return None


@dataclass(frozen=True, slots=True)
class Escaped(Reader):
    """A piece of ASCII in any JSON spelling."""

    inner: Reader
    pending: bytes = b""

    @property
    def done(self) -> bool:
        """Whether it may end here."""
        return not self.pending and self.inner.done

    def step(self, byte: int) -> Escaped | None:
        """After one more byte: tries every character that the bytes can still become."""
        pending = self.pending + bytes([byte])
        found = decode(pending, "json-any")
        if found is None:
            return None
        ranges, whole = found
        steps = [self.inner.step(point) for low, high in ranges for point in range(low, min(high, 0x7F) + 1)]
        fitting = [step for step in steps if step is not None]
        if not fitting:
            return None
        return Escaped(fitting[0]) if whole else Escaped(self.inner, pending)


def _json_number() -> regular.Expr:
    """Any JSON number, as the standard writes it."""
    digit, sign = regular.one((0x30, 0x39)), regular.times(regular.literal("-"), 0, 1)
    digits = regular.times(digit, 1, None)
    whole = regular.either(regular.literal("0"), regular.cat(regular.one((0x31, 0x39)), regular.times(digit, 0, None)))
    mark = regular.one((0x45, 0x45), (0x65, 0x65))
    power = regular.cat(mark, regular.times(regular.one((0x2B, 0x2B), (0x2D, 0x2D)), 0, 1), digits)
    part = regular.cat(regular.literal("."), digits)
    return regular.cat(sign, whole, regular.times(part, 0, 1), regular.times(power, 0, 1))


def _is_date(text: str) -> bool:
    if len(text) != 10 or not text.isascii():
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return text[4] == text[7] == "-"


@dataclass
class SchemaWorld:
    """A schema, its profile, and the expression of each pattern in it."""

    schema: Any
    profile: Profile = field(default_factory=Profile)
    patterns: Mapping[str, regular.Expr] = field(default_factory=dict)
    _fit: dict[str, bool] = field(default_factory=dict)

    def oracle(self) -> Oracle:
        """The machine that reads texts of the schema."""
        around = (Spaces(),) if self.profile.whitespace == "any" else ()
        start: tuple[Term, ...] = (*around, Value("#"), *around) if self.satisfiable("#") else ()
        made = Oracle(self, *start)
        return made if start else Oracle(self, OneOf(frozenset()))

    def at(self, place: str) -> dict[str, Any]:
        """The schema at a place, as a mapping; `true` is `{}` and `false` is an empty enum."""
        found: Any = self.schema
        if place in (FREE, NOWHERE):
            return {} if place == FREE else {"enum": []}
        for step in place.lstrip("#").split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            found = found[int(key)] if isinstance(found, list) else found[key]
        if isinstance(found, bool):
            return {} if found else {"enum": []}
        return found  # type: ignore[no-any-return]  # JSON

    # What can be satisfied at all: the least fixed point over the places that are reached.

    def satisfiable(self, place: str) -> bool:
        """Whether any value fits the schema at a place."""
        if place not in self._fit:
            reached: dict[str, None] = {}
            left = [place]
            while left:
                here = left.pop()
                if here not in reached and here not in self._fit:
                    reached[here] = None
                    left += self._below(here)
            self._fit |= dict.fromkeys(reached, False)
            changed = True
            while changed:
                changed = False
                for here in reached:
                    if not self._fit[here] and self._fits(here):
                        self._fit[here] = changed = True
        return self._fit[place]

    def _below(self, place: str) -> Iterator[str]:
        schema = self.at(place)
        if "$ref" in schema:
            yield schema["$ref"]
        yield from (f"{place}/anyOf/{n}" for n in range(len(schema.get("anyOf", ()))))
        yield from (self.property_place(place, name) for name in self.names(place))
        yield from (self.item_place(place, n) for n in range(len(schema.get("prefixItems", ())) + 1))
        yield self.open_place(place)

    def _fits(self, place: str) -> bool:
        return any(all(self._possible(term) for term in stack) for stack in self._alternatives(place))

    def _possible(self, term: Term) -> bool:
        match term:
            case Value(place):
                return self._fit[place]
            case Text(expr):
                return regular.alive(expr)
            case OneOf(texts):
                return bool(texts)
            case Number():
                return viable(term)
            case ByValue():
                return can_fit(term)
            case Members(place):
                required = self.at(place).get("required", ())
                return all(self._fit[self.property_place(place, name)] for name in required)
            case Items(place):
                schema = self.at(place)
                least = schema.get("minItems", 0)
                known = len(schema.get("prefixItems", ()))
                return least <= self.most_items(place) and all(
                    self._fit[self.item_place(place, n)] for n in range(min(least, known + 1))
                )
            case _:
                return True

    # The locations of the parts of a schema.

    def names(self, place: str) -> list[str]:
        """Named properties in order: those of `properties`, then those that are only required."""
        schema = self.at(place)
        return list(dict.fromkeys([*schema.get("properties", ()), *schema.get("required", ())]))

    def property_place(self, place: str, name: str) -> str:
        """The schema of a property."""
        if name in self.at(place).get("properties", ()):
            return f"{place}/properties/{name.replace('~', '~0').replace('/', '~1').replace('%', '%25')}"
        return self.open_place(place)

    def open_place(self, place: str) -> str:
        """The schema of a property that is not named."""
        schema = self.at(place)
        if "additionalProperties" in schema:
            return f"{place}/additionalProperties"
        return NOWHERE if self.profile.closed and "properties" in schema else FREE

    def item_place(self, place: str, index: int) -> str:
        """The schema of an item."""
        schema = self.at(place)
        if index < len(schema.get("prefixItems", ())):
            return f"{place}/prefixItems/{index}"
        return f"{place}/items" if "items" in schema else FREE

    def most_items(self, place: str) -> float:
        """The greatest number of items that the schema itself allows."""
        return float(self.at(place).get("maxItems", float("inf")))

    # The expansion of a term.

    def expand(self, term: Term) -> Iterable[Stack]:
        """The term's alternatives, each of which can be completed."""
        match term:
            case Value(place):
                return [s for s in self._alternatives(place) if all(self._settled(t) for t in s)]
            case Members():
                return self._members(term)
            case Items(place, count):
                return self._items(place, count)
        raise TypeError(term)

    def _settled(self, term: Term) -> bool:
        if isinstance(term, Value):
            return self.satisfiable(term.place)
        if isinstance(term, Members | Items):
            self.satisfiable(term.place)
        return self._possible(term)

    def _alternatives(self, place: str) -> list[Stack]:
        schema = self.at(place)
        if "$ref" in schema:
            return [(Value(schema["$ref"]),)]
        if "anyOf" in schema:
            return [(Value(f"{place}/anyOf/{n}"),) for n in range(len(schema["anyOf"]))]
        if "const" in schema or "enum" in schema:
            values = [schema["const"]] if "const" in schema else schema["enum"]
            return [stack for value in values if self._allowed(schema, value) for stack in self._spelled(value)]
        types = schema.get("type", TYPES)
        types = [types] if isinstance(types, str) else types
        return [stack for name in types for stack in self._of_type(place, schema, name)]

    def _of_type(self, place: str, schema: dict[str, Any], name: str) -> list[Stack]:
        match name:
            case "null":
                return [(Fixed(b"null"),)]
            case "boolean":
                return [(OneOf(frozenset({b"true", b"false"})),)]
            case "integer" | "number" if self.profile.exact:
                if name == "number" and not {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} & set(
                    schema
                ):
                    return [(Text(_json_number()),)]
                return [(_by_value(_bounds(schema), name == "integer"),)]
            case "integer":
                return [(Number.whole(_bounds(schema)),)]
            case "number":
                return [(Number.decimal(_bounds(schema)),)]
            case "string" if schema.get("format") == "date":
                date = Date() if self.profile.escapes == "canonical" else Escaped(Date())
                return [(Fixed(b'"'), date, Fixed(b'"'))]
            case "string":
                return [self.profile.string(self._characters(schema))]
            case "array":
                return [(Fixed(b"["), Items(place, 0))]
            case _:
                return [(Fixed(b"{"), Members(place, frozenset(), True))]

    def _characters(self, schema: dict[str, Any]) -> regular.Expr:
        length = regular.times(
            regular.one((0, regular.MAX_CODE_POINT)), schema.get("minLength", 0), schema.get("maxLength")
        )
        return regular.both(length, self.patterns[schema["pattern"]]) if "pattern" in schema else length

    def _allowed(self, schema: dict[str, Any], value: Any) -> bool:
        """Whether a listed value meets the other keywords of the schema; another implementation decides."""
        beside = {name: given for name, given in schema.items() if name not in ("enum", "const", "$defs")}
        return bool(jsonschema.Draft202012Validator(beside).is_valid(value))

    def _spelled(self, value: Any) -> list[Stack]:
        """Returns the texts that the profile allows for a given value."""
        p = self.profile
        if isinstance(value, str):
            return [p.string(regular.literal(value))]
        if isinstance(value, list):
            return [self._framed("[", items, "]") for items in product(*map(self._spelled, value))]
        if isinstance(value, dict):
            orders = permutations(value) if p.key_order == "any" else [tuple(value)]
            return [
                self._framed(
                    "{",
                    [(*p.string(regular.literal(k)), *p.piece(":"), *v) for k, v in zip(keys, made, strict=True)],
                    "}",
                )
                for keys in orders
                for made in product(*(self._spelled(value[key]) for key in keys))
            ]
        if p.exact and isinstance(value, int | float) and not isinstance(value, bool):
            point = Fraction(str(value))
            return [(_by_value(Bounds(point, point), False),)]
        return [(Fixed(json.dumps(value).encode()),)]

    def _framed(self, opening: str, entries: Iterable[Stack], closing: str) -> Stack:
        parts: Stack = ()
        for entry in entries:
            parts += (*self.profile.piece(","), *entry) if parts else entry
        return Fixed(opening.encode()), *self._space(), *parts, *self._space(), Fixed(closing.encode())

    def _members(self, at: Members) -> Iterator[Stack]:
        place, taken, first, used = at.place, at.taken, at.first, at.used
        schema, p, names = self.at(place), self.profile, self.names(place)
        required = [name for name in schema.get("required", ()) if name not in taken]
        start = self._space() if first else p.piece(",")
        passed = set(taken)
        for name in names:
            where = self.property_place(place, name)
            if name not in passed and self.satisfiable(where):
                after = frozenset((passed if p.key_order == "schema" else taken) | {name})
                key = p.string(regular.literal(name)) + p.piece(":")
                yield *start, *key, Value(where), Members(place, after, False, used)
            if p.key_order == "schema":
                passed.add(name)
                if name in required:
                    break
        if (p.key_order == "any" or not required) and self.satisfiable(self.open_place(place)):
            other = regular.complement(regular.either(*(regular.literal(name) for name in {*names, *used})))
            after = frozenset(names) if p.key_order == "schema" else taken
            oracle = Oracle(self, *p.string(other))
            key = OpenKey(oracle, oracle.start, 1 + len(p.piece(":")))
            yield *start, key, *p.piece(":"), Value(self.open_place(place)), Members(place, after, False, used)
        if not required:
            yield *self._space(), Fixed(b"}")

    def _items(self, place: str, count: int) -> Iterator[Stack]:
        where = self.item_place(place, count)
        if count < self.most_items(place) and self.satisfiable(where):
            known = 1 + len(self.at(place).get("prefixItems", ())) + self.at(place).get("minItems", 0)
            bounded = "maxItems" in self.at(place)
            after = count + 1 if bounded or count < known else count  # counts from `known` on are equivalent
            yield *(self.profile.piece(",") if count else self._space()), Value(where), Items(place, after)
        if count >= self.at(place).get("minItems", 0):
            yield *self._space(), Fixed(b"]")

    def _space(self) -> Stack:
        return (Spaces(),) if self.profile.whitespace == "any" else ()


def _by_value(bounds: Bounds, whole: bool) -> ByValue:
    """Numbers between bounds in any spelling."""
    low, high = (None if b is None else Decimal(b.numerator) / b.denominator for b in (bounds.low, bounds.high))
    return ByValue(ir.Number((ir.Cell(low, high, bounds.open_low, bounds.open_high, (Decimal(1),) if whole else ()),)))


def _bounds(schema: dict[str, Any]) -> Bounds:
    def exact(name: str) -> Fraction | None:
        return Fraction(str(schema[name])) if name in schema else None

    low, high = exact("minimum"), exact("maximum")
    over, under = exact("exclusiveMinimum"), exact("exclusiveMaximum")
    open_low = over is not None and (low is None or over >= low)
    open_high = under is not None and (high is None or under <= high)
    return Bounds(over if open_low else low, under if open_high else high, open_low, open_high)
