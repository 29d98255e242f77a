"""Lowers rules to a grammar, one strongly connected component at a time, callees first."""

from __future__ import annotations

from guideway.arguments import short_list, short_repr
from guideway.errors import InvalidConstraintError, UnsatisfiableError, UnsupportedError
from guideway.grammar.cfg.epsilon import nullable_variables, without_empty
from guideway.grammar.cfg.expressions import Expressions, is_never
from guideway.grammar.cfg.fixpoint import reached
from guideway.grammar.cfg.left_recursion import without_left_recursion
from guideway.grammar.cfg.productions import (
    DifferenceOfSymbols,
    Production,
    Productions,
    RepeatedSymbol,
    Symbol,
    flatten,
)
from guideway.grammar.cfg.regular_rules import fold, joined
from guideway.grammar.cfg.scc import strongly_connected_components
from guideway.grammar.cfg.terms import Rule
from guideway.grammar.cfg.writing import Writer
from guideway.grammar.nodes import Grammar
from guideway.grammar.regular import EMPTY, NEVER, Complement, Intersection, Regular, Repeat, as_text, repeated

__all__ = ["Lowered", "lower"]

Group = dict[int, list[Production]]

_HIDDEN = "%"  # prefix of the names of generated rules, which are not reported


class Lowered:
    """The result of `lower`.

    Attributes:
        grammar: The grammar.
        unreachable: The names of the rules that the start symbol does not reach.
        unproductive: The names of the reachable rules that derive no text. A rule that derives none only because a
            difference or an expression in it is empty may be missing.
    """

    def __init__(self, grammar: Grammar, unreachable: tuple[str, ...], unproductive: tuple[str, ...]) -> None:
        self.grammar = grammar
        self.unreachable = unreachable
        self.unproductive = unproductive


def lower(rules: list[Rule], start: str) -> Lowered:
    """Lower rules to the grammar of the texts that the rule `start` derives.

    Args:
        rules: The rules.
        start: The name of the start symbol.

    Raises:
        InvalidConstraintError: A rule is defined twice, or a repetition count is negative.
        UnsatisfiableError: `start` is one of the unproductive rules (`Lowered.unproductive`). The message has all of
            them.
        UnsupportedError: An operand of an `Except` is not regular.
        LimitExceededError: The rules need too many productions or steps.
        KeyError: A rule is not defined. Callers must check this before.
    """
    numbers: dict[str, int] = {}
    for number, rule in enumerate(rules):
        if rule.name in numbers:
            raise InvalidConstraintError(f"the rule {short_repr(rule.name)} is defined twice", rule.place)
        numbers[rule.name] = number
    made = flatten(rules, numbers)
    root = numbers[start]
    reached = {variable for component in strongly_connected_components([root], made.callees) for variable in component}
    unreachable = tuple(
        rule.name for number, rule in enumerate(rules) if number not in reached and not rule.name.startswith(_HIDDEN)
    )
    lowering = _Lowering(made, rules, root)
    lowering.run()
    unproductive = tuple(
        rule.name
        for number, rule in enumerate(rules)
        if number in reached and lowering.is_never(number) and not rule.name.startswith(_HIDDEN)
    )
    if lowering.is_never(root):
        raise UnsatisfiableError(
            f"the grammar derives no finite text: these rules recurse without end: {short_list(unproductive)}",
            rules[root].place,
        )
    return Lowered(lowering.grammar(), unreachable, unproductive)


