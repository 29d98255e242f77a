"""The oracle of a grammar (the IR between frontends and kernel), derived from its nodes.

The texts of a grammar are compared with the oracle of its constraint, and the kernel's masks with the oracle of the
grammar, so that a disagreement identifies the faulty part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from guideway.grammar import nodes as ir, regular as written

from . import entries, regular
from .entries import Countable, Feasible, Items, Members, OpenKey
from .machine import Fixed, OneOf, Oracle, Reader, Spaces, Stack, Term
from .spelling import Spelling, Text
from .values import ByValue


@lru_cache(maxsize=4096)
def spelled(part: written.Regular) -> bool:
    """Whether a part of the expression is written in the spelling of a JSON string."""
    match part:
        case written.JsonEscaped():
            return True
        case written.Concat(parts) | written.Union(parts) | written.Intersection(parts):
            return any(spelled(p) for p in parts)
        case written.Complement(inner) | written.Repeat(inner):
            return spelled(inner)
    return False


def expression(part: written.Regular) -> regular.Expr:
    """The same as the oracle's expression; spelling aside."""
    match part:
        case written.Chars(ranges):
            return regular.one(*ranges)
        case written.Literals(texts):
            return trie(sorted(set(texts)))
        case written.Special(str(name)):  # no vocabulary of the oracle's has special tokens: the name as text
            return trie([name])
        case written.Concat(parts):
            return regular.cat(*(expression(p) for p in parts))
        case written.Union(parts):
            return regular.either(*(expression(p) for p in parts))
        case written.Intersection(parts):
            return regular.both(*(expression(p) for p in parts))
        case written.Complement(inner):
            return regular.complement(expression(inner))
        case written.Repeat(inner, low, high):
            return regular.times(expression(inner), low, high)
        case written.Dfa(states):
            return regular.graph(tuple((ends, tuple((on.ranges, to) for on, to in steps)) for ends, steps in states))
    raise TypeError(part)


def trie(texts: list[str]) -> regular.Expr:
    """Reads one of several sorted texts, character by character."""
    made = [regular.empty()] if texts and not texts[0] else []
    groups: dict[str, list[str]] = {}
    for text in texts:
        if text:
            groups.setdefault(text[0], []).append(text[1:])
    return regular.either(*made, *(regular.cat(regular.literal(head), trie(rest)) for head, rest in groups.items()))


