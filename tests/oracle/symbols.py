"""A slow definition of texts with special tokens: terms, their context-free rules, and Earley's algorithm on prefixes.

A term is a tuple: ("char", c), ("token", name), ("series", terms), ("choice", terms), ("times", term, least, most),
("rules", start, {name: term}) with ("rule", name) inside, ("both", terms) and ("other", term), a complement. A symbol is a
byte, or the name of a special token. All characters are those of an alphabet.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Prefix", "RecursiveTermError", "Symbols", "Term", "choice", "series", "text"]

Term = tuple[Any, ...]
Symbol = int | str  # a byte, or the name of a special token
Variable = tuple[int]
Item = tuple[Variable, int, int, int]  # variable, index of its production, place in it, where it began


class RecursiveTermError(Exception):
    """An operand of "both" or "other" is recursive."""


def text(value: str) -> Term:
    """The term of one text."""
    return "series", tuple(("char", char) for char in value)


def series(*terms: Term) -> Term:
    """The concatenation of terms."""
    return "series", terms


def choice(*terms: Term) -> Term:
    """The alternation of terms."""
    return "choice", terms


@dataclass(frozen=True)
class _Dfa:
    """A complete automaton over letters: characters and names of special tokens. State 0 is initial."""

    steps: list[dict[str, int]]
    accepting: set[int]


@dataclass(frozen=True)
class Prefix:
    """The sets of Earley's algorithm after some symbols."""

    sets: tuple[tuple[dict[Symbol, list[Item]], dict[Variable, list[Item]], frozenset[Item]], ...]


class Symbols:
    """The sequences of symbols of a term.

    Args:
        term: The term.
        alphabet: All characters. Names of special tokens begin with "<" and are longer than a character.
        tokens: The names of the special tokens. Other names in the term are text.
    """

    def __init__(self, term: Term, alphabet: str, tokens: Iterable[str]) -> None:
        self._alphabet, self._tokens = alphabet, frozenset(tokens)
        self._rules: dict[Variable, list[tuple[Hashable, ...]]] = {}
        self._start = self._variable(term, {})
        self._keep_productive()
        self._empty = self._fixpoint(lambda one, known: one in known)
        self.is_empty = self._start not in self._rules

    def begin(self) -> Prefix:
        """The empty prefix. The term must not be empty."""
        return Prefix((self._closed((), [(self._start, n, 0, 0) for n in range(len(self._rules[self._start]))]),))

    def read(self, prefix: Prefix, symbols: Iterable[Symbol]) -> Prefix | None:
        """The prefix with more symbols; None: no sequence of the term begins so."""
        sets = prefix.sets
        for symbol in symbols:
            items = sets[-1][0].get(symbol)
            if not items:
                return None
            sets = (*sets, self._closed(sets, items))
        return Prefix(sets)

    def is_whole(self, prefix: Prefix) -> bool:
        """Whether the prefix is a sequence of the term."""
        return any(
            variable == self._start and begun == 0 and at == len(self._rules[variable][number])
            for variable, number, at, begun in prefix.sets[-1][2]
        )

    # -- rules

    def _new(self) -> Variable:
        made = (len(self._rules),)
        self._rules[made] = []
        return made

    def _variable(self, term: Term, known: Mapping[str, Variable]) -> Variable:
        if term[0] == "rule":
            return known[term[1]]
        made = self._new()
        rules = self._rules[made]
        match term:
            case ("char", char):
                rules.append(tuple(char.encode()))
            case ("token", name):
                rules.append((name,) if name in self._tokens else tuple(name.encode()))
            case ("series", parts):
                rules.append(tuple(self._variable(part, known) for part in parts))
            case ("choice", parts):
                rules += [(self._variable(part, known),) for part in parts]
            case ("times", part, least, None):
                one, more = self._variable(part, known), self._new()
                self._rules[more] += [(), (more, one)]
                rules.append((*(one,) * least, more))
            case ("times", part, least, most):
                one = self._variable(part, known)
                rules += [(one,) * count for count in range(least, most + 1)]
            case ("rules", start, terms):
                inner = {name: self._new() for name in terms}
                for name, part in terms.items():
                    self._rules[inner[name]].append((self._variable(part, inner),))
                rules.append((inner[start],))
            case _:
                dfa = self._dfa(term, self._tokens)
                states = [self._new() for _ in dfa.steps]
                rules.append((states[0],))
                for state, steps in zip(states, dfa.steps, strict=True):
                    for letter, after in steps.items():
                        written = (letter,) if letter in self._tokens else tuple(letter.encode())
                        self._rules[state].append((*written, states[after]))
                for number in dfa.accepting:
                    self._rules[states[number]].append(())
        return made

    def _fixpoint(self, holds: Any) -> set[Variable]:
        known: set[Variable] = set()
        while True:
            more = {v for v, rules in self._rules.items() if any(all(holds(s, known) for s in rule) for rule in rules)}
            if more == known:
                return known
            known = more

    def _keep_productive(self) -> None:
        good = self._fixpoint(lambda one, known: not isinstance(one, tuple) or one in known)
        self._rules = {
            variable: [rule for rule in rules if all(not isinstance(one, tuple) or one in good for one in rule)]
            for variable, rules in self._rules.items()
            if variable in good
        }

    # -- automata of regular terms

    def _dfa(self, term: Term, tokens: frozenset[str]) -> _Dfa:
        """The automaton of a regular term. Names that are not in `tokens` are text."""
        if term[0] == "other":  # special tokens are not text, so a complement has none
            inner = self._dfa(term[1], frozenset())
            dead = len(inner.steps)
            steps = [
                {**row, **dict.fromkeys(tokens, dead)} for row in [*inner.steps, dict.fromkeys(self._alphabet, dead)]
            ]
            return _Dfa(steps, set(range(dead)) - inner.accepting)
        if term[0] == "both":
            parts = [self._dfa(part, tokens) for part in term[1]]
            return self._determinized(
                tuple(0 for _ in parts),
                lambda state, letter: tuple(part.steps[at][letter] for part, at in zip(parts, state, strict=True)),
                lambda state: all(at in part.accepting for part, at in zip(parts, state, strict=True)),
                tokens,
            )
        nfa = _Nfa(self, tokens)
        first, last = nfa.add(term, {}, ())
        return self._determinized(
            nfa.closed({first}),
            lambda state, letter: nfa.closed({to for at in state for to in nfa.steps[at].get(letter, ())}),
            lambda state: last in state,
            tokens,
        )

    def _determinized(self, start: Any, step: Any, accepts: Any, tokens: frozenset[str]) -> _Dfa:
        order, numbers, rows = [start], {start: 0}, list[dict[str, int]]()
        for state in order:
            row = {}
            for letter in (*self._alphabet, *sorted(tokens)):
                after = step(state, letter)
                if after not in numbers:
                    numbers[after] = len(order)
                    order.append(after)
                row[letter] = numbers[after]
            rows.append(row)
        return _Dfa(rows, {number for state, number in numbers.items() if accepts(state)})

    # -- Earley's algorithm

    def _closed(
        self, sets: Sequence[tuple[Any, dict[Variable, list[Item]], Any]], items: Iterable[Item]
    ) -> tuple[dict[Symbol, list[Item]], dict[Variable, list[Item]], frozenset[Item]]:
        found, todo = set(items), list(items)
        waiting: dict[Variable, list[Item]] = {}
        reading: dict[Symbol, list[Item]] = {}

        def add(item: Item) -> None:
            if item not in found:
                found.add(item)
                todo.append(item)

        while todo:
            variable, number, at, begun = item = todo.pop()
            rule: Any = self._rules[variable][number]
            if at == len(rule):
                for owner, index, place, start in sets[begun][1].get(variable, ()) if begun < len(sets) else ():
                    add((owner, index, place + 1, start))
            elif isinstance(rule[at], tuple):
                waiting.setdefault(rule[at], []).append(item)
                for index in range(len(self._rules[rule[at]])):
                    add((rule[at], index, 0, len(sets)))
                if rule[at] in self._empty:
                    add((variable, number, at + 1, begun))
            else:
                reading.setdefault(rule[at], []).append((variable, number, at + 1, begun))
        return reading, waiting, frozenset(found)


