"""A grammar as the kernel takes it: one flat list of 32-bit words, laid out as kernel/include/guideway/program.h says.

The words are the content of a constraint: two grammars with equal words allow the same texts, so their digest is the
key of compiled automata.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
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
_VERSION = 3
_NONE = 0xFFFFFFFF
_SPELLINGS = {"json": 1, "json-any": 2}
_MAX_MARKS = 32  # bits of a word
_MAX_PUNCTUATION = 256
_MAX_MOVED = 16  # places at which the words of a block are kept
_MAX_SHARED = 2048
_MAX_KEY = 256  # characters of a key whose words are kept
_QUOTE = ('"',)
_POINTS = "utf-32-le" if byteorder == "little" else "utf-32-be"  # a text's characters as words


def encode(grammar: Grammar) -> bytes:
    """The grammar as little-endian 32-bit words.

    Raises `InvalidConstraint` for a node that was never defined, `LimitExceeded` for one that words cannot hold.
    """
    expressions = _Expressions()
    for expression in grammar.first:
        expressions.number(expression)
    nodes: list[int] = []
    number = 0
    try:
        for number, node in enumerate(grammar.nodes):  # noqa: B007 (read where it fails)
            _WRITERS[type(node)](node, nodes, expressions)
    except _TooLarge as error:
        raise LimitExceeded(str(error), grammar.place(number)) from None
    except _NotGiven:
        raise InvalidConstraint("a part was referred to but never given", grammar.place(number)) from None
    words = array("I", (_MAGIC, _VERSION, expressions.count, len(grammar.nodes), grammar.root))
    words += expressions.words
    words.fromlist(nodes)
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
    if id(expression) not in _SHARED and len(_SHARED) < _MAX_SHARED:
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
        self.numbers: dict[int, int] = {}  # by identity: hashing deep expressions would recurse
        self._kept: list[Regular] = []  # keeps identities from being used again

    def number(self, expression: Regular) -> int:
        numbers = self.numbers
        found = numbers.get(id(expression))
        if found is not None:
            return found
        block = _SHARED.get(id(expression))
        if block is not None:
            return self._copy(block)
        if type(expression) is Cat and len(expression.parts) == 3:
            before, spelled, after = expression.parts
            if type(spelled) is Spelled and type(before) is Literals and before.texts == _QUOTE and after == before:
                inner = spelled.part
                others = type(inner) is Not
                texts = inner.part if type(inner) is Not else inner
                if type(texts) is Literals:  # as most are; it refers to no other, so its words are the same anywhere
                    short = len(texts.texts) == 1 and len(texts.texts[0]) <= _MAX_KEY
                    write = _key_words if short else _text_words
                    self.words.frombytes(write((11, _SPELLINGS[spelled.spelling], others), texts.texts))
                    self._kept.append(expression)
                    self.numbers[id(expression)] = found = self.count
                    self.count = found + 1
                    return found
        elif type(expression) is Literals:
            self.words.frombytes(_text_words((1,), expression.texts))
            self.count += 1
            return self._known(expression)
        return self._walk(expression)

    def _walk(self, expression: Regular) -> int:
        numbers, stack = self.numbers, [expression]
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
        self.numbers[id(block.expression)] = number = self.count - 1
        return number

    def _write(self, at: Regular, parts: list[Any]) -> None:
        words, kind = self.words, type(at)
        if kind is Literals:
            words.frombytes(_text_words((1,), at.texts))  # type: ignore[union-attr]  # as its type says
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
        self.numbers[id(at)] = number = self.count - 1
        return number


def _text_words(head: tuple[int, ...], texts: tuple[str, ...]) -> bytes:
    """Some words, how many texts there are, and each with its length: as one text, its numbers as characters."""
    try:
        text = "".join([*map(chr, head), chr(len(texts)), *[chr(len(text)) + text for text in texts]])
    except ValueError:  # a number that is no code point
        words = array("I", (*head, len(texts)))
        for text in texts:
            words.append(len(text))
            words.frombytes(text.encode(_POINTS, "surrogatepass"))
        return words.tobytes()
    return text.encode(_POINTS, "surrogatepass")


_key_words = lru_cache(maxsize=16384)(_text_words)


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


def _write_leaf(node: Leaf, words: list[int], expressions: _Expressions) -> None:
    words += (0, expressions.number(node.text))


def _write_sequence(node: Sequence, words: list[int], expressions: _Expressions) -> None:
    words.extend((1, len(node.parts), *node.parts))


def _write_alternative(node: Alternative, words: list[int], expressions: _Expressions) -> None:
    words.extend((2, len(node.parts), *node.parts))


def _write_object(node: Object, words: list[int], expressions: _Expressions) -> None:
    minimum, maximum, demands = node.minimum, node.maximum, node.demands
    bounds = (0, _NONE) if minimum == 0 and maximum is None else _bounds(minimum, maximum)
    words += (3, *_punctuation(node.punctuation), node.ordered, *bounds, demands and _marks(demands))
    number, known = expressions.number, expressions.numbers
    for entries in (node.properties, node.open):
        words.append(len(entries))
        for entry in entries:
            key, value = known.get(id(entry.key)), entry.value
            if key is None:
                key = number(entry.key)
            if type(value) is int:
                words += (key, entry.required, 1, 0, value)
            else:
                words += (key, entry.required, *_value(value))


def _write_array(node: Array, words: list[int], expressions: _Expressions) -> None:
    words += (4, *_punctuation(node.punctuation), *_bounds(node.minimum, node.maximum), node.unique, len(node.counts))
    if node.counts:
        _marks((1 << len(node.counts)) - 1)
        for least, most in node.counts:
            words += _bounds(least, most)
    words.append(len(node.prefix))
    for value in node.prefix:
        words += _value(value)
    words += (0,) if node.rest is None else _value(node.rest)


def _write_number(node: Number, words: list[int], expressions: _Expressions) -> None:
    words.extend((5, int(node.spelling == "plain"), len(node.cells)))
    for cell in node.cells:
        words.extend(_cell(cell))


def _write_nothing(node: None, words: list[int], expressions: _Expressions) -> None:
    raise _NotGiven


_WRITERS: dict[type, Callable[[Any, list[int], _Expressions], None]] = {
    type(None): _write_nothing,
    Leaf: _write_leaf,
    Sequence: _write_sequence,
    Alternative: _write_alternative,
    Object: _write_object,
    Array: _write_array,
    Number: _write_number,
}


class _NotGiven(Exception):
    """A number was reserved, and never defined."""


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


def _value(value: Value) -> tuple[int, ...]:
    if isinstance(value, int):
        return (1, 0, value)
    ways = readings(value)
    return (len(ways), *(word for way in ways for word in (_marks(way.marks), way.node)))


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
