"""Thompson's construction: an NFA of an expression, without recursion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from guideway.background import checkpoint
from guideway.grammar.automata.alphabet import one_character
from guideway.grammar.regular import Chars, Concat, Literals, Ranges, Repeat, Union

__all__ = ["NfaBuilder", "Task"]

Part = TypeVar("Part")
"""What is translated: an expression, or another kind of node that a subclass supports."""

Task = tuple[Part, int, int]
"""A part that is still to be translated, and the states before and after it."""


class NfaBuilder(Generic[Part]):
    """An NFA under construction. Subclasses define the transitions that read characters.

    Args:
        most: The maximum number of states.
        too_large: Returns the error to raise for more states.

    Attributes:
        free: For each state, the targets of its epsilon transitions.
    """

    def __init__(self, most: int, too_large: Callable[[], Exception]) -> None:
        self._most, self._too_large = most, too_large
        self.free: list[list[int]] = []

    def place(self) -> int:
        """Add a state and return its number."""
        if len(self.free) >= self._most:
            raise self._too_large()
        self.free.append([])
        return len(self.free) - 1

    def link(self, start: int, end: int) -> None:
        """Add an epsilon transition."""
        self.free[start].append(end)

    def read(self, start: int, ranges: Ranges, end: int) -> None:
        """Add a transition that reads one character of a set. Subclasses must implement it."""
        raise NotImplementedError

    def other(self, part: Part, start: int, end: int) -> list[Task[Part]]:
        """Translate a part that `_tasks` does not support. Returns the parts inside it that are still to be translated.

        Subclasses override it. Here it raises `TypeError`.
        """
        raise TypeError(part)

    def add(self, part: Part, start: int, end: int) -> None:
        """Translate a part between two states.

        The caller must add no other transition that ends at `start` or begins at `end`.
        """
        tasks: list[Task[Part]] = [(part, start, end)]
        while tasks:
            checkpoint()
            one, low, high = tasks.pop()
            tasks += self._tasks(one, low, high)

    def _tasks(self, one: Part, low: int, high: int) -> list[Task[Part]]:
        match one:
            case Chars(ranges):
                self.read(low, ranges, high)
            case Literals(texts):
                self._texts(texts, low, high)
            case Concat(parts):
                return self.sequence(parts, low, high)  # type: ignore[arg-type]  # expressions are parts
            case Union(parts):
                return [(inner, low, high) for inner in parts]  # type: ignore[misc]  # as above
            case Repeat(inner, least, most):
                return self.repetition(inner, least, most, low, high)  # type: ignore[arg-type]  # as above
            case _:
                return self.other(one, low, high)
        return []

    def sequence(self, parts: tuple[Part, ...], low: int, high: int) -> list[Task[Part]]:
        """Return the tasks for a concatenation."""
        if not parts:
            self.link(low, high)
            return []
        ends = [self.place() for _ in parts[1:]]
        return list(zip(parts, [low, *ends], [*ends, high], strict=True))

    def repetition(self, part: Part, least: int, most: int | None, low: int, high: int) -> list[Task[Part]]:
        """Return the tasks for a repetition, with one copy of the part for each count. `most` None: unbounded."""
        copies = least if most is None else most
        if copies > self._most:
            raise self._too_large()
        tasks: list[Task[Part]] = []
        for count in range(copies):
            if count >= least:
                self.link(low, high)
            between = self.place()
            tasks.append((part, low, between))
            low = between
        if most is None:
            loop = self.place()  # a new state, so that no other transition of `low` is part of the loop
            self.link(low, loop)
            tasks.append((part, loop, loop))
            low = loop
        self.link(low, high)
        return tasks

    def _texts(self, texts: tuple[str, ...], low: int, high: int) -> None:
        """Add fixed texts between two states, as a trie."""
        known: dict[tuple[int, str], int] = {}
        for text in texts:
            at = low
            for char in text:
                after = known.get((at, char))
                if after is None:
                    after = known[at, char] = self.place()
                    self.read(at, one_character(char), after)
                at = after
            self.link(at, high)
