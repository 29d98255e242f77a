"""A least fixpoint over productions, to find the productive and the nullable variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from guideway.background import checkpoint

__all__ = ["reached"]

P = TypeVar("P")  # a production


def reached(
    group: Mapping[int, Sequence[P]],
    needs: Callable[[P], set[int] | None],
    never: Collection[int] = (),
) -> tuple[set[int], set[tuple[int, int]]]:
    """Return the least set of variables that have a production whose needs are all in the set.

    The time is linear in the size of the productions.

    Args:
        group: The productions by variable.
        needs: Returns the variables of the group that a production needs; None: the production can never be used.
        never: Variables that are never in the set.

    Returns:
        The set; and the productions whose needs are all in the set, as (variable, index).
    """
    users: dict[int, list[tuple[int, int]]] = {}
    waits: dict[tuple[int, int], int] = {}
    found: set[int] = set()
    todo: list[int] = []

    def add(variable: int) -> None:
        if variable not in found and variable not in never:
            found.add(variable)
            todo.append(variable)

    for variable, productions in group.items():
        for number, one in enumerate(productions):
            inner = needs(one)
            if inner is None:
                continue
            waits[variable, number] = len(inner)
            for symbol in inner:
                users.setdefault(symbol, []).append((variable, number))
            if not inner:
                add(variable)
    while todo:
        checkpoint()
        for place in users.get(todo.pop(), ()):
            waits[place] -= 1
            if waits[place] == 0:
                add(place[0])
    return found, {place for place, left in waits.items() if left == 0}