@dataclass(frozen=True, slots=True)
class At:
    """A node, by number."""

    number: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A regular piece in which spellings are mixed."""

    part: written.Regular


@dataclass
class GrammarWorld:
    """A grammar as a world of terms."""

    grammar: ir.Grammar
    _fit: set[int] = field(default_factory=set)
    _feasible: dict[int, Feasible] = field(default_factory=dict)
    _countable: dict[int, Countable] = field(default_factory=dict)
    _items_left: dict[tuple[written.Regular | ir.Number, frozenset[str]], Oracle] = field(default_factory=dict)
    _keys: dict[tuple[int, int, frozenset[str]], Oracle] = field(default_factory=dict)

    def oracle(self) -> Oracle:
        """Reads texts of the grammar."""
        root = self.grammar.root
        return Oracle(self, At(root) if self.satisfiable(root) else OneOf(frozenset()))

    def satisfiable(self, number: int) -> bool:
        """Whether a node has any text: the least fixed point."""
        grew = not self._fit
        while grew:
            before = len(self._fit)
            self._fit |= {n for n in range(len(self.grammar.nodes)) if self._fits(n)}
            grew = len(self._fit) > before
        return number in self._fit

    def node(self, number: int) -> ir.Node:
        """The node of a number."""
        found = self.grammar.nodes[number]
        assert found is not None, f"node {number} was reserved and never defined"
        return found

    def _fits(self, number: int) -> bool:
        fit = self._fit
        match self.node(number):
            case ir.Leaf(text):
                return possible(text)
            case ir.Number() as number:
                return bool(ByValue(number).values(1))
            case ir.Sequence(parts):
                return all(p in fit for p in parts)
            case ir.Alternative(parts):
                return any(p in fit for p in parts)
            case ir.Object() as node:
                return Feasible(node, fit.__contains__, self.keys).holds(Members(number))
            case ir.Array() as node:
                return Countable(node, fit.__contains__, self.values).holds(self._no_items(number))
        raise TypeError(number)

    def _no_items(self, number: int) -> Items:
        node = self.node(number)
        assert isinstance(node, ir.Array)
        return Items(number, marked=(0,) * len(node.counts))

    def values(self, number: int, most: int) -> list[str]:
        """Some values of a leaf (or of leaves to choose from): as many as `most`, or all."""
        match self.node(number):
            case ir.Leaf(text):
                return sorted({key for part in alternatives(text) for key in self.keys(part, most)})
            case ir.Number() as numbers:
                return [str(value) for value in ByValue(numbers).values(most)]
            case ir.Alternative(parts):
                return sorted({value for part in parts for value in self.values(part, most)})
        raise TypeError(number)

    def leaves(self, number: int) -> list[written.Regular | ir.Number]:
        """The leaves that a node can be."""
        match self.node(number):
            case ir.Leaf(text):
                return [*alternatives(text)]
            case ir.Number() as numbers:
                return [numbers]
            case ir.Alternative(parts):
                return [text for part in parts for text in self.leaves(part)]
        raise TypeError(number)

    def expand(self, term: Term) -> Iterable[Stack]:
        """The term's alternatives, each of which can be completed."""
        match term:
            case At(number):
                return self._node(number)
            case Piece(part):
                return regular_stacks(part)
            case Members():
                return self._members(term)
            case Items():
                return self._items(term)
        raise TypeError(term)

    def _node(self, number: int) -> Iterator[Stack]:
        match self.node(number):
            case ir.Leaf(text):
                yield (piece(text),)
            case ir.Number() as numbers:
                yield (ByValue(numbers),)
            case ir.Sequence(parts):
                yield tuple(At(p) for p in parts)
            case ir.Alternative(parts):
                yield from ((At(p),) for p in parts if p in self._fit)
            case ir.Object(punctuation=marks):
                yield *mark(marks, "open"), Members(number)
            case ir.Array(punctuation=marks):
                yield *mark(marks, "open"), self._no_items(number)

    def keys(self, key: written.Regular, most: int) -> list[str]:
        """Some keys of a class: as many as `most`, or all."""
        found: list[str] = []
        while len(found) < most:
            text = shortest(entries.without(key, frozenset(found)))
            if text is None:
                break
            found.append(entries.name(text.encode()))
        return found

    def _members(self, at: Members) -> Iterator[Stack]:
        node = self.node(at.number)
        assert isinstance(node, ir.Object)
        if at.number not in self._feasible:
            self._feasible[at.number] = Feasible(node, self._fit.__contains__, self.keys)
        feasible, marks = self._feasible[at.number], node.punctuation
        comma = () if at.first else mark(marks, "comma")
        colon = mark(marks, "colon")
        for n, way, after in feasible.after(at):
            if n < len(node.properties):
                key = node.properties[n].key
                if possible(key) and feasible.holds(after):
                    yield *comma, piece(key), *colon, At(way.node), after
                continue
            key = entries.without(node.open[n - len(node.properties)].key, at.used)
            used = at.used | set(self.keys(key, 1))  # any of these keys: the number of the others is equal
            if possible(key) and feasible.holds(replace(after, used=used)):
                oracle = self._keys.setdefault((at.number, n, at.used), Oracle(self, piece(key)))
                yield *comma, OpenKey(oracle, oracle.start, len(colon) + 1), *colon, At(way.node), after
        if feasible.closes(at):
            yield mark(marks, "close")

    def _items(self, at: Items) -> Iterator[Stack]:
        node = self.node(at.number)
        assert isinstance(node, ir.Array)
        if at.number not in self._countable:
            self._countable[at.number] = Countable(node, self._fit.__contains__, self.values)
        countable, marks = self._countable[at.number], node.punctuation
        comma = () if at.first else mark(marks, "comma")
        for way, after in countable.after(at):
            if not node.unique:
                if countable.holds(after):
                    yield *comma, At(way.node), after
                continue
            for text in self.leaves(way.node):
                left, some = self._unused(text, at.used)
                if some is None or not countable.holds(replace(after, used=at.used | {some})):
                    continue
                oracle = self._items_left.setdefault((text, at.used), Oracle(self, left))
                yield *comma, OpenKey(oracle, oracle.start, 0), after
        if countable.closes(at):
            yield mark(marks, "close")

    def _unused(self, text: written.Regular | ir.Number, used: frozenset[str]) -> tuple[Term, str | None]:
        """What reads a leaf without some values, and the name of one that is left."""
        if isinstance(text, ir.Number):
            numbers = ByValue(text, frozenset(Fraction(name) for name in used if entries.NUMBER.fullmatch(name)))
            return numbers, next(map(str, numbers.values(1)), None)
        left = entries.without(text, used)
        return piece(left), next(iter(self.keys(left, 1)), None)


