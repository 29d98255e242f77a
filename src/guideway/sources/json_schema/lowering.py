"""Wants -> nodes: one node per want, made from a list of what is still to do. Nothing recurses on the schema."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import TypeVar

from guideway.errors import LimitExceeded, Unsupported
from guideway.grammar.nodes import (
    Alternative,
    Array,
    Grammar,
    Leaf,
    Node,
    Number,
    Object,
    Property,
    Punctuation,
    Sequence,
    Value,
    children,
)
from guideway.grammar.program import shared
from guideway.grammar.regular import NEVER, Literals, Regular, chars, either, repeat

from .bundles import (
    ARRAY,
    FALSE,
    FREE,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TRUE,
    ArrayPart,
    Bundle,
    NumberPart,
    ObjectPart,
    StringPart,
    Want,
    box_key,
    join,
)
from .expand import Expander
from .keywords import pointer
from .objects import Objects, check_readings, value_of
from .reader import write_json
from .scalars import any_key, any_scalar, number, plain_scalar, string
from .style import MAX_INDENTED, Style
from .terms import Term

__all__ = ["MAX_NODES", "Lowering"]

MAX_NODES = 200_000
"""How many nodes a schema may come to."""

MAX_BOXES = 2000
"""How many given arrays and objects may be the alternatives of one node: all of them are open at once."""

MAX_WIDE = 250
"""How many objects may be the alternatives of one node if such nodes stand in one another: what is open multiplies."""

MOST_TYPES = 7
"""How many types there are, as bundles tell them."""

_SPACE = shared(repeat(chars("  ", "\t\t", "\n\n", "\r\r")))
_WORDS = ((NULL, "null"), (TRUE, "true"), (FALSE, "false"))


@cache
def _punctuation(style: Style) -> list[tuple[Punctuation, Punctuation]]:
    """Of arrays and of objects, by level."""
    levels = range(MAX_INDENTED + 1 if style.whitespace == "indented" else 1)
    return [(style.marks("[]", level), style.marks("{}", level)) for level in levels]


@cache
def _first(style: Style) -> tuple[Regular, ...]:
    """What most grammars hold, as it is written."""
    return (any_scalar(style).text, any_key(style), *((_SPACE,) if style.whitespace == "any" else ()))


class Lowering:
    """One walk over one document."""

    def __init__(self, expander: Expander, style: Style) -> None:
        self._expander = expander
        self._style = style
        self._grammar = Grammar()
        self._deepest = MAX_INDENTED if style.whitespace == "indented" else 0
        levels = range(self._deepest + 1)
        self._numbers: list[dict[Want, int]] = [{} for _ in levels]
        self._plain: list[dict[Term, int]] = [{} for _ in levels]  # of terms that are the same wherever they stand
        self._values: list[dict[str, int]] = [{} for _ in levels]
        self._todo: list[tuple[int, Want, int]] = []
        self._boxes: list[tuple[int, object, int]] = []
        self._level = 0  # of what is being made, where lines are indented
        self._texts: dict[StringPart | None, Regular] = {}
        self._punctuation = _punctuation(style)
        self._objects = Objects(expander, style, self._node)
        self.refusals = expander.refusals

    def run(self) -> Grammar:
        """The grammar; `Unsupported` names every place that is refused."""
        root = self._node_at(frozenset((self._expander.root(),)) - {0}, 0)
        while self._todo or self._boxes:
            if self._boxes:
                self._define_value(*self._boxes.pop())
                continue
            number, wanted, self._level = self._todo.pop()
            place = self._grammar.places[number] or ""
            try:
                self._define(number, wanted, place)
            except Unsupported as problem:
                self._refuse(problem, place)
                self._grammar.define(number, Leaf(NEVER))
        self._raise_refusals()
        self._check_breadth()
        if self._style.whitespace == "any":
            space = self._grammar.add(Leaf(_SPACE))
            root = self._grammar.add(Sequence((space, root, space)))
        self._grammar.root = root
        return self._grammar

    def _check_breadth(self) -> None:
        """Refuse what would open thousands of alternatives at once while a text is read."""
        nodes = self._grammar.nodes
        wide = {i for i, node in enumerate(nodes) if isinstance(node, Alternative) and len(node.parts) > MAX_WIDE}
        wide = {i for i in wide if sum(isinstance(nodes[part], Object) for part in nodes[i].parts) > MAX_WIDE}  # type: ignore[union-attr]  # alternatives, as above
        for start in wide:
            seen, todo = set[int](), [start]
            while todo:
                node = nodes[todo.pop()]
                new = set(children(node)) - seen if node is not None else set()
                if new & wide:
                    place = self._grammar.places[start] or ""
                    raise LimitExceeded(
                        f"at {place!r}: more than {MAX_WIDE} alternatives within such alternatives", place
                    )
                seen |= new
                todo += new

    def _node(self, wanted: Want) -> int:
        """The number of the node of a want, of a value inside what is being made; it is defined later."""
        return self._node_at(wanted, min(self._level + 1, self._deepest))

    def _node_at(self, wanted: Want, level: int) -> int:
        numbers, plain = self._numbers[level], self._plain[level]
        found = numbers.get(wanted)
        if found is not None:
            return found
        term = self._expander.plain_term(wanted)
        if term is not None and (found := plain.get(term)) is not None:
            numbers[wanted] = found
            return found
        place = self._expander.places[min(wanted) >> 1].pointer if wanted else None
        found = numbers[wanted] = self._grammar.reserve(place)
        if term is not None:
            plain[term] = found
        scalar = None if term is None else plain_scalar(term.own.types, term.own.number, self._style)
        if scalar is not None:
            self._grammar.define(found, scalar)
        elif (term is not None and term.own is FREE) or not wanted:
            self._define_anything(found, level)
        else:
            self._todo.append((found, wanted, level))
        if found > MAX_NODES:
            raise LimitExceeded(f"at {place!r}: the schema comes to more than {MAX_NODES} nodes", place)
        return found

    def _define_anything(self, number: int, level: int) -> None:
        """The node of any JSON value, which is the same in all grammars of a style but for its number."""
        grammar, style = self._grammar, self._style
        grammar.first = _first(style)
        inside = number if level == self._deepest else self._node_at(frozenset(), level + 1)
        brackets, braces = self._punctuation[level]
        entry = Property(any_key(style), inside, False)
        frames = self._frames(Array(brackets, (), inside), level)
        frames += self._frames(Object(braces, (), (entry,), style.key_order == "schema"), level)
        grammar.define(number, Alternative(tuple(map(grammar.add, (any_scalar(style), *frames)))))

    def _frames(self, frame: Array | Object | None, level: int) -> list[Node]:
        """The frame; where lines are indented, an empty one is written on one line."""
        if frame is None:
            return []
        marks = frame.punctuation
        if level == self._deepest or frame.minimum or self._never_empty(frame):
            return [frame]
        return [Leaf(Literals((marks.open[0] + marks.close[-1],))), replace(frame, minimum=1)]

    @staticmethod
    def _never_empty(frame: Array | Object) -> bool:
        if isinstance(frame, Array):
            return any(least for least, _ in frame.counts)
        return bool(frame.demands) or any(entry.required for entry in frame.properties)

    def _define(self, number: int, wanted: Want, place: str) -> None:
        """One node that is any of the alternatives."""
        bundles = self._expander.alternatives(wanted)
        if len(bundles) == 1 and (made := self._single(bundles[0], place)) is not None:
            self._grammar.define(number, made)
            return
        texts, nodes = self._scalars(bundles, place)
        level = self._level
        for array in _widest(one.array for one in bundles if one.types & ARRAY and one.boxes is None):
            nodes += self._frames(self._array(array or ArrayPart(), place), level)
        for part in _widest(one.object for one in bundles if one.types & OBJECT and one.boxes is None):
            nodes += self._frames(self._objects.node(part or ObjectPart(), place, self._punctuation[level][1]), level)
        parts: list[int] = []
        for bundle in bundles:
            if bundle.boxes:
                parts += self._given_boxes(bundle.boxes, texts, place)
        if texts:
            nodes.insert(0, Leaf(either(texts)))
        if len(nodes) == 1 and not parts:
            self._grammar.define(number, nodes[0])
        elif nodes or parts:
            parts = [self._grammar.add(node, place) for node in nodes] + parts
            self._grammar.define(number, Alternative(tuple(dict.fromkeys(parts))))
        else:
            self._grammar.define(number, Leaf(NEVER))

    def _single(self, bundle: Bundle, place: str) -> Node | None:
        """The node of values of one type, as most are; None for others."""
        types = bundle.types
        if types == STRING:
            return Leaf(self._string(bundle.string, place))
        if types == OBJECT and bundle.boxes is None and self._level == self._deepest:
            marks = self._punctuation[self._level][1]
            return self._objects.node(bundle.object or ObjectPart(), place, marks) or Leaf(NEVER)
        if types == NUMBER:
            made = number(bundle.number, self._style)
            return made if isinstance(made, Number) else Leaf(made)
        if types == ARRAY and bundle.boxes is None and self._level == self._deepest:
            return self._array(bundle.array or ArrayPart(), place) or Leaf(NEVER)
        return None

    # -- null, booleans, numbers, strings

    def _scalars(self, bundles: list[Bundle], place: str) -> tuple[list[Regular], list[Node]]:
        types = 0
        for bundle in bundles:
            types |= bundle.types
        words = tuple(word for bit, word in _WORDS if types & bit)
        texts: list[Regular] = [Literals(words)] if words else []
        nodes: list[Node] = []
        for part in _widest(one.number for one in bundles if one.types & NUMBER):
            made = number(part, self._style)
            if isinstance(made, Number):
                nodes.append(made)
            elif made is not NEVER:
                texts.append(made)
        for one in _widest(one.string for one in bundles if one.types & STRING):
            texts.append(self._string(one, place))
        return texts, nodes

    def _string(self, part: StringPart | None, place: str) -> Regular:
        if part not in self._texts:
            try:
                self._texts[part] = string(part, self._style)
            except Unsupported as problem:
                self._refuse(problem, place)
                self._texts[part] = NEVER
        return self._texts[part]

    # -- arrays

    def _array(self, part: ArrayPart, place: str) -> Array | None:
        if part.twins:
            raise Unsupported("items that must not be unique", place)
        fewest, most = part.fewest, part.most
        counted = []
        for start, what, least, limit in part.contains:
            if what:
                counted.append((start, what, least, limit))
            elif limit is not None and (most is None or start + limit < most):
                most = start + limit
            if not what and least:
                fewest = max(fewest, start + least)
        if most is not None and fewest > most:
            return None
        length = max([len(part.prefix), *(start for start, *_ in counted)])
        length = length if most is None else min(length, most)
        prefix = tuple(
            self._item(part.prefix[i] if i < len(part.prefix) else part.rest, counted, i, place) for i in range(length)
        )
        rest = None
        if (most is None or most > length) and 1 not in part.rest:
            rest = self._item(part.rest, counted, length, place)
        counts = tuple((least, limit) for _, _, least, limit in counted)
        marks = self._punctuation[self._level][0]
        unique = part.unique and not self._all_differ(part, most)
        if unique and counts:
            raise Unsupported("different items, some of which are counted by contains", self._at("uniqueItems", place))
        if unique and prefix and fewest > 1:
            reason = "a minimum of items that must all be different and are told by position"
            raise Unsupported(reason, self._at("uniqueItems", place))
        return Array(marks, prefix, rest, fewest, most, unique, counts)

    def _at(self, keyword: str, place: str) -> str:
        """The place of the keyword, if it stands in the schema there."""
        here = (one.schema for one in self._expander.places if one.pointer == place)
        return pointer(place, keyword) if any(isinstance(one, dict) and keyword in one for one in here) else place

    def _all_differ(self, part: ArrayPart, most: int | None) -> bool:
        """Whether the items are of different types, each: no two of them can be equal."""
        if most is None or most > MOST_TYPES:
            return False
        seen = 0
        for i in range(most):
            types = 0
            for bundle in self._expander.alternatives(part.prefix[i] if i < len(part.prefix) else part.rest):
                types |= bundle.types
            if types & seen:
                return False
            seen |= types
        return True

    def _item(self, wanted: Want, counted: list[tuple[int, Want, int, int | None]], at: int, place: str) -> Value:
        """The ways to read an item; those of counters with a most exclude each other."""
        ways: list[tuple[int, Want]] = [(0, wanted)]
        for j, (start, what, _, limit) in enumerate(counted):
            if at < start:
                continue
            split: list[tuple[int, Want]] = []
            for marks, one in ways:
                met = join(one, what)
                if met == one:
                    split.append((marks | 1 << j, one))
                    continue
                split.append((marks | 1 << j, met))
                split += [(marks, one)] if limit is None else [(marks, other) for other in self._without(one, what)]
            ways = [way for way in split if 1 not in way[1]]
            check_readings(len(ways), place)
        return value_of(ways, self._node)

    def _without(self, wanted: Want, what: Want) -> list[Want]:
        """What meets `wanted` and not all of `what`, parted so that no two overlap."""
        found, held = [], wanted
        for literal in sorted(what):
            found.append(join(held, frozenset((literal ^ 1,))))
            held = join(held, frozenset((literal,)))
        return found

    # -- given arrays and objects

    def _given_boxes(self, boxes: dict[str, object], texts: list[Regular], place: str) -> list[int]:
        """As one text each where the style leaves no choice, else as nodes."""
        if not self._style.fixed:
            if len(boxes) > MAX_BOXES:
                what = f"more than {MAX_BOXES} given arrays and objects, each of which may be written in many ways"
                raise LimitExceeded(f"at {place!r}: {what}", place)
            return [self._given(box, self._level) for box in boxes.values()]
        style = self._style
        texts.append(
            Literals(tuple(dict.fromkeys(write_json(box, style.comma, style.colon) for box in boxes.values())))
        )
        return []

    def _given(self, value: object, level: int) -> int:
        key, values = box_key(value), self._values[level]
        if key not in values:
            values[key] = self._grammar.reserve()
            self._boxes.append((values[key], value, level))
        return values[key]

    def _define_value(self, number_: int, value: object, level: int) -> None:
        """The node of one given value, where it can be written in several ways."""
        node: Node
        marks, inside = self._punctuation[level], min(level + 1, self._deepest)
        if isinstance(value, list):
            items = tuple(self._given(one, inside) for one in value)
            node = self._frames(Array(marks[0], items, None, len(items), len(items)), level)[0]
        elif isinstance(value, dict):
            ordered, key_of = self._style.key_order == "schema", self._style.strings
            entries = (Property(key_of((key,)), self._given(one, inside), True) for key, one in value.items())
            node = self._frames(Object(marks[1], tuple(entries), (), ordered), level)[0]
        elif isinstance(value, str):
            node = Leaf(self._style.strings((value,)))
        elif value is None or isinstance(value, bool):
            node = Leaf(Literals((write_json(value),)))
        else:
            made = number(NumberPart(given=frozenset((value,))), self._style)  # type: ignore[arg-type]  # a number
            node = made if isinstance(made, Number) else Leaf(made)
        self._grammar.define(number_, node)

    # -- what is not possible

    def _refuse(self, problem: Unsupported, place: str) -> None:
        self.refusals.setdefault(place if problem.place is None else problem.place, str(problem))

    def _raise_refusals(self) -> None:
        """One error for all of them."""
        if not self.refusals:
            return
        lines = [f"at {place!r}: {what}" for place, what in self.refusals.items()]
        first = next(iter(self.refusals))
        if len(lines) == 1:
            raise Unsupported(f"not supported {lines[0]}", first)
        raise Unsupported(f"not supported in {len(lines)} places:\n  " + "\n  ".join(lines), first)


_Part = TypeVar("_Part")


def _widest(parts: Iterable[_Part | None]) -> list[_Part | None]:
    """Each part once; only None, which says nothing, where it is among them."""
    found = dict.fromkeys(parts)
    return [None] if None in found else list(found)
