"""States numbered as they are met; places that may be in several of them at once made deterministic."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from guideway.errors import LimitExceededError

__all__ = ["DEAD", "Numbered", "determined"]

DEAD = -1
"""Stands for the states that lead to no end."""

State = TypeVar("State", bound=Hashable)


class Numbered(Generic[State]):
    """States by number, from `first`, number 0; `order` grows while it is walked through.

    More than `most` raise `LimitExceededError` with `why`.
    """

    def __init__(self, first: State, most: int, why: str) -> None:
        self.order = [first]
        self._numbers = {first: 0}
        self._most, self._why = most, why

    def number(self, state: State) -> int:
        """The number of a state, new or not."""
        found = self._numbers.setdefault(state, len(self.order))
        if found == len(self.order):
            self.order.append(state)
            if len(self.order) > self._most:
                raise LimitExceededError(self._why)
        return found


def determined(
    starts: Iterable[int],
    free: Sequence[Sequence[int]],
    steps: Callable[[int], Iterable[tuple[int, int]]],
    letters: int,
    most: int,
    why: str,
) -> tuple[list[frozenset[int]], list[list[int]]]:
    """The subset construction: the places of each state, and by letter the state after it.

    `free`: by place, those reached without a letter. `steps`: of a place, letters and the places after them.
    """

    def closed(seeds: Iterable[int]) -> frozenset[int]:
        seen = set(seeds)
        todo = list(seen)
        while todo:
            fresh = [one for one in free[todo.pop()] if one not in seen]
            seen.update(fresh)
            todo += fresh
        return frozenset(seen)

    states = Numbered(closed(starts), most, why)
    rows: list[list[int]] = []
    for state in states.order:
        targets: dict[int, set[int]] = {}
        for place in state:
            for letter, after in steps(place):
                targets.setdefault(letter, set()).add(after)
        row = [DEAD] * letters
        for letter, places in targets.items():
            row[letter] = states.number(closed(places))
        rows.append(row)
    return states.order, rows
