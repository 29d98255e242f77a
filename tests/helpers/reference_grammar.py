"""Reference implementation: decides whether a text is in a language or grammar by trying every division.

`ends(part, i)` returns all positions where a match of the part that starts at `i` can end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence as Texts
from fractions import Fraction

from guideway.grammar.nodes import (
    Alternative,
    Array,
    Cell,
    Grammar,
    Leaf,
    Number,
    Object,
    Property,
    Sequence,
    Value,
)
from guideway.grammar.regular import (
    Chars,
    Complement,
    Concat,
    Dfa,
    Intersection,
    JsonEscaped,
    Literals,
    Regular,
    Repeat,
    Union,
)
from tests.oracle.readings import readings

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_UNIT = re.compile(r'\\u[0-9a-fA-F]{4}|\\.|[^"\\\x00-\x1f]', re.DOTALL)


class Language:
    """Matches regular expressions over one sequence of characters."""

    def __init__(self, text: Texts[str]) -> None:
        self.text = text
        self._known: dict[tuple[int, int], frozenset[int]] = {}
        self._alive: list[Regular] = []

    def ends(self, part: Regular, at: int) -> frozenset[int]:
        key = (id(part), at)
        if key not in self._known:
            self._alive.append(part)
            self._known[key] = frozenset(self._ends(part, at))
        return self._known[key]

    def _ends(self, part: Regular, at: int) -> set[int]:
        rest = len(self.text)
        if isinstance(part, Chars):
            hit = at < rest and any(low <= ord(self.text[at]) <= high for low, high in part.ranges)
            return {at + 1} if hit else set()
        if isinstance(part, Literals):
            words = (list(word) for word in part.texts)
            return {at + len(word) for word in words if list(self.text[at : at + len(word)]) == word}
        if isinstance(part, Union):
            return {end for one in part.parts for end in self.ends(one, at)}
        if isinstance(part, Intersection):
            return set.intersection(*(set(self.ends(one, at)) for one in part.parts))
        if isinstance(part, Complement):
            return set(range(at, rest + 1)) - self.ends(part.part, at)
        if isinstance(part, Concat):
            found = {at}
            for one in part.parts:
                found = {end for start in found for end in self.ends(one, start)}
            return found
        if isinstance(part, Repeat):
            return self._repeat_ends(part, at)
        if isinstance(part, Dfa):
            return self._graph_ends(part, at)
        return self._spelled_ends(part, at)

    def _repeat_ends(self, part: Repeat, at: int) -> set[int]:
        reached, found, count = {at}, set(), 0
        seen: set[tuple[int, frozenset[int]]] = set()
        while reached:
            if count >= part.minimum:
                if reached <= found and (part.maximum is None or count > part.minimum + len(self.text)):
                    break
                found |= reached
            if part.maximum is not None and count >= part.maximum:
                break
            key = (min(count, part.minimum), frozenset(reached))
            if count >= part.minimum and key in seen:
                break
            seen.add(key)
            following = {end for start in reached for end in self.ends(part.part, start)}
            if following == reached and count < part.minimum:
                count = part.minimum - 1
            reached, count = following, count + 1
        return found

    def _graph_ends(self, part: Dfa, at: int) -> set[int]:
        found, reached = set(), {0}
        while reached:
            found |= {at for state in reached if part.states[state][0]}
            if at == len(self.text):
                break
            taken = [after for state in reached for step, after in part.states[state][1] if self.ends(step, at)]
            reached, at = set(taken), at + 1
        return found

    def _spelled_ends(self, part: JsonEscaped, at: int) -> set[int]:
        assert isinstance(self.text, str)
        units, places, position = [], [at], at
        while (unit := _UNIT.match(self.text, position)) is not None:
            raw = unit.group()
            try:
                char = json.loads(f'"{raw}"')
            except ValueError:
                break
            if part.spelling == "json" and json.dumps(char, ensure_ascii=False) != f'"{raw}"':
                break
            units.append(char)
            position = unit.end()
            places.append(position)
        return {places[end] for end in Language(units).ends(part.part, 0)}


def matches(language: Regular, text: str) -> bool:
    return len(text) in Language(text).ends(language, 0)


class Fits:
    """Matches a grammar on one text."""

    def __init__(self, grammar: Grammar, text: str) -> None:
        self.grammar = grammar
        self.text = text
        self.language = Language(text)
        self._known: dict[tuple[int, int], frozenset[int]] = {}

    def ends(self, number: int, at: int) -> frozenset[int]:
        key = (number, at)
        if key not in self._known:
            self._known[key] = frozenset()  # a node that calls itself here without a character adds nothing
            self._known[key] = frozenset(self._ends(number, at))
        return self._known[key]

    def _ends(self, number: int, at: int) -> set[int]:
        node = self.grammar.nodes[number]
        if isinstance(node, Leaf):
            return set(self.language.ends(node.text, at))
        if isinstance(node, Alternative):
            return {end for part in node.parts for end in self.ends(part, at)}
        if isinstance(node, Sequence):
            found = {at}
            for part in node.parts:
                found = {end for start in found for end in self.ends(part, start)}
            return found
        if isinstance(node, Object):
            return self._object_ends(node, at)
        if isinstance(node, Number):
            return self._number_ends(node, at)
        assert isinstance(node, Array)
        return self._array_ends(node, at)

    def _number_ends(self, node: Number, at: int) -> set[int]:
        found = set()
        for end in range(at + 1, len(self.text) + 1):
            written = _NUMBER.fullmatch(self.text, at, end)
            if written and any(_in_cell(Fraction(written[0]), cell) for cell in node.cells):
                whole = any(one == one.to_integral_value() for cell in node.cells for one in cell.multiple_of)
                if node.spelling == "any" or not (written[2] or (whole and written[1])):
                    found.add(end)
        return found

    def _value_ends(self, value: Value, at: int) -> set[int]:
        return {end for way in readings(value) for end in self.ends(way.node, at)}

    def _space(self, ends: set[int], space: bool) -> set[int]:
        found = set(ends)
        for end in ends if space else ():
            while end < len(self.text) and self.text[end] in " \t\n\r":
                end += 1
                found.add(end)
        return found

    def _after(self, text: str, ends: set[int], space: bool) -> set[int]:
        ends = self._space(ends, space)
        return self._space({end + len(text) for end in ends if self.text.startswith(text, end)}, space)

    def _array_ends(self, node: Array, at: int) -> set[int]:
        mark = node.punctuation
        starts, found, count = self._after(mark.open, {at}, mark.space), set(), 0
        if node.minimum == 0:
            found |= self._after(mark.close, starts, mark.space)
        while starts and (node.maximum is None or count < node.maximum):
            item = node.prefix[count] if count < len(node.prefix) else node.rest
            if item is None:
                break
            ends = {end for start in starts for end in self._value_ends(item, start)}
            count += 1
            if count >= node.minimum:
                found |= self._after(mark.close, ends, mark.space)
            starts = self._after(mark.comma, ends, mark.space)
        return found

    def _object_ends(self, node: Object, at: int) -> set[int]:
        mark = node.punctuation
        todo = [(at, frozenset[int](), -1) for at in self._after(mark.open, {at}, mark.space)]
        required = {i for i, entry in enumerate(node.properties) if entry.required}
        found: set[int] = set()
        if not required:
            found |= self._after(mark.close, {start for start, _, _ in todo}, mark.space)
        visited = set(todo)
        while todo:
            start, seen, last = todo.pop()
            for i, entry in enumerate((*node.properties, *node.open)):
                is_open = i >= len(node.properties)
                if i in seen or (node.ordered and i < last and not (is_open and last >= len(node.properties))):
                    continue
                now = seen if is_open else seen | {i}
                ends = self._entry_ends(entry, start, mark.colon, mark.space)
                if required <= now:
                    found |= self._after(mark.close, ends, mark.space)
                for following in self._after(mark.comma, ends, mark.space):
                    state = (following, frozenset(now), i)
                    if state not in visited:
                        visited.add(state)
                        todo.append(state)
        return found

    def _entry_ends(self, entry: Property, start: int, colon: str, space: bool) -> set[int]:
        keys = set(self.language.ends(entry.key, start))
        return {end for value in self._after(colon, keys, space) for end in self._value_ends(entry.value, value)}


def _in_cell(value: Fraction, cell: Cell) -> bool:
    if cell.low is not None and (value < Fraction(cell.low) or (cell.open_low and value == Fraction(cell.low))):
        return False
    if cell.high is not None and (value > Fraction(cell.high) or (cell.open_high and value == Fraction(cell.high))):
        return False
    return all((value / Fraction(one)).denominator == 1 for one in cell.multiple_of) and not any(
        (value / Fraction(one)).denominator == 1 for one in cell.not_multiple_of
    )


def fits(grammar: Grammar, text: str) -> bool:
    return len(text) in Fits(grammar, text).ends(grammar.root, 0)
