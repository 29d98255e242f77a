"""Flattens terms to productions. A variable is a number; a production is a tuple of symbols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from guideway.background import checkpoint
from guideway.errors import InvalidConstraintError, LimitExceededError
from guideway.grammar.cfg.embedded import without_empty_text
from guideway.grammar.cfg.terms import Alternation, Concatenation, Embedded, Except, Ref, Repetition, Rule, Term, Text
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import NEVER, Regular

__all__ = [
    "MAX_SYMBOLS",
    "DifferenceOfSymbols",
    "Opaque",
    "Production",
    "Productions",
    "RepeatedSymbol",
    "Symbol",
    "flatten",
]

MAX_SYMBOLS = 250_000
"""Maximum total number of symbols of all productions, where each production counts as one more symbol."""

MAX_WORK = 4_000_000
"""The maximum number of steps of the left-corner transform (left_recursion.py)."""


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """An embedded grammar that is used as one symbol. It is compared by identity.

    Its texts are not empty.
    """

    grammar: Grammar


Symbol = int | Regular | Opaque  # an int is a variable
Production = tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class RepeatedSymbol:
    """The definition of a variable as `least` to `most` repetitions (None: unbounded) of a symbol."""

    part: Symbol
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class DifferenceOfSymbols:
    """The definition of a variable as the texts of `part` that are not texts of `without`.

    `place` is the position in the grammar text, for errors.
    """

    part: Symbol
    without: Symbol
    place: str | None


@dataclass(slots=True)
class Productions:
    """The definitions of variables.

    Attributes:
        of: The definition of each variable.
        rule: For each variable, the number of the rule that it was made for.
        size: The number of symbols that `count` has counted, plus one for each production.
        worked: The number of steps that `work` has counted.
    """

    of: list[list[Production] | RepeatedSymbol | DifferenceOfSymbols] = field(default_factory=list)
    rule: list[int] = field(default_factory=list)
    size: int = 0
    worked: int = 0

    def variable(self, rule: int) -> int:
        """Add a variable without productions for a rule, and return its number."""
        self.of.append([])
        self.rule.append(rule)
        return len(self.of) - 1

    def give(self, variable: int, productions: Iterable[Production]) -> None:
        """Define a variable by productions."""
        made = list(productions)
        self.of[variable] = made
        self.count(made)

    def count(self, made: list[Production]) -> None:
        """Count the size of productions. Raises `LimitExceededError` beyond `MAX_SYMBOLS`."""
        checkpoint()
        self.size += sum(len(one) + 1 for one in made)
        if self.size > MAX_SYMBOLS:
            raise LimitExceededError(
                f"the rules expand to more than {MAX_SYMBOLS:,} symbols; reduce counted repetitions of recursive rules"
            )

    def work(self, steps: int) -> None:
        """Count steps. Raises `LimitExceededError` beyond `MAX_WORK`."""
        checkpoint()
        self.worked += steps
        if self.worked > MAX_WORK:
            raise LimitExceededError(f"left recursion involves too many pairs of rules (limit {MAX_WORK:,})")

    def productions(self, variable: int) -> list[Production]:
        """Return the productions of a variable. A repetition is unrolled, with new variables.

        A difference gets the productions of its left operand: the caller must exclude the other texts.
        """
        made = self.of[variable]
        if isinstance(made, list):
            return made
        written: list[Production] = (
            self._written_out(variable, made) if isinstance(made, RepeatedSymbol) else [(made.part,)]
        )
        self.give(variable, written)
        return written

    def callees(self, variable: int) -> list[int]:
        """Return the variables that a variable refers to."""
        made = self.of[variable]
        if isinstance(made, RepeatedSymbol):
            symbols = [made.part]
        elif isinstance(made, DifferenceOfSymbols):
            symbols = [made.part, made.without]
        else:
            symbols = [symbol for one in made for symbol in one]
        return [symbol for symbol in symbols if isinstance(symbol, int)]

    def _written_out(self, variable: int, made: RepeatedSymbol) -> list[Production]:
        rule = self.rule[variable]
        if made.least + (made.most or 0) > MAX_SYMBOLS:
            raise LimitExceededError(
                f"a repetition of a recursive rule may be counted up to {MAX_SYMBOLS:,}; use a smaller count"
            )
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
    """Return the productions of all rules. Rule i is variable i; nested terms get further variables.

    Args:
        rules: The rules.
        numbers: The numbers of the rules by name.
    """
    made = Productions()
    for number in range(len(rules)):
        made.variable(number)
    todo: list[tuple[int, Term]] = [(number, rule.term) for number, rule in enumerate(rules)]
    while todo:
        checkpoint()
        variable, term = todo.pop()
        rule = made.rule[variable]
        fresh: list[tuple[int, Term]] = []

        def symbol(part: Term, rule: int = rule, fresh: list[tuple[int, Term]] = fresh) -> Symbol:
            match part:
                case Text(language):
                    return language
                case Ref(name):
                    return numbers[name]
                case Embedded(grammar):
                    some = without_empty_text(grammar)
                    if some is None:
                        return Opaque(grammar)
                    optional = made.variable(rule)
                    made.give(optional, [(Opaque(some),), ()])
                    return optional
            fresh.append((made.variable(rule), part))
            return fresh[-1][0]

        if isinstance(term, Repetition):
            if term.least < 0:
                raise InvalidConstraintError(
                    f"a repetition count must be at least 0, got {term.least}", rules[rule].place
                )
            made.of[variable] = RepeatedSymbol(symbol(term.part), term.least, term.most)
        elif isinstance(term, Except):
            made.of[variable] = DifferenceOfSymbols(symbol(term.part), symbol(term.without), term.place)
        else:
            options = _options(term)
            made.give(variable, [tuple(symbol(part) for part in series) for series in options])
        todo += fresh
    return made


def _options(term: Term) -> list[list[Term]]:
    """Return the alternatives of a term, each as the list of terms that it concatenates."""
    found, todo = [], [term]
    while todo:
        one = todo.pop()
        if isinstance(one, Alternation):
            todo += reversed(one.parts)
        else:
            found.append(_parts(one))
    return found


def _parts(term: Term) -> list[Term]:
    found: list[Term] = []
    todo = [term]
    while todo:
        one = todo.pop()
        if isinstance(one, Concatenation):
            todo += reversed(one.parts)
        elif isinstance(one, Alternation) and not one.parts:
            return [Text(NEVER)]
        else:
            found.append(one)
    return found