class _Nfa:
    """An automaton with empty steps of a regular term."""

    def __init__(self, owner: Symbols, tokens: frozenset[str]) -> None:
        self._owner, self._tokens = owner, tokens
        self.steps: list[dict[str, list[int]]] = []
        self.free: list[list[int]] = []

    def place(self) -> int:
        self.steps.append({})
        self.free.append([])
        return len(self.free) - 1

    def closed(self, states: set[int]) -> frozenset[int]:
        found, todo = set(states), list(states)
        while todo:
            new = [to for to in self.free[todo.pop()] if to not in found]
            found.update(new)
            todo += new
        return frozenset(found)

    def add(self, term: Term, rules: Mapping[str, Term], within: tuple[str, ...]) -> tuple[int, int]:
        """Add a term. Returns its first and last state."""
        first, last = self.place(), self.place()

        def chain(parts: Iterable[Term], at: int) -> int:
            for part in parts:
                begin, end = self.add(part, rules, within)
                self.free[at].append(begin)
                at = end
            return at

        match term:
            case ("char", char):
                self.steps[first][char] = [last]
            case ("token", name) if name in self._tokens:
                self.steps[first][name] = [last]
            case ("token", name):
                self.free[chain([text(name)], first)].append(last)
            case ("series", parts):
                self.free[chain(parts, first)].append(last)
            case ("choice", parts):
                for part in parts:
                    self.free[chain([part], first)].append(last)
            case ("times", part, least, most):
                at = chain([part] * least, first)
                self.free[at].append(last)
                for _ in range(0 if most is None else most - least):
                    at = chain([part], at)
                    self.free[at].append(last)
                if most is None:
                    loop = self.place()
                    self.free[at].append(loop)
                    self.free[chain([part], loop)].append(loop)
                    self.free[loop].append(last)
            case ("rules", start, terms):
                self.free[self._rule(start, terms, (), first)].append(last)
            case ("rule", name):
                self.free[self._rule(name, rules, within, first)].append(last)
            case _:
                dfa = self._owner._dfa(term, self._tokens)
                places = [self.place() for _ in dfa.steps]
                self.free[first].append(places[0])
                for place, row in zip(places, dfa.steps, strict=True):
                    self.steps[place] = {letter: [places[after]] for letter, after in row.items()}
                for number in dfa.accepting:
                    self.free[places[number]].append(last)
        return first, last

    def _rule(self, name: str, rules: Mapping[str, Term], within: tuple[str, ...], at: int) -> int:
        if name in within:
            raise RecursiveTermError(name)
        begin, end = self.add(rules[name], rules, (*within, name))
        self.free[at].append(begin)
        return end