def mark(marks: ir.Punctuation, name: str) -> Stack:
    """Returns a punctuation mark with the optional whitespace around it."""
    text = Fixed(getattr(marks, name).encode())
    if not marks.space:
        return (text,)
    return {"open": (text, Spaces()), "close": (Spaces(), text)}.get(name, (Spaces(), text, Spaces()))


def shortest(part: written.Regular) -> str | None:
    """Some shortest text of a class of keys, in its plainest spelling; None: there is none."""
    match part:
        case written.Concat((_, written.JsonEscaped(inner, _), _)):
            found = regular.member(expression(inner))
            return None if found is None else f"{json.dumps(found, ensure_ascii=False)}"
    return regular.member(expression(part))


def alternatives(part: written.Regular) -> Iterator[written.Regular]:
    """Splits a union if some of its parts are JSON strings."""
    if isinstance(part, written.Union) and spelled(part):
        for inner in part.parts:
            yield from alternatives(inner)
    else:
        yield part


@lru_cache(maxsize=4096)
def possible(part: written.Regular) -> bool:
    """Whether a regular piece has any text."""
    match part:
        case written.Concat(parts) if spelled(part):
            return all(possible(p) for p in parts)
        case written.Union(parts) if spelled(part):
            return any(possible(p) for p in parts)
        case written.Repeat(inner, low, high) if spelled(part):
            return (high is None or high >= low) and (low == 0 or possible(inner))
        case written.JsonEscaped(inner):
            return regular.alive(expression(inner))
    return regular.alive(expression(part))


def piece(part: written.Regular) -> Term:
    """A reader where the piece has one spelling, else a term to expand."""
    return Piece(part) if spelled(part) else text_of(part, "plain")


@lru_cache(maxsize=4096)
def text_of(part: written.Regular, spelling: Spelling) -> Reader:
    """Reads a piece of one spelling."""
    return Text(expression(part), spelling)


def regular_stacks(part: written.Regular) -> Iterator[Stack]:
    """Splits an expression into pieces that have one spelling each."""
    match part:
        case written.JsonEscaped(inner, spelling):
            yield (text_of(inner, spelling),)
        case written.Concat(parts):
            yield tuple(piece(p) for p in parts)
        case written.Union(parts):
            yield from ((piece(p),) for p in parts if possible(p))
        case written.Repeat(inner, low, high):
            if low == 0:
                yield ()
            if high != 0 and possible(inner):
                yield piece(inner), Piece(written.Repeat(inner, max(low - 1, 0), None if high is None else high - 1))
        case _:
            raise TypeError(f"spelled parts inside {part}")


def forget() -> None:
    """Empty the caches here and below."""
    text_of.cache_clear()
    possible.cache_clear()
    regular.forget()
