"""A grammar as the kernel takes it: one flat list of 32-bit words, laid out as kernel/include/guideway/program.h says.

The words are the content of a constraint: two grammars with equal words allow the same texts, so their digest is the
key of compiled automata.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from sys import byteorder
from typing import Any

from ..errors import InvalidConstraint, LimitExceeded
from .nodes import (
    Alternative,
    Array,
    Cell,
    Grammar,
    Leaf,
    Number,
    Object,
    Punctuation,
    Sequence,
    Value,
    readings,
)
from .regular import Both, Cat, Chars, Either, Graph, Literals, Not, Regular, Repeat, Special, Spelled

__all__ = ["encode", "shared"]

_MAGIC = 0x31505747
_VERSION = 2
_NONE = 0xFFFFFFFF
_SPELLINGS = {"json": 1, "json-any": 2}
_MAX_MARKS = 32  # bits of a word
_MAX_PUNCTUATION = 256
_MAX_MOVED = 16  # places at which the words of a block are kept
_POINTS = "utf-32-le" if byteorder == "little" else "utf-32-be"  # a text's characters as words


def encode(grammar: Grammar) -> bytes:
    """The grammar as little-endian 32-bit words.

    Raises `InvalidConstraint` for a node that was never defined, `LimitExceeded` for one that words cannot hold.
    """
    expressions = _Expressions()
    for expression in grammar.first:
        expressions.number(expression)
    nodes = array("I")
    for number, node in enumerate(grammar.nodes):
        if node is None:
            raise InvalidConstraint("a part was referred to but never given", grammar.place(number))
        try:
            _WRITERS[type(node)](node, nodes, expressions)
        except _TooLarge as error:
            raise LimitExceeded(str(error), grammar.place(number)) from None
    words = array("I", [_MAGIC, _VERSION, expressions.count, len(grammar.nodes), grammar.root])
    words += expressions.words
    words += nodes
    if byteorder == "big":
        words.byteswap()
    return words.tobytes()


@dataclass(frozen=True, slots=True)
class _Block:
    """The words of an expression and its parts, as if it came first; `references`: where numbers of parts stand.

    `moved`: the words behind so many expressions, where it stood lately.
    """

    expression: Regular
    words: array[int]
    references: tuple[int, ...]
    count: int
    moved: dict[int, array[int]]


_SHARED: dict[int, _Block] = {}  # by identity; a block keeps its expression


def shared(expression: Regular) -> Regular:
    """The same expression, from now on written in one piece: for the few that most grammars hold."""
    if id(expression) not in _SHARED:
        first, second = _Expressions(), _Expressions()
        first.number(expression)
        second.number(Cat(()))  # one number further on
        before = len(second.words)
        second.number(expression)
        moved = second.words[before:]
        references = tuple(i for i, word in enumerate(first.words) if moved[i] != word)
        _SHARED[id(expression)] = _Block(expression, first.words, references, first.count, {})
    return expression


class _Expressions:
    """Numbers expressions, children first. Walks with a stack of its own: they may be nested to any depth."""

    def __init__(self) -> None:
        self.words = array("I")
        self.count = 0
        self._numbers: dict[int, int] = {}  # by identity: hashing deep expressions would recurse
        self._kept: list[Regular] = []  # keeps identities from being used again

    def number(self, expression: Regular) -> int:
        numbers = self._numbers
        found = numbers.get(id(expression))
        if found is not None:
            return found
        if id(expression) in _SHARED:
            return self._copy(_SHARED[id(expression)])
        if type(expression) is Cat and len(expression.parts) == 3:
            spelled = expression.parts[1]
            if type(spelled) is Spelled:
                inner = spelled.part
                others = type(inner) is Not
                texts = inner.part if type(inner) is Not else inner
                if type(texts) is Literals:
                    return self._quoted(expression, texts.texts, others, _SPELLINGS[spelled.spelling])
        elif type(expression) is Literals:
            self._write_texts(expression.texts)
            self.count += 1
            return self._known(expression)
        return self._walk(expression)

    def _walk(self, expression: Regular) -> int:
        numbers, stack = self._numbers, [expression]
        while stack:
            at = stack[-1]
            if id(at) in numbers:
                stack.pop()
                continue
            block = _SHARED.get(id(at))
            if block is not None:
                self._copy(block)
                continue
            parts = _PARTS[type(at)](at)
            found = [numbers.get(id(part)) for part in parts]
            if None in found:
                stack += [part for part, number in zip(parts, found, strict=True) if number is None][::-1]
                continue
            stack.pop()
            self._write(at, found)
        return numbers[id(expression)]

    def _quoted(self, expression: Cat, texts: tuple[str, ...], others: bool, spelling: int) -> int:
        """Keys, or all keys but some, as most expressions are, without the walk."""
        parts, numbers = expression.parts, self._numbers
        before = numbers.get(id(parts[0]))
        if before is None:
            before = self.number(parts[0])
        after = before if parts[2] is parts[0] else self.number(parts[2])
        words, count = self.words, self.count
        self._write_texts(texts)
        if others:
            words.extend((5, count))
            count += 1
        words.extend((7, count, spelling, 2, 3, before, count + 1, after))
        self.count = count + 3
        return self._known(expression)

    def _write_texts(self, texts: tuple[str, ...]) -> None:
        words = self.words
        if len(texts) == 1:
            words.extend((1, 1, len(texts[0])))
            words.frombytes(texts[0].encode(_POINTS, "surrogatepass"))
            return
        words.extend((1, len(texts)))
        for text in texts:
            words.append(len(text))
            words.frombytes(text.encode(_POINTS, "surrogatepass"))

    def _copy(self, block: _Block) -> int:
        count = self.count
        moved = block.moved.get(count)
        if moved is None:
            moved = block.words[:]
            for position in block.references:
                moved[position] += count
            if len(block.moved) < _MAX_MOVED:
                block.moved[count] = moved
        self.words += moved
        self.count = count + block.count
        self._numbers[id(block.expression)] = number = self.count - 1
        return number

    def _write(self, at: Regular, parts: list[Any]) -> None:
        words, kind = self.words, type(at)
        if kind is Literals:
            self._write_texts(at.texts)  # type: ignore[union-attr]  # as its type says
        elif kind in _LISTS:
            words.extend((_LISTS[kind], len(parts), *parts))
        elif kind is Chars:
            words.extend((0, len(at.ranges), *chain.from_iterable(at.ranges)))  # type: ignore[union-attr]  # as above
        else:
            words.extend(_words(at, parts))
        self.count += 1
        self._known(at)

    def _known(self, at: Regular) -> int:
        self._kept.append(at)
        self._numbers[id(at)] = number = self.count - 1
        return number


def _words(at: Regular, parts: list[int]) -> list[int]:
    """The words of one expression whose parts have these numbers."""
    match at:
        case Spelled(_, spelling):
            return [7, *parts, _SPELLINGS[spelling]]
        case Not():
            return [5, *parts]
        case Repeat(_, minimum, maximum):
            return [6, *parts, minimum, _NONE if maximum is None else maximum]
        case Graph(states):
            words = [8, len(states)]
            numbered = iter(parts)
            for accepting, steps in states:
                words += [int(accepting), len(steps)]
                for _, after in steps:
                    words += [next(numbered), after]
            return words
        case Special(str(name)):
            return [9, len(name), *map(ord, name)]
        case Special(int(number)):
            return [10, number]
    raise TypeError(at)  # the others are written where they are met


_LISTS: dict[type, int] = {Cat: 2, Either: 3, Both: 4}
_PARTS: dict[type, Callable[[Any], tuple[Regular, ...]]] = {
    **dict.fromkeys((Literals, Chars, Special), lambda at: ()),
    **dict.fromkeys(_LISTS, lambda at: at.parts),
    **dict.fromkeys((Not, Repeat, Spelled), lambda at: (at.part,)),
    Graph: lambda at: tuple(step for _, steps in at.states for step, _ in steps),
}


def _write_leaf(node: Leaf, words: array[int], expressions: _Expressions) -> None:
    words.extend((0, expressions.number(node.text)))


def _write_sequence(node: Sequence, words: array[int], expressions: _Expressions) -> None:
    words.extend((1, len(node.parts), *node.parts))


def _write_alternative(node: Alternative, words: array[int], expressions: _Expressions) -> None:
    words.extend((2, len(node.parts), *node.parts))


def _write_object(node: Object, words: array[int], expressions: _Expressions) -> None:
    bounds = _bounds(node.minimum, node.maximum)
    words.extend((3, *_punctuation(node.punctuation), node.ordered, *bounds, _marks(node.demands)))
    number = expressions.number
    for entries in (node.properties, node.open):
        words.append(len(entries))
        for entry in entries:
            value = entry.value
            if type(value) is int:
                words.extend((number(entry.key), entry.required, 1, 0, value))
            else:
                words.extend((number(entry.key), entry.required, *_value(value)))


def _write_array(node: Array, words: array[int], expressions: _Expressions) -> None:
    _marks((1 << len(node.counts)) - 1)
    words.extend((4, *_punctuation(node.punctuation), *_bounds(node.minimum, node.maximum), int(node.unique)))
    words.append(len(node.counts))
    for least, most in node.counts:
        words.extend(_bounds(least, most))
    words.append(len(node.prefix))
    for value in node.prefix:
        words.extend(_value(value))
    words.extend([0] if node.rest is None else _value(node.rest))


def _write_number(node: Number, words: array[int], expressions: _Expressions) -> None:
    words.extend((5, int(node.spelling == "plain"), len(node.cells)))
    for cell in node.cells:
        words.extend(_cell(cell))


_WRITERS: dict[type, Callable[[Any, array[int], _Expressions], None]] = {
    Leaf: _write_leaf,
    Sequence: _write_sequence,
    Alternative: _write_alternative,
    Object: _write_object,
    Array: _write_array,
    Number: _write_number,
}


class _TooLarge(Exception):
    """Something does not fit into words."""


_PUNCTUATION: dict[int, tuple[Punctuation, tuple[int, ...]]] = {}  # by identity: styles keep theirs


def _punctuation(marks: Punctuation) -> tuple[int, ...]:
    known = _PUNCTUATION.get(id(marks))
    if known is not None and known[0] is marks:
        return known[1]
    if len(_PUNCTUATION) >= _MAX_PUNCTUATION:
        _PUNCTUATION.clear()
    texts = [text.encode() for text in (marks.open, marks.comma, marks.colon, marks.close)]
    made = (int(marks.space), *(word for text in texts for word in (len(text), *text)))
    _PUNCTUATION[id(marks)] = (marks, made)
    return made


def _bounds(minimum: int, maximum: int | None) -> tuple[int, int]:
    """Bounds on a number of things; what no text could reach stays out of reach."""
    return min(minimum, _NONE - 1), _NONE if maximum is None else min(maximum, _NONE)


def _marks(marks: int) -> int:
    if marks >> _MAX_MARKS:
        raise _TooLarge(f"more than {_MAX_MARKS} demands on one object or array")
    return marks


def _value(value: Value) -> list[int]:
    if isinstance(value, int):
        return [1, 0, value]
    ways = readings(value)
    return [len(ways), *(word for way in ways for word in (_marks(way.marks), way.node))]


def _cell(cell: Cell) -> Iterable[int]:
    bounds = [bound for bound in (cell.low, cell.high) if bound is not None]
    yield (cell.low is not None) | (cell.high is not None) << 1 | cell.open_low << 2 | cell.open_high << 3
    for bound in bounds:
        yield from _decimal(bound)
    for divisors in (cell.multiple_of, cell.not_multiple_of):
        yield len(divisors)
        for divisor in divisors:
            yield from _decimal(divisor)


def _decimal(value: Decimal) -> Iterable[int]:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not -(1 << 31) <= exponent < 1 << 31:
        raise _TooLarge(f"the number {value} is out of range")
    yield from (sign, exponent & _NONE, len(digits))
    yield from digits
