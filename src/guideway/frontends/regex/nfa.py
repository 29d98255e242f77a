"""The NFA of a pattern with assertions; see lookaround.py.

A transition reads a character, or is an epsilon transition, which may have the condition that an assertion holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from guideway.frontends.regex.character_ranges import Ranges
from guideway.frontends.regex.syntax import AlternationPart, Anchor, ConcatPart, Lookaround, Part, Plain, RepeatPart
from guideway.grammar.regular import MAX_CODE_POINT, Chars, Concat, Literals, Regular, Repeat, Union

__all__ = ["MAX_NFA_STATES", "Assertion", "Nfa", "TooLargeError", "classes"]

MAX_NFA_STATES = 20_000
"""Maximum number of states of the NFA, with counted repetitions unrolled."""


class TooLargeError(Exception):
    """A limit was exceeded. The message names it."""


@dataclass(slots=True)
class Assertion:
    """An assertion, with the initial and final state of its part."""

    look: Lookaround | Anchor
    start: int = 0
    final: int = 0


@dataclass(slots=True)
class Nfa:
    """The states of the NFA.

    Attributes:
        free: Per state, its epsilon transitions: target, and the condition (number of the assertion, and whether it is
            negated) or None.
        takes: Per state, its character transition: characters and target, or None.
        assertions: The assertions. Nested assertions have greater numbers.
    """

    free: list[list[tuple[int, tuple[int, bool] | None]]] = field(default_factory=lambda: [[]])
    takes: list[tuple[Ranges, int] | None] = field(default_factory=lambda: [None])
    assertions: list[Assertion] = field(default_factory=list)

    def place(self) -> int:
        if len(self.free) >= MAX_NFA_STATES:
            raise TooLargeError(f"more than {MAX_NFA_STATES:,} NFA states; use fewer repetitions")
        self.free.append([])
        self.takes.append(None)
        return len(self.free) - 1

    def link(self, start: int, end: int, assertion: tuple[int, bool] | None = None) -> None:
        self.free[start].append((end, assertion))

    def add(self, part: Part) -> tuple[int, int]:
        """Add a part between two new states, and return these."""
        start, final = self.place(), self.place()
        work: list[tuple[Part | Regular, int, int]] = [(part, start, final)]
        while work:
            one, low, high = work.pop()
            match one:
                case Plain(language):
                    work.append((language, low, high))
                case ConcatPart(parts) | Concat(parts):
                    for inner in parts[:-1]:
                        between = self.place()
                        work.append((inner, low, between))
                        low = between
                    if parts:
                        work.append((parts[-1], low, high))
                    else:
                        self.link(low, high)
                case AlternationPart(parts) | Union(parts):
                    work += [(inner, low, high) for inner in parts]
                case RepeatPart(inner, least, most) | Repeat(inner, least, most):
                    self._repeat(inner, least, most, low, high, work)
                case Chars(ranges):
                    between = self.place()
                    self.link(low, between)
                    self.takes[between] = (ranges, high)
                case Literals(texts):
                    for text in texts:
                        self._text(text, low, high)
                case Lookaround() | Anchor():
                    self._assertion(one, low, high, work)
                case _:
                    raise TypeError(one)
        return start, final

    def _text(self, text: str, low: int, high: int) -> None:
        for char in text:
            between, after = self.place(), self.place()
            self.link(low, between)
            self.takes[between] = (((ord(char), ord(char)),), after)
            low = after
        self.link(low, high)

    def _repeat(
        self,
        part: Part | Regular,
        least: int,
        most: int | None,
        low: int,
        high: int,
        work: list[tuple[Part | Regular, int, int]],
    ) -> None:
        copies = least if most is None else most
        if copies > MAX_NFA_STATES:
            raise TooLargeError(f"more than {MAX_NFA_STATES:,} NFA states; use fewer repetitions")
        for count in range(copies):
            if count >= least:
                self.link(low, high)
            between = self.place()
            work.append((part, low, between))
            low = between
        if most is None:
            loop = self.place()
            self.link(low, loop)
            work.append((part, loop, loop))
            low = loop
        self.link(low, high)

    def _assertion(
        self, one: Lookaround | Anchor, low: int, high: int, work: list[tuple[Part | Regular, int, int]]
    ) -> None:
        assertion = Assertion(one)
        if isinstance(one, Lookaround):
            assertion.start, assertion.final = self.place(), self.place()
            work.append((one.part, assertion.start, assertion.final))
        self.assertions.append(assertion)
        self.link(low, high, (len(self.assertions) - 1, isinstance(one, Lookaround) and one.negative))


def classes(sets: list[Ranges]) -> list[tuple[Ranges, int]]:
    """Return the equivalence classes of characters under the sets, each with a bit set of the sets that contain it."""
    changes: dict[int, int] = {0: 0, MAX_CODE_POINT + 1: 0}
    for number, ranges in enumerate(sets):
        for low, high in ranges:
            changes[low] = changes.get(low, 0) ^ (1 << number)
            changes[high + 1] = changes.get(high + 1, 0) ^ (1 << number)
    found: dict[int, list[tuple[int, int]]] = {}
    points, held = sorted(changes), 0
    for low, after in pairwise(points):
        held ^= changes[low]
        found.setdefault(held, []).append((low, after - 1))
    return [(tuple(ranges), held) for held, ranges in found.items()]
