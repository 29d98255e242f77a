"""The grammar: the intermediate representation of constraints.

A `Grammar` is a list of nodes that refer to each other by number. So recursive grammars need no cyclic objects, and
algorithms need no recursion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence as Numbers
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from guideway.grammar.regular import Regular
from guideway.grammar.values import value
from guideway.jsontext.pointer import pointer

__all__ = [
    "Alternative",
    "Array",
    "Cell",
    "Grammar",
    "Leaf",
    "Marked",
    "Node",
    "Number",
    "Object",
    "Origin",
    "Property",
    "Punctuation",
    "Sequence",
    "Value",
    "children",
    "leaf",
    "pointer_of",
    "renumbered",
]


@value
class Leaf:
    """A regular language."""

    text: Regular


@value
class Sequence:
    """A concatenation of nodes; without parts: the empty text."""

    parts: tuple[int, ...]


@value
class Alternative:
    """An alternation of nodes. They may overlap: the automaton follows all that match."""

    parts: tuple[int, ...]


@value
class Punctuation:
    """The fixed texts of an object or array. `space`: JSON white space is allowed around every token.

    An empty object or array is written `open` + `close`.
    """

    open: str
    comma: str
    colon: str
    close: str
    space: bool = False


@value
class Marked:
    """An alternative for a value. A match counts for the demands (or counters) of the bits in `marks`."""

    marks: int
    node: int


Value = int | tuple[Marked, ...]  # a node, or alternatives: the automaton follows all that match


@value
class Property:
    """A key (its complete text with quotes), its value, and whether it is required.

    Attributes:
        missing: The marks that count for the demands of the object if a property does not occur.
    """

    key: Regular
    value: Value
    required: bool
    missing: int = 0


@value
class Object:
    """A JSON object, or a similar list of keyed entries.

    The keys of `properties` and `open` are disjoint languages. No key occurs twice.

    Attributes:
        punctuation: The fixed texts.
        properties: Entries that occur at most once.
        open: Entries that occur any number of times (additional properties).
        ordered: Properties are in the given order, then open entries; else any order.
        minimum: Minimum number of entries.
        maximum: Maximum number of entries; None for no maximum.
        demands: Bits; for each, at least one entry must match an alternative with that mark.
        least: Minimum number of different marks of `demands`; None: all of them.
        most: Maximum number of different marks of `demands`; None: all of them. If there is a maximum, the alternatives
            of a value must be disjoint.
    """

    punctuation: Punctuation
    properties: tuple[Property, ...]
    open: tuple[Property, ...] = ()
    ordered: bool = True
    minimum: int = 0
    maximum: int | None = None
    demands: int = 0
    least: int | None = None
    most: int | None = None


@value
class Array:
    """A JSON array, or a similar list of items.

    Attributes:
        punctuation: The fixed texts.
        prefix: The values of the first items.
        rest: The value of later items; None if there are none.
        minimum: Minimum number of items.
        maximum: Maximum number of items; None for no maximum.
        unique: No two items are equal as JSON values, in any spelling.
        counts: For bit j of the marks: minimum and maximum (None: no maximum) number of items with that mark. If there
            is a maximum, the alternatives of an item must be disjoint.
    """

    punctuation: Punctuation
    prefix: tuple[Value, ...]
    rest: Value | None
    minimum: int = 0
    maximum: int | None = None
    unique: bool = False
    counts: tuple[tuple[int, int | None], ...] = ()


@value
class Cell:
    """Numbers between two bounds (None: unbounded; `open_`: exclusive) with conditions on divisibility."""

    low: Decimal | None = None
    high: Decimal | None = None
    open_low: bool = False
    open_high: bool = False
    multiple_of: tuple[Decimal, ...] = ()
    not_multiple_of: tuple[Decimal, ...] = ()


@value
class Number:
    """JSON numbers whose exact value is in one of the cells.

    `spelling` "any": every JSON spelling (1.0, 1e2, -0). "plain": no exponent, and no fraction if all values of the
    cell are integers (it has an integer in `multiple_of`). "pointed": with a fraction or an exponent (1.0, 1e2).
    """

    cells: tuple[Cell, ...]
    spelling: Literal["any", "plain", "pointed"] = "any"


Node = Leaf | Sequence | Alternative | Object | Array | Number


def children(node: Node) -> tuple[int, ...]:
    """Return the nodes that a node refers to."""
    match node:
        case Sequence(parts) | Alternative(parts):
            return parts
        case Array(_, prefix, rest):
            values = prefix if rest is None else (*prefix, rest)
        case Object(_, properties, others):
            values = tuple(entry.value for entry in (*properties, *others))
        case Leaf() | Number():
            return ()
    return tuple(number for value in values for number in _nodes(value))


def _nodes(value: Value) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(way.node for way in value)


def renumbered(node: Node, numbers: Mapping[int, int] | Numbers[int]) -> Node:
    """Return the node with every reference i replaced by `numbers[i]`."""

    def moved(value: Value) -> Value:
        if isinstance(value, int):
            return numbers[value]
        return tuple(Marked(way.marks, numbers[way.node]) for way in value)

    def entries(given: tuple[Property, ...]) -> tuple[Property, ...]:
        return tuple(replace(entry, value=moved(entry.value)) for entry in given)

    match node:
        case Sequence(parts) | Alternative(parts):
            return replace(node, parts=tuple(numbers[part] for part in parts))
        case Array(_, prefix, rest):
            after = None if rest is None else moved(rest)
            return replace(node, prefix=tuple(map(moved, prefix)), rest=after)
        case Object(_, properties, others):
            return replace(node, properties=entries(properties), open=entries(others))
        case Leaf() | Number():
            return node


Origin = str | tuple[Any, ...] | None
"""The origin of a node: a JSON Pointer; or the origin of its parent with further reference tokens, joined on demand;
None if it has no specific origin."""


def pointer_of(place: Origin) -> str | None:
    """Return the JSON Pointer of an origin."""
    inside: list[tuple[Any, ...]] = []
    while isinstance(place, tuple):
        inside.append(place)
        place = place[0]
    if inside:
        place = pointer(place or "", *(name for names in reversed(inside) for name in names[1:]))
    return place


@dataclass(slots=True)
class Grammar:
    """Nodes by number, with their origins, and the number of the root.

    Attributes:
        nodes: The nodes; None for numbers that are reserved and not defined.
        places: The origin of each node.
        root: Number of the root.
        first: Expressions that are written first, so that they have the same position in most programs.
        ahead: Limit of the work for precomputing masks after compilation, in work units of the kernel (100 take about
            a microsecond).
    """

    nodes: list[Node | None] = field(default_factory=list)
    places: list[Origin] = field(default_factory=list)
    root: int = 0
    first: tuple[Regular, ...] = ()
    ahead: int = 0

    def place(self, number: int) -> str | None:
        """Return the JSON Pointer of the origin of a node, or None for a node that the kernel has added."""
        return pointer_of(self.places[number]) if number < len(self.places) else None

    def reserve(self, place: Origin = None) -> int:
        """Return a number for a node that is defined later, which allows recursion."""
        self.nodes.append(None)
        self.places.append(place)
        return len(self.nodes) - 1

    def define(self, number: int, node: Node) -> int:
        """Define a reserved node."""
        self.nodes[number] = node
        return number

    def add(self, node: Node, place: Origin = None) -> int:
        """Add a node and return its number."""
        return self.define(self.reserve(place), node)


def leaf(text: Regular) -> Grammar:
    """Return a grammar of one leaf."""
    grammar = Grammar()
    grammar.root = grammar.add(Leaf(text))
    return grammar
