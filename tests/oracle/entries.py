"""The entries that an object may still contain, by trying each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from guideway.grammar import nodes as ir, regular as written

from .machine import Oracle, Stack
from .reader import Reader
from .readings import readings

FAR = 200  # the spelling distinguishes numbers with larger exponents: a longer name would make the trie too deep
NUMBER = re.compile(r"-?[0-9]+(/[0-9]+)?")  # the name of a number


@dataclass(frozen=True, slots=True)
class Members:
    """The rest of an object: properties taken (in order: or passed by), open keys used, entries, demands met."""

    number: int
    taken: frozenset[int] = frozenset()
    used: frozenset[str] = frozenset()
    count: int = 0
    met: int = 0
    first: bool = True

    def named(self, key: bytes) -> Members:
        """Once an open key has been read."""
        return replace(self, used=self.used | {name(key)})


@dataclass(frozen=True, slots=True)
class OpenKey(Reader):
    """Reads a key and tells the term at place `at` of what follows."""

    oracle: Oracle
    state: object
    at: int
    text: bytes = b""

    def __hash__(self) -> int:
        return hash((self.state, self.text))

    @property
    def done(self) -> bool:
        """Whether the key is whole."""
        return self.state.whole  # type: ignore[attr-defined, no-any-return]  # a State of the oracle

    def step(self, byte: int) -> OpenKey | None:
        """After one more byte."""
        after = self.oracle.step(self.state, byte)  # type: ignore[arg-type]  # a State of the oracle
        return None if after is None else replace(self, state=after, text=self.text + bytes([byte]))

    def leave(self, rest: Stack) -> Stack:
        """What follows, once the key is read."""
        return (*rest[: self.at], rest[self.at].named(self.text), *rest[self.at + 1 :])  # type: ignore[attr-defined]  # a frame of keys


def said(text: str) -> str | None:
    """Returns the value of a JSON string; None if the text is not a JSON string."""
    try:
        read = json.loads(text)
    except ValueError:
        return None
    return read if isinstance(read, str) else None


def name(text: bytes) -> str:
    """Returns the name of a key or item. Equal values have equal names: strings are decoded, numbers normalised."""
    written = text.decode(errors="replace")
    read = said(written)
    if read is not None:
        return json.dumps(read)
    number = re.fullmatch(r"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?)(?:[eE]([+-]?[0-9]+))?", written)
    if not number:
        return written
    mantissa, power = Fraction(number[1]), int(number[2] or "0")
    if mantissa == 0:
        return "0"
    return str(mantissa * Fraction(10) ** power) if abs(power) < FAR else written


def without(key: written.Regular, used: frozenset[str]) -> written.Regular:
    """Returns a class of keys without given keys."""
    strings = tuple(read for read in map(said, sorted(used)) if read is not None)
    match key:
        case written.Concat((opening, written.JsonEscaped(inner, spelling), closing)):
            left = written.both(inner, written.Complement(written.Literals(strings)))
            return written.Concat((opening, written.JsonEscaped(left, spelling), closing))
    return written.both(key, written.Complement(written.Literals(tuple(sorted(used)))))


class Feasible:
    """Decides by search whether an object can be completed after any entry."""

    def __init__(self, node: ir.Object, fits: Callable[[int], bool], keys: Callable[[written.Regular, int], list[str]]):
        self.node, self.fits = node, fits
        needed = max(node.minimum, 0) + len(node.properties) + node.demands.bit_count() + 1
        self._least = node.demands.bit_count() if node.least is None else node.least
        self._most = node.demands.bit_count() if node.most is None else node.most
        self.names = [keys(p.key, needed + 4) for p in node.open]
        self.possible = [bool(keys(p.key, 1)) for p in (*node.properties, *node.open)]
        self._known: dict[Members, bool] = {}

    def closes(self, at: Members) -> bool:
        """Whether it may end here."""
        node = self.node
        missing = any(p.required and n not in at.taken for n, p in enumerate(node.properties))
        order = not (node.ordered and missing) and not missing
        met = at.met
        for n, entry in enumerate(node.properties):
            if n not in at.taken:
                met |= entry.missing
        return order and at.count >= node.minimum and self._least <= (met & node.demands).bit_count() <= self._most

    def after(self, at: Members) -> Iterator[tuple[int, ir.Marked, Members]]:
        """Yields each possible next entry: its number, its reading, and the state of the object after it."""
        node = self.node
        if node.maximum is not None and at.count >= node.maximum:
            return
        for n, entry in enumerate((*node.properties, *node.open)):
            fixed = n < len(node.properties)
            if n in at.taken or not self.possible[n]:
                continue
            passed = frozenset(range(min(n + 1, len(node.properties))) if node.ordered else ({n} if fixed else ()))
            if node.ordered and any(p.required for i, p in enumerate(node.properties[:n]) if i not in at.taken):
                continue
            for way in readings(entry.value):
                if self.fits(way.node):
                    count, met = at.count + 1, at.met | way.marks
                    if node.ordered:  # the properties passed by are missing
                        for i, passed_by in enumerate(node.properties[:n]):
                            met |= passed_by.missing if i not in at.taken else 0
                    yield n, way, self._clipped(replace(at, taken=at.taken | passed, count=count, met=met, first=False))

    def _open(self, n: int) -> bool:
        """Whether an entry can be there at all."""
        entry = (*self.node.properties, *self.node.open)[n]
        return self.possible[n] and any(self.fits(way.node) for way in readings(entry.value))

    def _clipped(self, at: Members) -> Members:
        """Limits the count: all counts above the limit are equivalent."""
        return at if self.node.maximum is not None else replace(at, count=min(at.count, self.node.minimum))

    def holds(self, at: Members) -> bool:
        """Whether it can be completed."""
        node = self.node
        if node.maximum is None and not node.demands and at.count >= node.minimum and not node.ordered:
            return all(n in at.taken or not p.required or self._open(n) for n, p in enumerate(node.properties))
        if at not in self._known:
            missing = sum(p.required or p.missing > 0 for n, p in enumerate(node.properties) if n not in at.taken)
            most = max(node.minimum - at.count, missing + (node.demands & ~at.met).bit_count())
            self._known[at] = self._search(at, most)
        return self._known[at]

    def _search(self, start: Members, most: int) -> bool:
        layer = {start}
        for _ in range(most + 1):
            if any(map(self.closes, layer)):
                return True
            following = set()
            for at in layer:
                for n, _, after in self.after(at):
                    if n < len(self.node.properties):
                        following.add(after)
                        continue
                    left = [k for k in self.names[n - len(self.node.properties)] if k not in at.used]
                    following |= {replace(after, used=after.used | {key}) for key in left[:1]}
            layer = following
        return False


@dataclass(frozen=True, slots=True)
class Items:
    """The rest of an array: the number of items, the number with each mark, and used items if they must differ."""

    number: int
    count: int = 0
    marked: tuple[int, ...] = ()
    used: frozenset[str] = frozenset()
    first: bool = True

    def named(self, item: bytes) -> Items:
        """Once an item has been read."""
        return replace(self, used=self.used | {name(item)})


class Countable:
    """Decides by search whether an array can be completed after any item."""

    def __init__(self, node: ir.Array, fits: Callable[[int], bool], values: Callable[[int, int], list[str]]) -> None:
        self.node, self.fits, self.values = node, fits, values
        self._known: dict[Items, bool] = {}

    def closes(self, at: Items) -> bool:
        """Whether it may end here."""
        return at.count >= self.node.minimum and all(
            n >= low for n, (low, _) in zip(at.marked, self.node.counts, strict=True)
        )

    def after(self, at: Items) -> Iterator[tuple[ir.Marked, Items]]:
        """Yields the possible readings of the next item, and the state of the array after it."""
        node = self.node
        value = node.prefix[at.count] if at.count < len(node.prefix) else node.rest
        if value is None or (node.maximum is not None and at.count >= node.maximum):
            return
        for way in readings(value):
            marked = tuple(n + (way.marks >> j & 1) for j, n in enumerate(at.marked))
            over = any(high is not None and n > high for n, (_, high) in zip(marked, node.counts, strict=True))
            if over or not self.fits(way.node):
                continue
            marked = tuple(
                n if high is not None else min(n, low) for n, (low, high) in zip(marked, node.counts, strict=True)
            )
            count = at.count + 1
            if node.maximum is None:
                count = min(count, max(node.minimum, len(node.prefix)))
            yield way, replace(at, count=count, marked=marked, first=False)

    def holds(self, at: Items) -> bool:
        """Whether it can be completed."""
        seen, layer = {at}, {at}
        while layer and at not in self._known:
            if any(map(self.closes, layer)):
                self._known[at] = True
            layer = {after for place in layer for after in self._taken(place)} - seen
            seen |= layer
        return self._known.setdefault(at, False)

    def _taken(self, at: Items) -> Iterator[Items]:
        for way, after in self.after(at):
            if not self.node.unique:
                yield after
                continue
            left = [v for v in self.values(way.node, len(at.used) + 1) if v not in at.used]
            yield from (replace(after, used=at.used | {value}) for value in left[:1])
