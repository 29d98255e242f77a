"""The subset construction. States are numbered in the order in which they are found."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from guideway.background import checkpoint
from guideway.errors import LimitExceededError
from guideway.grammar.work import spend

__all__ = ["DEAD", "Numbered", "determinize"]

MAX_WORK = 2_000_000
"""The maximum number of transitions and NFA states that one construction visits. These take about a second."""

DEAD = -1
"""Instead of the number of a next state: there is none, so no text can continue."""

State = TypeVar("State", bound=Hashable)


class Numbered(Generic[State]):
    """Numbers states in the order in which they are found.

    Args:
        first: The initial state, which has the number 0.
        most: The maximum number of states.
        why: The message of the `LimitExceededError` for more states.

    Attributes:
        order: The states by number. A loop over it also reaches the states that are added during the loop.
    """

    def __init__(self, first: State, most: int, why: str) -> None:
        self.order = [first]
        self._numbers = {first: 0}
        self._most, self._why = most, why

    def number(self, state: State) -> int:
        """Return the number of a state. A new state is added; raises `LimitExceededError` if there are too many."""
        found = self._numbers.setdefault(state, len(self.order))
        if found == len(self.order):
            self.order.append(state)
            if len(self.order) > self._most:
                raise LimitExceededError(self._why)
        return found


def determinize(
    starts: Iterable[int],
    free: Sequence[Sequence[int]],
    steps: Callable[[int], Iterable[tuple[int, int]]],
    letters: int,
    most: int,
    why: str,
) -> tuple[list[frozenset[int]], list[list[int]]]:
    """Determinize an NFA by the subset construction.

    Args:
        starts: The initial NFA states.
        free: For each NFA state, the targets of its epsilon transitions.
        steps: Returns the transitions of an NFA state as (letter, target).
        letters: The number of letters.
        most: The maximum number of DFA states.
        why: The message of the `LimitExceededError`.

    Returns:
        For each DFA state, its set of NFA states; and for each DFA state, the next state by letter, or `DEAD`.

    Raises:
        LimitExceededError: There are more than `most` states, or they need more than `MAX_WORK` steps.
    """
    work = 0

    def closed(seeds: Iterable[int]) -> frozenset[int]:
        seen = set(seeds)
        todo = [one for one in seen if free[one]]
        while todo:
            checkpoint()
            for one in free[todo.pop()]:
                if one not in seen:
                    seen.add(one)
                    if free[one]:
                        todo.append(one)
        return frozenset(seen)

    states = Numbered(closed(starts), most, why)
    rows: list[list[int]] = []
    for state in states.order:
        before, targets = work, dict[int, set[int]]()
        for place in state:
            for letter, after in steps(place):
                work += 1
                targets.setdefault(letter, set()).add(after)
        row = [DEAD] * letters
        for letter, places in targets.items():
            after_letter = closed(places)
            work += len(after_letter)
            row[letter] = states.number(after_letter)
        spend(work - before + len(row))
        if work > MAX_WORK:
            raise LimitExceededError(f"{why} (its construction takes more than {MAX_WORK:,} steps)")
        rows.append(row)
    return states.order, rows
