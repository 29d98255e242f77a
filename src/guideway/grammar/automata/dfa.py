"""Translates expressions to DFAs over the letters of an alphabet. Intersections and complements are supported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from guideway.errors import LimitExceededError
from guideway.grammar.automata.alphabet import Alphabet
from guideway.grammar.automata.determinize import DEAD, Numbered, determinize
from guideway.grammar.automata.minimize import alive
from guideway.grammar.automata.nfa import NfaBuilder, Task
from guideway.grammar.regular import Complement, Dfa, Intersection, Ranges, Regular
from guideway.grammar.work import spend

__all__ = ["Machine", "machine_of"]

_MAX_STATES = 20_000  # maximum number of states of an NFA, and of a DFA
_TOO_MANY = f"the automaton of a terminal needs more than {_MAX_STATES:,} states"
_MAX_WITHIN = 20  # maximum nesting depth of intersections and complements


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """A DFA. State 0 is initial.

    Attributes:
        steps: For each state, the next state by letter. `DEAD`: no accepting state is reachable.
        accepting: For each state, whether it is accepting.
    """

    steps: list[list[int]]
    accepting: list[bool]


class _LetterNfa(NfaBuilder[Regular]):
    """An NFA over the letters of an alphabet. `takes` has the transitions of each state as (letters, target)."""

    def __init__(self, alphabet: Alphabet, within: int) -> None:
        super().__init__(_MAX_STATES, lambda: LimitExceededError(_TOO_MANY))
        self._alphabet, self._within = alphabet, within
        self.takes: list[list[tuple[tuple[int, ...], int]]] = []

    def place(self) -> int:
        self.takes.append([])
        return super().place()

    def read(self, start: int, ranges: Ranges, end: int) -> None:
        self.takes[start].append((self._alphabet.of(ranges), end))

    def other(self, part: Regular, start: int, end: int) -> list[Task[Regular]]:
        if isinstance(part, Dfa):
            places = [self.place() for _ in part.states]
            self.free[start] += places[:1]
            for place, (ends, steps) in zip(places, part.states, strict=True):
                self.free[place] += [end] if ends else []
                for step, after in steps:
                    self.read(place, step.ranges, places[after])
        elif isinstance(part, (Intersection, Complement)):
            self._machine(_combined(part, self._alphabet, self._within + 1), start, end)
        else:
            raise TypeError(part)
        return []

    def _machine(self, machine: Machine, start: int, end: int) -> None:
        places = [self.place() for _ in machine.steps]
        self.free[start] += places[:1]
        for place, steps, ends in zip(places, machine.steps, machine.accepting, strict=True):
            self.free[place] += [end] if ends else []
            self.takes[place] += [((letter,), places[after]) for letter, after in enumerate(steps) if after != DEAD]


def machine_of(language: Regular, alphabet: Alphabet, within: int = 0) -> Machine:
    """Return the DFA of an expression.

    Args:
        language: The expression. It must not contain special tokens, `JsonEscaped` or `Substrings`.
        alphabet: An alphabet that was constructed with the expression.
        within: The number of intersections and complements around the expression.

    Raises:
        LimitExceededError: There are too many states, or intersections and complements are nested too deep.
    """
    if within > _MAX_WITHIN:
        raise LimitExceededError(f"intersections and complements may be nested at most {_MAX_WITHIN} deep")
    places = _LetterNfa(alphabet, within)
    start, final = places.place(), places.place()
    places.add(language, start, final)

    def taken(place: int) -> Iterator[tuple[int, int]]:
        return ((letter, after) for letters, after in places.takes[place] for letter in letters)

    order, steps = determinize([start], places.free, taken, len(alphabet), _MAX_STATES, _TOO_MANY)
    return _alive(steps, [final in state for state in order])


def _combined(one: Intersection | Complement, alphabet: Alphabet, within: int) -> Machine:
    parts = one.parts if isinstance(one, Intersection) else (one.part,)
    machines = [machine_of(part, alphabet, within) for part in parts]
    wanted = isinstance(one, Intersection)
    first = (0,) * len(machines)
    states = Numbered(first, _MAX_STATES, _TOO_MANY)
    steps: list[list[int]] = []
    for state in states.order:
        row = []
        for letter in range(len(alphabet)):
            after = tuple(DEAD if at == DEAD else m.steps[at][letter] for m, at in zip(machines, state, strict=True))
            row.append(DEAD if wanted and DEAD in after else states.number(after))
        steps.append(row)
        spend(len(row) * len(machines))
    ends = [all(at != DEAD and m.accepting[at] for m, at in zip(machines, one, strict=True)) for one in states.order]
    return _alive(steps, [end == wanted for end in ends])


def _alive(steps: list[list[int]], accepting: list[bool]) -> Machine:
    """Return a DFA without its dead states: transitions to them become `DEAD`, the other states are renumbered.

    The initial state remains even if it is dead.
    """
    known = alive([set(row) - {DEAD} for row in steps], accepting)
    kept = [state for state in range(len(steps)) if state in known or state == 0]
    numbers = {state: number if state in known else DEAD for number, state in enumerate(kept)}
    return Machine(
        [[numbers.get(after, DEAD) for after in steps[state]] for state in kept], [accepting[state] for state in kept]
    )
