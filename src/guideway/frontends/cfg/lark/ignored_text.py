"""Ignored text of Lark's dynamic lexer: an ignored terminal always takes the longest match of its pattern.

So after the match of an ignored terminal, the text must not continue in such a way that this terminal has a longer
match. The following characters belong to more ignored text or to the next terminal. Therefore one automaton describes a
terminal with the ignored text before it. A state of this automaton contains the state of the terminal that is being
read, and the states of the ignored terminals that have already matched, which must not accept again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guideway.background import checkpoint
from guideway.errors import LimitExceededError
from guideway.grammar.automata.alphabet import Alphabet
from guideway.grammar.automata.determinize import DEAD, Numbered
from guideway.grammar.automata.dfa import Machine, machine_of
from guideway.grammar.derivatives import MAX_STATES, Derivatives
from guideway.grammar.regular import Ranges, Regular, Repeat, Union
from guideway.grammar.work import spend

__all__ = ["IgnoredText", "LookaheadError"]

_MAX_STATES = 20_000
_TOO_MANY = f"the automaton of ignored text needs more than {_MAX_STATES:,} states"

_MAX_WORK = 4_000_000
_TOO_LONG = f"the automata of ignored text take more than {_MAX_WORK:,} steps; ignore fewer or simpler terminals"

_TERMINAL = -1  # the number of the terminal after the ignored text, in place of the number of an ignored terminal
_Run = tuple[int, int]  # the number of an ignored terminal, and a state of its automaton
# The terminal that is being read, and the ignored terminals that have matched and must not accept again.
_Place = tuple[_Run, frozenset[_Run]]


class LookaheadError(Exception):
    """The longest match of an ignored terminal depends on the text after the next terminal."""


class IgnoredText:
    """Languages of terminals with the ignored text before them.

    Args:
        ignored: The languages of the ignored terminals. The lexer takes the longest match in the text.
        terminals: The languages of the other terminals by name.
    """

    def __init__(self, ignored: Sequence[Regular], terminals: Mapping[str, Regular]) -> None:
        self._plain = Repeat(Union(tuple(ignored)), 0, None)
        self._alphabet = Alphabet([self._plain, *terminals.values()])
        self._ignored = [machine_of(one, self._alphabet) for one in ignored]
        self._terminals = dict(terminals)
        self._work = 0

    def differs(self) -> bool:
        """Return whether the rule of the longest match can forbid a sequence of ignored terminals.

        If it returns False, every sequence is allowed before each terminal and at the end of the text.
        """
        plain = machine_of(self._plain, self._alphabet)
        if self.alone() != self._alphabet.graph(plain.steps, plain.accepting):
            return True
        return any(map(self.meets, self._terminals))

    def meets(self, name: str) -> bool:
        """Return whether an ignored terminal before a text of a terminal could have a longer match.

        The longer match would end within this text or after it. If the automaton of the terminal is too large, it is
        computed only as far as a longer match is possible. Then the result can be True although no text has such a
        match.
        """
        try:
            return self._meets(machine_of(self._terminals[name], self._alphabet))
        except LimitExceededError:
            pass
        try:
            return self._meets_lazily(self._terminals[name])
        except RecursionError:  # `Derivatives` recurses on the nesting of an expression, and on the length of its texts
            return True

    def _meets(self, terminal: Machine) -> bool:
        seen = set(self._accepting(0))
        todo = list(seen)
        while todo:
            checkpoint()
            number, state, at = todo.pop()
            steps, others = self._ignored[number].steps[state], terminal.steps[at]
            spend(len(steps))
            for after, other in zip(steps, others, strict=True):
                if DEAD in (after, other):
                    continue
                if self._ignored[number].accepting[after] or terminal.accepting[other]:
                    return True
                if (number, after, other) not in seen:
                    seen.add((number, after, other))
                    todo.append((number, after, other))
        return False

    def _meets_lazily(self, terminal: Regular) -> bool:
        read = Derivatives(MAX_STATES)
        seen = set(self._accepting(read.add(terminal)))
        todo = list(seen)
        while todo:
            checkpoint()
            number, state, at = todo.pop()
            steps = [(letter, to) for letter, to in enumerate(self._ignored[number].steps[state]) if to != DEAD]
            for ranges, other in read.steps(at) if steps else ():
                spend(len(steps))
                for after in {to for letter, to in steps if _overlap(self._alphabet.ranges[letter], ranges)}:
                    if self._ignored[number].accepting[after] or read.nullable(other):
                        return True
                    if (number, after, other) not in seen:
                        seen.add((number, after, other))
                        todo.append((number, after, other))
        return False

    def _accepting(self, begin: int) -> list[tuple[int, int, int]]:
        """Return each accepting state of an ignored terminal, with its number, and with the initial state `begin`."""
        return [
            (number, state, begin)
            for number, machine in enumerate(self._ignored)
            for state, accepts in enumerate(machine.accepting)
            if accepts
        ]

    def alone(self) -> Regular:
        """Return the language of ignored text at the end of the whole text, or before a special token."""
        return self._automaton(None)

    def before(self, name: str) -> Regular:
        """Return the language of a terminal with ignored text before it.

        Raises:
            LookaheadError: Whether a text is ignored depends on what follows the terminal.
            LimitExceededError: The automaton is too large.
        """
        return self._automaton(machine_of(self._terminals[name], self._alphabet))

    def _automaton(self, terminal: Machine | None) -> Regular:
        first = frozenset(self._begun(terminal, frozenset()))
        states = Numbered(first, _MAX_STATES, _TOO_MANY)
        rows: list[list[int]] = []
        accepting: list[bool] = []
        for state in states.order:
            ends = [(run, pending) for run, pending in state if self._ends(run, terminal)]
            if terminal is not None and any(pending for _, pending in ends):
                raise LookaheadError
            accepting.append(bool(ends) or (terminal is None and state is first))
            row, before = [], self._work
            size = 3 * len(state) + sum(len(pending) for _, pending in state)
            for letter in range(len(self._alphabet)):
                after = frozenset(place for one in state for place in self._read(one, letter, terminal))
                self._work += size + len(after)
                row.append(states.number(after) if after else DEAD)
            rows.append(row)
            spend(self._work - before)
            if self._work > _MAX_WORK:
                raise LimitExceededError(_TOO_LONG)
        return self._alphabet.graph(rows, accepting)

    def _begun(self, terminal: Machine | None, pending: frozenset[_Run]) -> list[_Place]:
        """Return the initial `_Place` of each ignored terminal, and that of `terminal` unless it is None."""
        runs = [(number, 0) for number in range(len(self._ignored))]
        return [(run, pending) for run in (runs if terminal is None else [*runs, (_TERMINAL, 0)])]

    def _ends(self, run: _Run, terminal: Machine | None) -> bool:
        """Return whether the automaton accepts in this state of a terminal. `terminal` None: it is the automaton of
        `alone`.
        """
        number, state = run
        if number == _TERMINAL:
            return terminal is not None and terminal.accepting[state]
        return terminal is None and self._ignored[number].accepting[state]

    def _read(self, place: _Place, letter: int, terminal: Machine | None) -> list[_Place]:
        """Return each `_Place` after a character of the class `letter`. An empty list: the character is not allowed."""
        (number, state), pending = place
        machine = terminal if number == _TERMINAL else self._ignored[number]
        after = DEAD if machine is None else machine.steps[state][letter]
        if machine is None or after == DEAD:
            return []
        left = set()
        for other, at in pending:
            to = self._ignored[other].steps[at][letter]
            if to != DEAD and self._ignored[other].accepting[to]:
                return []  # this ignored terminal could have taken a longer match
            if to != DEAD:
                left.add((other, to))
        found: list[_Place] = [((number, after), frozenset(left))]
        if number != _TERMINAL and machine.accepting[after]:
            if any(to != DEAD for to in machine.steps[after]):  # else no longer match is possible
                left.add((number, after))
            found += self._begun(terminal, frozenset(left))
        return found


def _overlap(some: Ranges, others: Ranges) -> bool:
    """Return whether two sets of characters have a character in common."""
    one, two = 0, 0
    while one < len(some) and two < len(others):
        if some[one][1] < others[two][0]:
            one += 1
        elif others[two][1] < some[one][0]:
            two += 1
        else:
            return True
    return False