class _Lowering:
    """Lowers the strongly connected components. After `run`, a reachable variable has an expression, or productions.

    The expression matches the empty text if the variable derives it. The productions never derive the empty text.
    """

    def __init__(self, made: Productions, rules: list[Rule], root: int) -> None:
        self._made, self._rules, self._root = made, rules, root
        self._expressions = Expressions()
        self._regular: dict[int, Regular] = {}  # the expressions of variables
        self._nullable: set[int] = set()  # variables that have productions and also derive the empty text
        self._solid: set[int] = set()  # the variables from which an `Except` excludes the empty text
        self._final: Group = {}

    def run(self) -> None:
        edges = self._made.callees
        order = strongly_connected_components([self._root], edges)
        place = {variable: number for number, component in enumerate(order) for variable in component}
        outside: dict[int, set[int]] = {number: set() for number in range(len(order))}
        for variable, number in place.items():
            for callee in edges(variable):
                if place[callee] != number:
                    outside[place[callee]].add(callee)
        outside[place[self._root]].add(self._root)
        for number, component in enumerate(order):
            self._group(component, outside[number])

    def is_never(self, variable: int) -> bool:
        """Return whether a variable is known to derive no text. See `Lowered.unproductive`."""
        return is_never(self._regular.get(variable))

    def grammar(self) -> Grammar:
        """Return the grammar of the nodes that are reachable from the root."""
        writer = Writer(self._final, self._expressions, lambda variable: self._rules[self._made.rule[variable]].place)
        if self._root in self._regular:
            return writer.leaf(self._regular[self._root])
        return writer.write(self._root, self._root in self._nullable)

    def _group(self, component: list[int], wanted: set[int]) -> None:
        if self._is_simple(component):
            return
        before = len(self._made.of)
        group = {variable: self._made.productions(variable) for variable in component}
        group |= {more: self._made.productions(more) for more in range(before, len(self._made.of))}
        group = {variable: self._put(productions) for variable, productions in group.items()}
        if len(group) == 1 and all(isinstance(s, Regular) for one in group[component[0]] for s in one):
            self._regular[component[0]] = self._expressions.either(
                [self._expressions.cat(list(one)) for one in group[component[0]]]  # type: ignore[arg-type]  # all regular
            )
            return
        nullable = nullable_variables(group, self._nullable.__contains__, self._expressions, self._solid)

        def may_be_empty(symbol: Symbol) -> bool:
            if isinstance(symbol, int):
                return symbol in nullable or symbol in self._nullable
            return isinstance(symbol, Regular) and self._expressions.nullable(symbol)

        given = list(group)
        group = self._productive(without_empty(group, may_be_empty, self._made, self._expressions))
        for variable in given:
            if variable not in group:
                self._regular[variable] = EMPTY if variable in nullable else NEVER
        group = self._productive(without_left_recursion(group, wanted & group.keys(), self._made))
        solved, left = fold(group, self._expressions)
        for variable, expression in solved.items():
            self._regular[variable] = Repeat(expression, 0, 1) if variable in nullable else expression
        self._nullable |= nullable & left.keys()
        self._final |= left

    def _is_simple(self, component: list[int]) -> bool:
        """Lower a strongly connected component that is one repetition or one difference of regular symbols.

        Returns False for other components.
        """
        variable, made = component[0], self._made.of[component[0]]
        for one in component:
            exception = self._made.of[one]
            if isinstance(exception, DifferenceOfSymbols) and not (
                len(component) == 1 and self._excepted(one, exception)
            ):
                self._without_empty(one, exception)
        if len(component) > 1 or not isinstance(made, RepeatedSymbol):
            return variable in self._regular
        part = self._known(made.part)
        if part is not None:
            possible = made.most is None or made.most >= made.least
            times = EMPTY if made.most == 0 else repeated(part, made.least, made.most)
            self._regular[variable] = times if possible else NEVER
        return part is not None

    def _known(self, symbol: Symbol) -> Regular | None:
        known = self._regular.get(symbol) if isinstance(symbol, int) else symbol
        return known if isinstance(known, Regular) else None

    def _excepted(self, variable: int, made: DifferenceOfSymbols) -> bool:
        part, without = self._known(made.part), self._known(made.without)
        if part is not None and without is not None:
            is_empty = self._is_empty_text(without)
            if is_empty:
                self._regular[variable] = self._expressions.some(part)
            else:
                self._regular[variable] = Intersection((part, Complement(as_text(without, made.place))))
        return variable in self._regular

    def _is_empty_text(self, expression: Regular) -> bool:
        """Return whether an expression matches the empty text and nothing else. False is possible in any case."""
        return self._expressions.nullable(expression) and is_never(self._expressions.some(expression))

    def _without_empty(self, variable: int, made: DifferenceOfSymbols) -> None:
        without = self._known(made.without)
        if without is None or not self._is_empty_text(without):
            raise UnsupportedError(
                "both sides of an exception must be regular, but one of them is recursive", made.place
            )
        self._solid.add(variable)

    def _put(self, productions: list[Production]) -> list[Production]:
        known = [
            tuple(self._regular.get(symbol, symbol) if isinstance(symbol, int) else symbol for symbol in one)
            for one in productions
        ]
        possible = [one for one in known if not any(map(is_never, one))]
        return joined(possible, {}, self._expressions)

    @staticmethod
    def _productive(group: Group) -> Group:
        """Return the productions without variables that derive no text, and without the productions that use these."""

        def needs(one: Production) -> set[int]:
            return {symbol for symbol in one if isinstance(symbol, int) and symbol in group}

        done, whole = reached(group, needs)
        return {
            variable: [one for number, one in enumerate(productions) if (variable, number) in whole]
            for variable, productions in group.items()
            if variable in done
        }
