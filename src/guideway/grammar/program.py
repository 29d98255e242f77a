"""A grammar as the kernel takes it: one flat list of 32-bit words, laid out as kernel/include/guideway/program.h says.

The words are the content of a constraint: two grammars with equal words allow the same texts, so their digest is the
key of compiled automata.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from sys import byteorder

from ..errors import InvalidConstraint
from .nodes import Alternative, Array, Grammar, Leaf, Node, Object, Property, Punctuation, Sequence
from .regular import Both, Cat, Chars, Either, Literals, Not, Regular, Repeat, Spelled

__all__ = ["encode"]

_MAGIC = 0x31505747
_VERSION = 1
_NONE = 0xFFFFFFFF
_SPELLINGS = {"json": 1, "json-any": 2}


def encode(grammar: Grammar) -> bytes:
    """The grammar as little-endian 32-bit words. Raises `InvalidConstraint` for a node that was never defined."""
    expressions = _Expressions()
    nodes: list[int] = []
    for number, node in enumerate(grammar.nodes):
        if node is None:
            raise InvalidConstraint("a part was referred to but never given", grammar.places[number])
        _write_node(node, nodes, expressions)
    words = array("I", [_MAGIC, _VERSION, expressions.count, len(grammar.nodes), grammar.root])
    words.extend(expressions.words)
    words.extend(nodes)
    if byteorder == "big":
        words.byteswap()
    return words.tobytes()


class _Expressions:
    """Numbers expressions, children first. Walks with a stack of its own: they may be nested to any depth."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.count = 0
        self._numbers: dict[int, int] = {}  # by identity: hashing deep expressions would recurse
        self._kept: list[Regular] = []  # keeps identities from being used again

    def number(self, expression: Regular) -> int:
        stack = [expression]
        while stack:
            at = stack[-1]
            if id(at) in self._numbers:
                stack.pop()
                continue
            waiting = [part for part in _parts(at) if id(part) not in self._numbers]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            self._write(at)
        return self._numbers[id(expression)]

    def _write(self, at: Regular) -> None:
        parts = [self._numbers[id(part)] for part in _parts(at)]
        match at:
            case Chars(ranges):
                words = [0, len(ranges), *(point for pair in ranges for point in pair)]
            case Literals(texts):
                words = [1, len(texts)]
                for text in texts:
                    words.append(len(text))
                    words.extend(map(ord, text))
            case Cat() | Either() | Both():
                words = [{Cat: 2, Either: 3, Both: 4}[type(at)], len(parts), *parts]
            case Not():
                words = [5, *parts]
            case Repeat(_, minimum, maximum):
                words = [6, *parts, minimum, _NONE if maximum is None else maximum]
            case Spelled(_, spelling):
                words = [7, *parts, _SPELLINGS[spelling]]
        self.words.extend(words)
        self._numbers[id(at)] = self.count
        self._kept.append(at)
        self.count += 1


def _parts(expression: Regular) -> tuple[Regular, ...]:
    match expression:
        case Cat(parts) | Either(parts) | Both(parts):
            return parts
        case Not(part) | Repeat(part) | Spelled(part):
            return (part,)
        case _:
            return ()


def _write_node(node: Node, words: list[int], expressions: _Expressions) -> None:
    match node:
        case Leaf(text):
            words += [0, expressions.number(text)]
        case Sequence(parts):
            words += [1, len(parts), *parts]
        case Alternative(parts):
            words += [2, len(parts), *parts]
        case Object(punctuation, properties, others, ordered):
            words += [3, *_punctuation(punctuation), int(ordered)]
            words += [len(properties), *_entries(properties, expressions)]
            words += [len(others), *_entries(others, expressions)]
        case Array(punctuation, prefix, rest, minimum, maximum):
            words += [4, *_punctuation(punctuation), len(prefix), *prefix]
            words += [
                _NONE if rest is None else rest,
                min(minimum, _NONE - 1),
                _NONE if maximum is None else min(maximum, _NONE),
            ]


def _punctuation(marks: Punctuation) -> Iterable[int]:
    yield int(marks.space)
    for text in (marks.open, marks.comma, marks.colon, marks.close):
        encoded = text.encode()
        yield len(encoded)
        yield from encoded


def _entries(entries: tuple[Property, ...], expressions: _Expressions) -> Iterable[int]:
    for entry in entries:
        yield from (expressions.number(entry.key), entry.value, int(entry.required))
