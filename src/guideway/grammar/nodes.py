"""The grammar: what a source becomes before it meets a vocabulary.

A `Grammar` is a list of nodes that refer to each other by number, so that recursion needs no cycles of Python
objects and nothing that walks it needs to recurse.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Numbers
from dataclasses import dataclass, field, replace

from .regular import Regular

__all__ = [
    "Alternative",
    "Array",
    "Grammar",
    "Leaf",
    "Node",
    "Object",
    "Property",
    "Punctuation",
    "Sequence",
    "children",
    "renumbered",
]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A regular piece of text."""

    text: Regular


@dataclass(frozen=True, slots=True)
class Sequence:
    """Nodes one after the other; none: the empty text."""

    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Any of the nodes. They may overlap: the machine then follows all that still fit."""

    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Punctuation:
    """The fixed text of a frame. `space`: JSON whitespace may stand around every piece as well.

    An empty frame is written `open` + `close`.
    """

    open: str
    comma: str
    colon: str
    close: str
    space: bool = False


@dataclass(frozen=True, slots=True)
class Property:
    """A key (its whole text, quotes included), the node of its value, and whether it must be there."""

    key: Regular
    value: int
    required: bool


@dataclass(frozen=True, slots=True)
class Object:
    """Keyed entries. Keys of `properties` and `open` must be disjoint languages.

    `properties`: each at most once. `open`: entries that may come any number of times (additional properties).
    `ordered`: properties come in the order given, open ones after them; else any order.
    """

    punctuation: Punctuation
    properties: tuple[Property, ...]
    open: tuple[Property, ...] = ()
    ordered: bool = True


@dataclass(frozen=True, slots=True)
class Array:
    """Items: the i-th is `prefix[i]`, later ones `rest` (None: there are none). `maximum` None: no end."""

    punctuation: Punctuation
    prefix: tuple[int, ...]
    rest: int | None
    minimum: int = 0
    maximum: int | None = None


Node = Leaf | Sequence | Alternative | Object | Array


def children(node: Node) -> tuple[int, ...]:
    """The nodes that it refers to."""
    match node:
        case Sequence(parts) | Alternative(parts):
            return parts
        case Array(_, prefix, rest):
            return prefix if rest is None else (*prefix, rest)
        case Object(_, properties, others):
            return tuple(entry.value for entry in (*properties, *others))
        case Leaf():
            return ()


def renumbered(node: Node, numbers: Mapping[int, int] | Numbers[int]) -> Node:
    """The same with `numbers[i]` in the place of each i that it refers to."""
    match node:
        case Sequence(parts) | Alternative(parts):
            return replace(node, parts=tuple(numbers[part] for part in parts))
        case Array(_, prefix, rest):
            after = None if rest is None else numbers[rest]
            return replace(node, prefix=tuple(numbers[part] for part in prefix), rest=after)
        case Object(_, properties, others):
            return replace(node, properties=_moved(properties, numbers), open=_moved(others, numbers))
        case Leaf():
            return node


def _moved(entries: tuple[Property, ...], numbers: Mapping[int, int] | Numbers[int]) -> tuple[Property, ...]:
    return tuple(replace(entry, value=numbers[entry.value]) for entry in entries)


@dataclass(slots=True)
class Grammar:
    """Nodes by number, where each came from (a JSON Pointer, or None), and the root's number."""

    nodes: list[Node | None] = field(default_factory=list)
    places: list[str | None] = field(default_factory=list)
    root: int = 0

    def reserve(self, place: str | None = None) -> int:
        """A number for a node that is given later (with `define`): how recursion is written."""
        self.nodes.append(None)
        self.places.append(place)
        return len(self.nodes) - 1

    def define(self, number: int, node: Node) -> int:
        """Give a reserved number its node."""
        self.nodes[number] = node
        return number

    def add(self, node: Node, place: str | None = None) -> int:
        """Reserve and define at once."""
        return self.define(self.reserve(place), node)
