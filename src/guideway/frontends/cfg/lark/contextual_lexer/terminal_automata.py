"""DFAs of terminals over character classes, and the forbidden continuations after terminals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from guideway.errors import LimitExceededError
from guideway.frontends.cfg.lark.contextual_lexer.determinize import DEAD, Numbered, determinize
from guideway.frontends.regex.character_ranges import Ranges
from guideway.frontends.regex.lookaround import alive, minimal_automaton
from guideway.frontends.regex.nfa import classes
from guideway.grammar.regular import (
    Chars,
    Complement,
    Concat,
    Dfa,
    Intersection,
    JsonEscaped,
    Literals,
    Regular,
    Repeat,
    Special,
    Union,
)

__all__ = ["Alphabet", "ForbiddenContinuations", "Machine", "machine_of"]

_MAX_STATES = 20_000  # maximum number of NFA and DFA states of one terminal
_TOO_MANY = f"the automaton of a terminal needs more than {_MAX_STATES:,} states"
_MAX_WITHIN = 20  # maximum nesting depth of intersections and complements


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """A DFA with initial state 0: transitions by character class, and whether a state is accepting.

    Dead states are replaced by `DEAD`.
    """

    steps: list[list[int]]
    accepting: list[bool]


class Alphabet:
    """The equivalence classes of characters under a list of languages."""

    def __init__(self, languages: Iterable[Regular]) -> None:
        sets = list(dict.fromkeys(ranges for language in languages for ranges in _sets(language)))
        found = classes(sets)
        self.ranges: list[Ranges] = [ranges for ranges, _ in found]
        """The characters of each class."""
        self._classes = {
            ranges: tuple(n for n, (_, held) in enumerate(found) if held >> number & 1)
            for number, ranges in enumerate(sets)
        }

    def __len__(self) -> int:
        return len(self.ranges)

    def of(self, ranges: Ranges) -> tuple[int, ...]:
        """Return the classes that are the union of one of the character sets."""
        return self._classes[ranges]

    def graph(self, steps: list[list[int]], accepting: list[bool]) -> Regular:
        """Return the minimal automaton as an expression. Equal languages give equal expressions."""
        rows = []
        for step in steps:
            row: dict[int, list[Ranges]] = {}
            for letter, after in enumerate(step):
                if after != DEAD:
                    row.setdefault(after, []).append(self.ranges[letter])
            rows.append(row)
        return minimal_automaton(rows, accepting)


def _one(char: str) -> Ranges:
    return ((ord(char), ord(char)),)


def _sets(language: Regular) -> Iterator[Ranges]:
    todo = [language]
    while todo:
        match todo.pop():
            case Chars(ranges):
                yield ranges
            case Literals(texts):
                yield from map(_one, sorted(set("".join(texts))))
            case Concat(parts) | Union(parts) | Intersection(parts):
                todo += parts
            case Complement(part) | Repeat(part):
                todo.append(part)
            case Dfa(states):
                todo += [step for _, steps in states for step, _ in steps]
            case Special() | JsonEscaped():
                pass


class _Nfa:
    """An NFA: epsilon transitions (`free`), and transitions by characters (`takes`)."""

    def __init__(self, alphabet: Alphabet, within: int) -> None:
        self._alphabet, self._within = alphabet, within
        self.free: list[list[int]] = []
        self.takes: list[list[tuple[tuple[int, ...], int]]] = []

    def place(self) -> int:
        self.free.append([])
        self.takes.append([])
        if len(self.free) > _MAX_STATES:
            raise LimitExceededError(_TOO_MANY)
        return len(self.free) - 1

    def add(self, language: Regular, start: int, final: int) -> None:
        todo = [(language, start, final)]
        while todo:
            one, start, final = todo.pop()
            match one:
                case Chars(ranges):
                    self.takes[start].append((self._alphabet.of(ranges), final))
                case Literals(texts):
                    self._words(texts, start, final)
                case Concat(parts):
                    for part in parts:
                        after = self.place()
                        todo.append((part, start, after))
                        start = after
                    self.free[start].append(final)
                case Union(parts):
                    todo += [(part, start, final) for part in parts]
                case Repeat(part, least, most):
                    todo += self._times(part, least, most, start, final)
                case Dfa(states):
                    places = [self.place() for _ in states]
                    self.free[start] += places[:1]
                    for place, (ends, steps) in zip(places, states, strict=True):
                        self.free[place] += [final] if ends else []
                        todo += [(step, place, places[after]) for step, after in steps]
                case Intersection() | Complement():
                    self._machine(_combined(one, self._alphabet, self._within + 1), start, final)
                case _:
                    raise TypeError(one)

    def _words(self, texts: tuple[str, ...], start: int, final: int) -> None:
        known: dict[tuple[int, str], int] = {}
        for text in texts:
            at = start
            for char in text:
                if (at, char) not in known:
                    known[at, char] = self.place()
                    self.takes[at].append((self._alphabet.of(_one(char)), known[at, char]))
                at = known[at, char]
            self.free[at].append(final)

    def _times(
        self, part: Regular, least: int, most: int | None, start: int, final: int
    ) -> list[tuple[Regular, int, int]]:
        todo: list[tuple[Regular, int, int]] = []
        for number in range(least if most is None else most):
            if number >= least:
                self.free[start].append(final)
            after = self.place()
            todo.append((part, start, after))
            start = after
        if most is None:
            loop = self.place()  # a new state, which has no other transitions
            self.free[start].append(loop)
            todo.append((part, loop, loop))
            start = loop
        self.free[start].append(final)
        return todo

    def _machine(self, machine: Machine, start: int, final: int) -> None:
        places = [self.place() for _ in machine.steps]
        self.free[start] += places[:1]
        for place, steps, ends in zip(places, machine.steps, machine.accepting, strict=True):
            self.free[place] += [final] if ends else []
            self.takes[place] += [((letter,), places[after]) for letter, after in enumerate(steps) if after != DEAD]


def machine_of(language: Regular, alphabet: Alphabet, within: int = 0) -> Machine:
    """Return the DFA of an expression. Raises `LimitExceededError`."""
    if within > _MAX_WITHIN:
        raise LimitExceededError(f"intersections and complements may be nested at most {_MAX_WITHIN} deep")
    places = _Nfa(alphabet, within)
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
    ends = [all(at != DEAD and m.accepting[at] for m, at in zip(machines, one, strict=True)) for one in states.order]
    return _alive(steps, [end == wanted for end in ends])


def _alive(steps: list[list[int]], accepting: list[bool]) -> Machine:
    """Remove dead states, except the initial state."""
    known = alive([set(row) - {DEAD} for row in steps], accepting)
    kept = [state for state in range(len(steps)) if state in known or state == 0]
    numbers = {state: number if state in known else DEAD for number, state in enumerate(kept)}
    return Machine(
        [[numbers.get(after, DEAD) for after in steps[state]] for state in kept], [accepting[state] for state in kept]
    )


class ForbiddenContinuations:
    """Forbidden continuations: what a partially matched terminal could still match. 0: none.

    Only the shortest matches matter. States with equal sets of shortest matches have the same number.
    """

    def __init__(self, machines: dict[str, Machine]) -> None:
        self._first: dict[str, int] = {}
        rows: list[list[int]] = []  # transitions; DEAD: no longer possible, -2: the match occurred
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
        """Per number and character class: the number after it; `DEAD` if the forbidden match occurred."""

    def of(self, name: str, state: int) -> int:
        """Return the number of what a terminal could still match from a state."""
        return self._block[self._first[name] + state]
