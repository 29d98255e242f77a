"""The grammar: the intermediate representation of constraints.

A `Grammar` is a list of nodes that refer to each other by number. So recursive grammars need no cyclic objects, and
algorithms need no recursive functions.
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
    """The texts of a regular language."""

    text: Regular


@value
class Sequence:
    """A concatenation of nodes; without parts: the empty text."""

    parts: tuple[int, ...]


@value
class Alternative:
    """An alternation of nodes. Their languages may overlap: the automaton follows all nodes that match."""

    parts: tuple[int, ...]


@value
class Punctuation:
    """The fixed texts of an object or array. An empty one is written `open` + `close`.

    Attributes:
        open: The opening bracket, with the white space after it.
        comma: The text between two entries or items.
        colon: The text between a key and its value.
        close: The closing bracket, with the white space before it.
        space: Whether any JSON white space is allowed around these texts, in addition to what they contain.
    """

    open: str
    comma: str
    colon: str
    close: str
    space: bool = False


@value
class Marked:
    """One of several alternatives for the value of an entry or item.

    Attributes:
        marks: Bits. If the value matches the node, its entry counts for the `Object.demands` with these bits, or its
            item for the `Array.counts` with these numbers.
        node: The number of the node.
    """

    marks: int
    node: int


Value = int | tuple[Marked, ...]
"""The number of a node, or alternatives. The automaton follows all alternatives that match."""


@value
class Property:
    """An entry of an object (`Object.properties`), or a class of entries (`Object.open`).

    Attributes:
        key: The language of the key, or of the keys of the class, with the quotes.
        value: The node of the value, or alternatives.
        required: Whether the entry must occur.
        missing: Bits of `Object.demands` that are marked if the entry does not occur.
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
        punctuation: The brackets and separators.
        properties: Entries that occur at most once each.
        open: Classes of entries of which any number may occur (additional properties).
        ordered: True: the entries of `properties` are in the given order, and those of `open` follow. False: any order.
        minimum: The minimum number of entries.
        maximum: The maximum number of entries; None: no maximum.
        demands: The bits that entries (`Marked.marks`) or missing properties (`Property.missing`) mark. By default,
            each of these bits must be marked.
        least: The minimum number of bits of `demands` that are marked; None: all of them.
        most: The maximum number of bits of `demands` that are marked; None: no maximum. If there is a maximum, the
            languages of the alternatives of a value must be disjoint. This is not checked.
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
        punctuation: The brackets and separators.
        prefix: The values of the first items, one for each item.
        rest: The value of every item after those of `prefix`; None: there are none.
        minimum: The minimum number of items.
        maximum: The maximum number of items; None: no maximum.
        unique: Whether no two items may be equal as JSON values, in any spelling.
        counts: Pair j has the minimum and the maximum (None: no maximum) number of array items that mark bit j (see
            `Marked.marks`). If there is a maximum, the languages of the alternatives of an array item must be disjoint.
            This is not checked.
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
    """The numbers in an interval that meet conditions on divisibility.

    Attributes:
        low: The lower bound; None: unbounded.
        high: The upper bound; None: unbounded.
        open_low: Whether `low` itself is not in the interval.
        open_high: Whether `high` itself is not in the interval.
        multiple_of: Divisors: the numbers must be multiples of each of them.
        not_multiple_of: The numbers must be multiples of none of these.
    """

    low: Decimal | None = None
    high: Decimal | None = None
    open_low: bool = False
    open_high: bool = False
    multiple_of: tuple[Decimal, ...] = ()
    not_multiple_of: tuple[Decimal, ...] = ()


@value
class Number:
    """The JSON numbers whose exact value is in one of `cells`.

    Attributes:
        cells: Intervals with conditions on divisibility.
        spelling: "any": every JSON spelling (1.0, 1e2, -0). "plain": without an exponent, and without a fraction if
            the `multiple_of` of its interval contains an integer. "pointed": with a fraction or an exponent (1.0, 1e2).
    """

    cells: tuple[Cell, ...]
    spelling: Literal["any", "plain", "pointed"] = "any"


Node = Leaf | Sequence | Alternative | Object | Array | Number


def children(node: Node) -> tuple[int, ...]:
    """Return the numbers of the nodes that a node refers to."""
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
"""The origin of a node in a document, such as a JSON Schema. None: it has no specific origin.

It is a JSON Pointer, or a tuple: the origin of its parent and the reference tokens from there to it. `pointer_of` joins
them.
"""


def pointer_of(place: Origin) -> str | None:
    """Return the JSON Pointer of an origin. None for the origin None."""
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
        nodes: The nodes by number; None for numbers that are reserved and not defined yet.
        places: The origin of each node.
        root: The number of the root.
        first: Expressions that are encoded first, so that they have the same position in most programs.
        ahead: The maximum work for computing masks in advance after compilation, in the kernel's units of work. 100
            units take about a microsecond. 0: no masks are computed in advance.
        emptiness: What `constraints/exports.py` has found: True if no text fits, False if one does. A tuple: the
            message and the JSON Pointer of the error if a limit was exceeded. None: it was not tested.
    """

    nodes: list[Node | None] = field(default_factory=list)
    places: list[Origin] = field(default_factory=list)
    root: int = 0
    first: tuple[Regular, ...] = ()
    ahead: int = 0
    emptiness: bool | tuple[str, str | None] | None = field(default=None, init=False, repr=False, compare=False)

    def place(self, number: int) -> str | None:
        """Return the JSON Pointer of the origin of a node. None if it has no origin, or if the kernel has added it."""
        return pointer_of(self.places[number]) if number < len(self.places) else None

    def reserve(self, place: Origin = None) -> int:
        """Return a number for a node that is defined later, so that nodes can refer to each other."""
        self.nodes.append(None)
        self.places.append(place)
        return len(self.nodes) - 1

    def define(self, number: int, node: Node) -> int:
        """Define a reserved node. Returns its number."""
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
