"""Terms -> productions: a variable is a number, and stands for any of its lists of symbols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from guideway.errors import InvalidConstraintError, LimitExceededError
from guideway.grammar.cfg.terms import Choice, Except, Ref, Rule, Series, Term, Text, Times, Whole
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import NEVER, Regular

__all__ = ["MAX_SYMBOLS", "Difference", "Opaque", "Production", "Productions", "Repeated", "Symbol", "flatten"]

MAX_SYMBOLS = 500_000
"""How many symbols all productions may have together."""

MAX_WORK = 4_000_000
"""How many pairs of rules that begin each other are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """A grammar that is taken whole."""

    grammar: Grammar


Symbol = int | Regular | Opaque  # int: a variable
Production = tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A variable that stands for another symbol, `least` to `most` times."""

    part: Symbol
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A variable that stands for the texts of one symbol that are none of another's."""

    part: Symbol
    without: Symbol
    place: str | None


@dataclass(slots=True)
class Productions:
    """By variable: its productions, or what it repeats or leaves out; and the rule that it comes from."""

    of: list[list[Production] | Repeated | Difference] = field(default_factory=list)
    rule: list[int] = field(default_factory=list)
    size: int = 0
    worked: int = 0

    def variable(self, rule: int) -> int:
        """A new one."""
        self.of.append([])
        self.rule.append(rule)
        return len(self.of) - 1

    def give(self, variable: int, productions: Iterable[Production]) -> None:
        """The productions of a variable."""
        made = list(productions)
        self.of[variable] = made
        self.count(made)

    def count(self, made: list[Production]) -> None:
        """Raises `LimitExceededError` where all become too many."""
        self.size += sum(len(one) + 1 for one in made)
        if self.size > MAX_SYMBOLS:
            raise LimitExceededError(f"the rules come down to more than {MAX_SYMBOLS} symbols")

    def work(self, steps: int) -> None:
        """Raises `LimitExceededError` where what is looked at, and not kept, becomes too much."""
        self.worked += steps
        if self.worked > MAX_WORK:
            raise LimitExceededError("too many rules are each other's beginnings")

    def productions(self, variable: int) -> list[Production]:
        """The productions; a repetition is written out, with new variables for its parts."""
        made = self.of[variable]
        if isinstance(made, list):
            return made
        written: list[Production] = self._written_out(variable, made) if isinstance(made, Repeated) else [(made.part,)]
        self.give(variable, written)
        return written

    def callees(self, variable: int) -> list[int]:
        """The variables that it refers to."""
        made = self.of[variable]
        if isinstance(made, Repeated):
            symbols = [made.part]
        elif isinstance(made, Difference):
            symbols = [made.part, made.without]
        else:
            symbols = [symbol for one in made for symbol in one]
        return [symbol for symbol in symbols if isinstance(symbol, int)]

    def _written_out(self, variable: int, made: Repeated) -> list[Production]:
        rule = self.rule[variable]
        if made.least + (made.most or 0) > MAX_SYMBOLS:
            raise LimitExceededError("a repetition of what calls itself is counted too far")
        if made.most is None:
            more = self.variable(rule)
            self.give(more, [(made.part, more), ()])
            return [(made.part,) * made.least + (more,)]
        rest: Production = ()
        for _ in range(made.most - made.least):
            more = self.variable(rule)
            self.give(more, [(made.part, *rest), ()])
            rest = (more,)
        return [(made.part,) * made.least + rest] if made.most >= made.least else []


def flatten(rules: list[Rule], numbers: dict[str, int]) -> Productions:
    """The productions of all rules; rule number i is variable i."""
    made = Productions()
    for number in range(len(rules)):
        made.variable(number)
    todo: list[tuple[int, Term]] = [(number, rule.term) for number, rule in enumerate(rules)]
    while todo:
        variable, term = todo.pop()
        rule = made.rule[variable]
        fresh: list[tuple[int, Term]] = []

        def symbol(part: Term, rule: int = rule, fresh: list[tuple[int, Term]] = fresh) -> Symbol:
            match part:
                case Text(language):
                    return language
                case Ref(name):
                    return numbers[name]
                case Whole(grammar):
                    return Opaque(grammar)
            fresh.append((made.variable(rule), part))
            return fresh[-1][0]

        if isinstance(term, Times):
            if term.least < 0:
                raise InvalidConstraintError(f"a repetition of at least {term.least} times", rules[rule].place)
            made.of[variable] = Repeated(symbol(term.part), term.least, term.most)
        elif isinstance(term, Except):
            made.of[variable] = Difference(symbol(term.part), symbol(term.without), term.place)
        else:
            options = _options(term)
            made.give(variable, [tuple(symbol(part) for part in series) for series in options])
        todo += fresh
    return made


def _options(term: Term) -> list[list[Term]]:
    """The series that a term is a choice of."""
    found, todo = [], [term]
    while todo:
        one = todo.pop()
        if isinstance(one, Choice):
            todo += reversed(one.parts)
        else:
            found.append(_parts(one))
    return found


def _parts(term: Term) -> list[Term]:
    found: list[Term] = []
    todo = [term]
    while todo:
        one = todo.pop()
        if isinstance(one, Series):
            todo += reversed(one.parts)
        elif isinstance(one, Choice) and not one.parts:
            return [Text(NEVER)]
        else:
            found.append(one)
    return found
