"""Lowers wants to grammar nodes, one node per want, with an explicit worklist.

Schemas are not traversed recursively.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from guideway.background import checkpoint
from guideway.errors import LimitExceededError, UnsupportedError
from guideway.frontends.json_schema.bundles import (
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
from guideway.frontends.json_schema.common import SPACE, anything, punctuation
from guideway.frontends.json_schema.expand import Expander
from guideway.frontends.json_schema.limits import MAX_WIDE
from guideway.frontends.json_schema.objects import Objects, check_readings, value_of
from guideway.frontends.json_schema.scalars import number, plain_scalar, string
from guideway.frontends.json_schema.straight import MAX_NODES, Straight, reserve
from guideway.frontends.json_schema.style import MAX_INDENTED, Style
from guideway.frontends.json_schema.terms import Term, want
from guideway.grammar.nodes import (
    Alternative,
    Array,
    Grammar,
    Leaf,
    Node,
    Number,
    Object,
    Origin,
    Property,
    Sequence,
    Value,
    children,
    pointer_of,
)
from guideway.grammar.regular import NEVER, Literals, Regular, either
from guideway.jsontext.encoder import write_json
from guideway.jsontext.pointer import pointer, shown

__all__ = ["MAX_NODES", "Lowering"]

MAX_BOXES = 2000
"""The maximum number of constant arrays and objects that are alternatives of one node, because all are open at once."""

MOST_TYPES = 7
"""The number of types that bundles distinguish."""

_WORDS = ((NULL, "null"), (TRUE, "true"), (FALSE, "false"))


class Lowering:
    """Lowers one document.

    If `straight` is given, lowers only the schemas that the fast path does not handle, into the same grammar.
    """

    def __init__(self, expander: Expander, style: Style, straight: Straight | None = None) -> None:
        self._expander = expander
        self._style = style
        self._straight = straight
        self._grammar = Grammar() if straight is None else straight.grammar
        self._deepest = MAX_INDENTED if style.whitespace == "indented" else 0
        levels = range(self._deepest + 1)
        self._numbers: list[dict[Want, int]] = [{} for _ in levels]
        # of wants with one literal, and of the empty want (0)
        self._singles: list[dict[int, int]] = [{} for _ in levels]
        self._plain: list[dict[Term, int]] = [{} for _ in levels]  # of terms that are independent of their location
        self._values: list[dict[str, int]] = [{} for _ in levels]
        self._todo: list[tuple[int, Any, Any]] = [] if straight is None else straight.todo
        self._level = 0  # the nesting level of the current node, for indented output
        self._texts: dict[StringPart | None, Regular] = {}
        self._punctuation = punctuation(style)
        self._objects = Objects(expander, style, self._node)
        self.refusals = expander.refusals

    def run(self) -> Grammar:
        """Build the grammar. Raises `UnsupportedError` with every refused location."""
        root = self._single_at(self._expander.root(), 0)
        while self._todo:
            checkpoint()
            self.define(*self._todo.pop())
        self.finish()
        if self._style.whitespace == "any":
            space = self._grammar.add(Leaf(SPACE))
            root = self._grammar.add(Sequence((space, root, space)))
        self._grammar.root = root
        return self._grammar

    def define(self, number: int, wanted: Want | _Given, level: int) -> None:
        """Define a node from the worklist."""
        self._level = level
        if isinstance(wanted, _Given):
            self._define_value(number, wanted.value, level)
            return
        place = self._grammar.place(number) or ""
        try:
            self._define(number, wanted, place)
        except UnsupportedError as problem:
            self._refuse(problem, place)
            self._grammar.define(number, Leaf(NEVER))

    def define_schema(self, number: int, schema: dict[str, Any]) -> None:
        """Define the node of a schema of the document."""
        self.define(number, want(self._literal(schema, self._grammar.places[number])), 0)

    def reference(self, schema: dict[str, Any], place: Origin) -> int | None:
        """The number of the target's node if a schema is only a reference.

        Returns:
            The number; -1 if the target has no value; None if the schema has other keywords.
        """
        literal = self._literal(schema, place)
        if literal == 1:
            return -1
        return None if self._expander.places[literal >> 1].schema is schema else self._single_at(literal, 0)

    def _literal(self, schema: dict[str, Any], place: Origin) -> int:
        expander = self._expander
        return expander.literal(schema, pointer_of(place) or "", expander.documents.main, ())

    def finish(self) -> None:
        """Refuse schemas that cannot be enforced, or that have too many nested alternatives."""
        self._raise_refusals()
        self._check_breadth()

    def _check_breadth(self) -> None:
        """Refuse nested alternatives that would open thousands of parser states at once."""
        nodes = self._grammar.nodes
        wide = {i for i, node in enumerate(nodes) if isinstance(node, Alternative) and len(node.parts) > MAX_WIDE}
        wide = {i for i in wide if sum(isinstance(nodes[part], Object) for part in nodes[i].parts) > MAX_WIDE}  # type: ignore[union-attr]  # alternatives, as above
        for start in wide:
            seen, todo = set[int](), [start]
            while todo:
                node = nodes[todo.pop()]
                new = set(children(node)) - seen if node is not None else set()
                if new & wide:
                    place = self._grammar.place(start) or ""
                    raise LimitExceededError(
                        f"at {shown(place)}: a choice inside these alternatives has more than {MAX_WIDE} alternatives; use fewer branches",
                        place,
                    )
                seen |= new
                todo += new

    def _node(self, wanted: Want) -> int:
        """The number of the node of a want for a value inside the current node. It is defined later."""
        level = min(self._level + 1, self._deepest)
        if len(wanted) < 2:
            return self._single_at(next(iter(wanted), 0), level)
        found = self._numbers[level].get(wanted)
        if found is None:
            found = self._numbers[level][wanted] = reserve(
                self._grammar, self._expander.places[min(wanted) >> 1].pointer
            )
            self._todo.append((found, wanted, level))
        return found

    def _single_at(self, literal: int, level: int) -> int:
        numbers, plain = self._singles[level], self._plain[level]
        found = numbers.get(literal)
        if found is not None:
            return found
        straight, place = self._straight, self._expander.places[literal >> 1]
        if straight is not None and not literal & 1 and (not literal or self._expander.is_own(place)):
            if not literal:
                return straight.any_number()
            known = straight.numbers.get(id(place.schema))
            return straight.own_number(place.schema, place.pointer) if known is None else known
        term = None if literal & 1 or not literal else self._expander.plain_term(place)
        if term is not None and (found := plain.get(term)) is not None:
            numbers[literal] = found
            return found
        found = numbers[literal] = reserve(self._grammar, place.pointer if literal else None)
        if term is not None:
            plain[term] = found
        scalar = None if term is None else plain_scalar(term.own.types, term.own.number, self._style)
        if scalar is not None:
            self._grammar.define(found, scalar)
        elif (term is not None and term.own is FREE) or not literal:
            self._define_anything(found, level)
        else:
            self._todo.append((found, want(literal), level))
        return found

    def _define_anything(self, number: int, level: int) -> None:
        """Define the node of any JSON value at a level."""
        inside = number if level == self._deepest else self._single_at(0, level + 1)
        scalar, array, object_ = anything(self._grammar, self._style, inside, level)
        nodes = [scalar, *self._frames(array, level), *self._frames(object_, level)]
        self._grammar.define(number, Alternative(tuple(map(self._grammar.add, nodes))))

    def _frames(self, frame: Array | Object | None, level: int) -> list[Node]:
        """The array or object. In indented output, an empty one is a separate node on one line."""
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
        """Define one node as the disjunction of all alternatives."""
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
        """The node of a bundle with a single type, which is the common case. None for other bundles."""
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
            except UnsupportedError as problem:
                self._refuse(problem, place)
                self._texts[part] = NEVER
        return self._texts[part]

    # -- arrays

    def _array(self, part: ArrayPart, place: str) -> Array | None:
        if part.twins:
            raise UnsupportedError("a `not` around uniqueItems", place)
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
            raise UnsupportedError("uniqueItems together with contains", self._at("uniqueItems", place))
        if unique and prefix and fewest > 1:
            reason = "uniqueItems with prefixItems and a minimum of two or more items"
            raise UnsupportedError(reason, self._at("uniqueItems", place))
        return Array(marks, prefix, rest, fewest, most, unique, counts)

    def _at(self, keyword: str, place: str) -> str:
        """The JSON Pointer of the keyword, if the schema at this place has it."""
        here = (one.schema for one in self._expander.places if one.pointer == place)
        return pointer(place, keyword) if any(isinstance(one, dict) and keyword in one for one in here) else place

    def _all_differ(self, part: ArrayPart, most: int | None) -> bool:
        """Whether the items have pairwise disjoint types, so that no two of them can be equal."""
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
        """The ways to read an item. Ways are mutually exclusive with respect to counters that have a maximum."""
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
        """A disjoint partition of the values that meet `wanted` but violate `what`."""
        found, held = [], wanted
        for literal in sorted(what):
            found.append(join(held, frozenset((literal ^ 1,))))
            held = join(held, frozenset((literal,)))
        return found

    # -- constant arrays and objects

    def _given_boxes(self, boxes: dict[str, object], texts: list[Regular], place: str) -> list[int]:
        """Add constants as one text each if the style determines the text, else return their nodes."""
        if not self._style.fixed:
            if len(boxes) > MAX_BOXES:
                what = f"enum and const have more than {MAX_BOXES:,} arrays and objects in total, each of which "
                "has many spellings; use fewer values, or profile='generation'"
                raise LimitExceededError(f"at {shown(place)}: {what}", place)
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
            self._todo.append((values[key], _Given(value), level))
        return values[key]

    def _define_value(self, number_: int, value: object, level: int) -> None:
        """Define the node of a constant that can be written in several ways."""
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

    # -- refusals

    def _refuse(self, problem: UnsupportedError, place: str) -> None:
        self.refusals.setdefault(place if problem.place is None else problem.place, str(problem))

    def _raise_refusals(self) -> None:
        """Raise one error for all refusals."""
        if not self.refusals:
            return
        lines = [f"at {shown(place)}: {what}" for place, what in self.refusals.items()]
        first = next(iter(self.refusals))
        if len(lines) == 1:
            raise UnsupportedError(f"not supported {lines[0]}", first)
        raise UnsupportedError(f"not supported in {len(lines)} places:\n  " + "\n  ".join(lines), first)


class _Given(NamedTuple):
    """A constant in the worklist."""

    value: object


_Part = TypeVar("_Part")


def _widest(parts: Iterable[_Part | None]) -> list[_Part | None]:
    """The distinct parts. If None is among them, only None, because it asserts nothing."""
    found = dict.fromkeys(parts)
    return [None] if None in found else list(found)
