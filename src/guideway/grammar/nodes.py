"""The grammar: what a source becomes before it meets a vocabulary.

A `Grammar` is a list of nodes that refer to each other by number, so that recursion needs no cycles of Python
objects and nothing that walks it needs to recurse.
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
    "pointer_of",
    "readings",
    "renumbered",
]


@value
class Leaf:
    """A regular piece of text."""

    text: Regular


@value
class Sequence:
    """Nodes one after the other; none: the empty text."""

    parts: tuple[int, ...]


@value
class Alternative:
    """Any of the nodes. They may overlap: the machine then follows all that still fit."""

    parts: tuple[int, ...]


@value
class Punctuation:
    """The fixed text of a frame. `space`: JSON whitespace may stand around every piece as well.

    An empty frame is written `open` + `close`.
    """

    open: str
    comma: str
    colon: str
    close: str
    space: bool = False


@value
class Marked:
    """One way to read a value; read so, it counts for the demands (or counters) whose bits stand in `marks`."""

    marks: int
    node: int


Value = int | tuple[Marked, ...]  # a node, or ways to read it: the machine follows all that fit


def readings(value: Value) -> tuple[Marked, ...]:
    """The ways to read a value; a plain node counts for nothing."""
    return (Marked(0, value),) if isinstance(value, int) else value


@value
class Property:
    """A key (its whole text, quotes included), its value, and whether it must be there."""

    key: Regular
    value: Value
    required: bool


@value
class Object:
    """Keyed entries. Keys of `properties` and `open` must be disjoint languages; no key comes twice.

    `properties`: each at most once. `open`: entries that may come any number of times (additional properties).
    `ordered`: properties come in the order given, open ones after them; else any order. The number of entries is
    within [`minimum`, `maximum`] (None: no end); each of `demands` (bits) is met by at least one entry, which is read
    in a way that bears its mark.
    """

    punctuation: Punctuation
    properties: tuple[Property, ...]
    open: tuple[Property, ...] = ()
    ordered: bool = True
    minimum: int = 0
    maximum: int | None = None
    demands: int = 0


@value
class Array:
    """Items: the i-th is `prefix[i]`, later ones `rest` (None: there are none). `maximum` None: no end.

    `unique`: no two items are equal as JSON values, however they are written. `counts[j]`: how many items must at
    least and may at most (None: no end) bear the mark of bit j; where there is a most, the ways to read an item must
    be disjoint.
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
    """Numbers between two bounds (None: no bound; `open_`: the bound itself is out), by what divides them."""

    low: Decimal | None = None
    high: Decimal | None = None
    open_low: bool = False
    open_high: bool = False
    multiple_of: tuple[Decimal, ...] = ()
    not_multiple_of: tuple[Decimal, ...] = ()


@value
class Number:
    """JSON numbers whose exact value is in one of the cells.

    `spelling` "any": every JSON spelling (1.0, 1e2, -0). "plain": no exponent, and no fraction where the cell is
    whole (it has an integer among `multiple_of`). "pointed": with a fraction or an exponent (1.0, 1e2).
    """

    cells: tuple[Cell, ...]
    spelling: Literal["any", "plain", "pointed"] = "any"


Node = Leaf | Sequence | Alternative | Object | Array | Number


def children(node: Node) -> tuple[int, ...]:
    """The nodes that it refers to."""
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
    """The same with `numbers[i]` in the place of each i that it refers to."""

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
"""Where a node came from: a JSON Pointer; or that of what it stands in, and the names that lead on from there, written
out when somebody asks; None: from nowhere in particular."""


def pointer_of(place: Origin) -> str | None:
    """The JSON Pointer, written out."""
    inside: list[tuple[Any, ...]] = []
    while isinstance(place, tuple):
        inside.append(place)
        place = place[0]
    if inside:
        place = pointer(place or "", *(name for names in reversed(inside) for name in names[1:]))
    return place


@dataclass(slots=True)
class Grammar:
    """Nodes by number, where each came from, and the root's number.

    `first`: expressions written before others, so that they stand in one place in most programs; `ahead`: units of
    the kernel's work (100 are about a microsecond) that compiling may take longer, to find out what masks will need.
    """

    nodes: list[Node | None] = field(default_factory=list)
    places: list[Origin] = field(default_factory=list)
    root: int = 0
    first: tuple[Regular, ...] = ()
    ahead: int = 0

    def place(self, number: int) -> str | None:
        """The JSON Pointer of what a node was made of."""
        return pointer_of(self.places[number])

    def reserve(self, place: Origin = None) -> int:
        """A number for a node that is given later (with `define`): how recursion is written."""
        self.nodes.append(None)
        self.places.append(place)
        return len(self.nodes) - 1

    def define(self, number: int, node: Node) -> int:
        """Give a reserved number its node."""
        self.nodes[number] = node
        return number

    def add(self, node: Node, place: Origin = None) -> int:
        """Reserve and define at once."""
        return self.define(self.reserve(place), node)
