"""What can be concluded from productions, one after the other: which variables can end, which can be empty."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from guideway.grammar.cfg.productions import Production

__all__ = ["reached"]


def reached(
    group: Mapping[int, list[Production]],
    needs: Callable[[Production], set[int] | None],
    never: Collection[int] = (),
) -> tuple[set[int], set[tuple[int, int]]]:
    """The variables of a group with a production whose needs are all among them, and these productions (variable,
    number). `needs`: variables of the group; None: it holds never. `never`: variables that are not, whatever they have.

    In time linear in the productions: each waits for the variables that it needs.
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
        for place in users.get(todo.pop(), ()):
            waits[place] -= 1
            if waits[place] == 0:
                add(place[0])
    return found, {place for place, left in waits.items() if left == 0}
