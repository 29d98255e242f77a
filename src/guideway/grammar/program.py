"""A grammar as the kernel takes it: one flat list of 32-bit words, laid out as kernel/include/guideway/program.h says.

The words are the content of a constraint: two grammars with equal words allow the same texts, so their digest is the
key of compiled automata.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from sys import byteorder

from ..errors import InvalidConstraint, LimitExceeded
from .nodes import (
    Alternative,
    Array,
    Cell,
    Grammar,
    Leaf,
    Node,
    Number,
    Object,
    Property,
    Punctuation,
    Sequence,
    Value,
    readings,
)
from .regular import Both, Cat, Chars, Either, Graph, Literals, Not, Regular, Repeat, Spelled

__all__ = ["encode", "shared"]

_MAGIC = 0x31505747
_VERSION = 2
_NONE = 0xFFFFFFFF
_SPELLINGS = {"json": 1, "json-any": 2}
_MAX_MARKS = 32  # bits of a word


def encode(grammar: Grammar) -> bytes:
    """The grammar as little-endian 32-bit words.

    Raises `InvalidConstraint` for a node that was never defined, `LimitExceeded` for one that words cannot hold.
    """
    expressions = _Expressions()
    nodes: list[int] = []
    for number, node in enumerate(grammar.nodes):
        if node is None:
            raise InvalidConstraint("a part was referred to but never given", grammar.places[number])
        try:
            _write_node(node, nodes, expressions)
        except _TooLarge as error:
            raise LimitExceeded(str(error), grammar.places[number]) from None
    words = array("I", [_MAGIC, _VERSION, expressions.count, len(grammar.nodes), grammar.root])
    words.extend(expressions.words)
    words.extend(nodes)
    if byteorder == "big":
        words.byteswap()
    return words.tobytes()


@dataclass(frozen=True, slots=True)
class _Block:
    """The words of an expression and its parts, as if it came first; `references`: where numbers of parts stand."""

    expression: Regular
    words: tuple[int, ...]
    references: tuple[int, ...]
    count: int


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
        _SHARED[id(expression)] = _Block(expression, tuple(first.words), references, first.count)
    return expression


class _Expressions:
    """Numbers expressions, children first. Walks with a stack of its own: they may be nested to any depth."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.count = 0
        self._numbers: dict[int, int] = {}  # by identity: hashing deep expressions would recurse
        self._kept: list[Regular] = []  # keeps identities from being used again

    def number(self, expression: Regular) -> int:
        numbers = self._numbers
        found = numbers.get(id(expression))
        if found is not None:
            return found
        if type(expression) is Literals:
            self._write(expression, [])
            return self.count - 1
        if type(expression) is Cat and len(expression.parts) == 3:
            spelled = expression.parts[1]
            if type(spelled) is Spelled and type(spelled.part) is Literals:
                return self._quoted(expression, spelled)
        stack = [expression]
        while stack:
            at = stack[-1]
            if id(at) in numbers:
                stack.pop()
                continue
            block = _SHARED.get(id(at))
            if block is not None:
                self._copy(block)
                continue
            parts = _parts(at)
            waiting = [part for part in parts if id(part) not in numbers]
            if waiting:
                waiting.reverse()
                stack += waiting
                continue
            stack.pop()
            self._write(at, [numbers[id(part)] for part in parts])
        return numbers[id(expression)]

    def _quoted(self, expression: Cat, spelled: Spelled) -> int:
        """A key, as most expressions are, without the walk."""
        for part in (spelled.part, expression.parts[0], expression.parts[2]):
            self.number(part)
        if id(spelled) not in self._numbers:
            self._write(spelled, [self._numbers[id(spelled.part)]])
        self._write(expression, [self._numbers[id(part)] for part in expression.parts])
        return self.count - 1

    def _copy(self, block: _Block) -> None:
        words = list(block.words)
        for position in block.references:
            words[position] += self.count
        self.words += words
        self.count += block.count
        self._numbers[id(block.expression)] = self.count - 1

    def _write(self, at: Regular, parts: list[int]) -> None:
        words = self.words
        if isinstance(at, Literals):
            words += (1, len(at.texts))
            for text in at.texts:
                words.append(len(text))
                words += text.encode("latin-1") if text.isascii() else map(ord, text)
        elif isinstance(at, Spelled):
            words += (7, *parts, _SPELLINGS[at.spelling])
        else:
            words += _words(at, parts)
        self._numbers[id(at)] = self.count
        self._kept.append(at)
        self.count += 1


def _words(at: Regular, parts: list[int]) -> list[int]:
    """The words of one expression whose parts have these numbers."""
    match at:
        case Chars(ranges):
            return [0, len(ranges), *(point for pair in ranges for point in pair)]
        case Cat() | Either() | Both():
            return [{Cat: 2, Either: 3, Both: 4}[type(at)], len(parts), *parts]
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
    raise TypeError(at)  # literals and spellings are written where they are met


def _parts(expression: Regular) -> tuple[Regular, ...]:
    if isinstance(expression, (Literals, Chars)):
        return ()
    if isinstance(expression, (Cat, Either, Both)):
        return expression.parts
    if isinstance(expression, (Not, Repeat, Spelled)):
        return (expression.part,)
    return tuple(step for _, steps in expression.states for step, _ in steps)


def _write_node(node: Node, words: list[int], expressions: _Expressions) -> None:
    match node:
        case Leaf(text):
            words += [0, expressions.number(text)]
        case Sequence(parts):
            words += [1, len(parts), *parts]
        case Alternative(parts):
            words += [2, len(parts), *parts]
        case Object(punctuation, properties, others, ordered, minimum, maximum, demands):
            words += [3, *_punctuation(punctuation), int(ordered), *_bounds(minimum, maximum), _marks(demands)]
            words += [len(properties), *_entries(properties, expressions)]
            words += [len(others), *_entries(others, expressions)]
        case Array(punctuation, prefix, rest, minimum, maximum, unique, counts):
            words += [4, *_punctuation(punctuation), *_bounds(minimum, maximum), int(unique)]
            _marks((1 << len(counts)) - 1)
            words += [len(counts), *(word for bounds in counts for word in _bounds(*bounds)), len(prefix)]
            for value in prefix:
                words += _value(value)
            words += [0] if rest is None else _value(rest)
        case Number(cells, spelling):
            words += [5, int(spelling == "plain"), len(cells)]
            for cell in cells:
                words += _cell(cell)


class _TooLarge(Exception):
    """Something does not fit into words."""


@lru_cache(maxsize=64)
def _punctuation(marks: Punctuation) -> tuple[int, ...]:
    texts = [text.encode() for text in (marks.open, marks.comma, marks.colon, marks.close)]
    return (int(marks.space), *(word for text in texts for word in (len(text), *text)))


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


def _entries(entries: tuple[Property, ...], expressions: _Expressions) -> list[int]:
    made: list[int] = []
    for entry in entries:
        made += (expressions.number(entry.key), int(entry.required), *_value(entry.value))
    return made


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
