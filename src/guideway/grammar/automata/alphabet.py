"""`Alphabet`: equivalence classes of characters, which are the letters of automata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from guideway.grammar.automata.determinize import DEAD
from guideway.grammar.automata.minimize import minimal_automaton
from guideway.grammar.regular import (
    MAX_CODE_POINT,
    Chars,
    Dfa,
    Literals,
    Ranges,
    Regular,
    distinct,
    outer_parts_of,
)

__all__ = ["Alphabet", "character_classes", "one_character"]


def character_classes(sets: list[Ranges]) -> list[tuple[Ranges, int]]:
    """Return the classes of characters that some sets distinguish: characters of a class are in the same sets.

    Each class is returned with an int: bit i is set if the set with the index i contains the class.
    """
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


class Alphabet:
    """The classes of characters that some languages distinguish. A letter is the index of a class."""

    def __init__(self, languages: Iterable[Regular]) -> None:
        sets = list(dict.fromkeys(ranges for language in languages for ranges in _sets(language)))
        found = character_classes(sets)
        self.ranges: list[Ranges] = [ranges for ranges, _ in found]
        """The characters of each letter."""
        self._classes = {
            ranges: tuple(n for n, (_, held) in enumerate(found) if held >> number & 1)
            for number, ranges in enumerate(sets)
        }

    def __len__(self) -> int:
        return len(self.ranges)

    def of(self, ranges: Ranges) -> tuple[int, ...]:
        """Return the letters of a character set. It must occur in one of the languages. Otherwise raises `KeyError`."""
        return self._classes[ranges]

    def graph(self, steps: list[list[int]], accepting: list[bool]) -> Regular:
        """Return the minimal automaton of a DFA as an expression. The results for equal languages are equal.

        Args:
            steps: For each state, the next state by letter, or `DEAD`. State 0 is initial.
            accepting: For each state, whether it is accepting.
        """
        rows = []
        for step in steps:
            row: dict[int, list[Ranges]] = {}
            for letter, after in enumerate(step):
                if after != DEAD:
                    row.setdefault(after, []).append(self.ranges[letter])
            rows.append(row)
        return minimal_automaton(rows, accepting)


def one_character(char: str) -> Ranges:
    """Return the set of one character."""
    return ((ord(char), ord(char)),)


def _sets(language: Regular) -> Iterator[Ranges]:
    for one in distinct(language, outer_parts_of):
        match one:
            case Chars(ranges):
                yield ranges
            case Literals(texts):
                yield from map(one_character, sorted(set("".join(texts))))
            case Dfa(states):
                yield from (chars.ranges for _, steps in states for chars, _ in steps)
