"""The forbidden continuations after terminals: matches that would make the division into terminals wrong."""

from __future__ import annotations

from guideway.grammar.automata.determinize import DEAD
from guideway.grammar.automata.dfa import Machine

__all__ = ["ForbiddenContinuations"]


class ForbiddenContinuations:
    """Numbers of forbidden continuations.

    A forbidden continuation is a set of texts: those by which a terminal, read up to a state of its automaton, would
    match. Only the shortest of these texts matter. States with equal sets have the same number. The empty set has the
    number 0.

    Args:
        machines: The automata of the terminals by name.

    Attributes:
        after: For each number and character class, the number after a character of this class. `DEAD`: the forbidden
            match has occurred.
    """

    def __init__(self, machines: dict[str, Machine]) -> None:
        self._first: dict[str, int] = {}
        # transitions of all automata; DEAD: no match is possible, -2: the match has occurred
        rows: list[list[int]] = []
        for name, machine in machines.items():
            self._first[name] = by = len(rows)
            for row in machine.steps:
                rows.append([DEAD if at == DEAD else -2 if machine.accepting[at] else at + by for at in row])
        block = [0] * len(rows)
        count = 0
        while True:
            seen: dict[tuple[int, ...], int] = {(DEAD,) * len(rows[0]) if rows else (): 0}
            block = [seen.setdefault(tuple(to if to < 0 else block[to] for to in row), len(seen)) for row in rows]
            if len(seen) == count:
                break
            count = len(seen)
        self._block = block
        one_of = {number: state for state, number in enumerate(block)}
        nothing = [0] * (len(rows[0]) if rows else 0)
        self.after: list[list[int]] = [
            nothing
            if number not in one_of or number == 0
            else [0 if to == DEAD else DEAD if to == -2 else block[to] for to in rows[one_of[number]]]
            for number in range(count)
        ]

    def of(self, name: str, state: int) -> int:
        """Return the number of the forbidden continuation of a terminal that was read up to a state."""
        return self._block[self._first[name] + state]
