"""Replaces variables by expressions if their strongly connected component is right linear, and therefore regular."""

from __future__ import annotations

from collections.abc import Hashable

from guideway.grammar.cfg.expressions import Expressions
from guideway.grammar.cfg.productions import Production, Symbol
from guideway.grammar.cfg.scc import strongly_connected_components
from guideway.grammar.regular import Regular, Repeat

__all__ = ["fold"]

Group = dict[int, list[Production]]

_MAX_EQUATIONS = 8  # maximum number of variables of a solved component, because larger components give long expressions


def fold(group: Group, expressions: Expressions) -> tuple[dict[int, Regular], Group]:
    """Return the expressions of the variables that are solved, and the productions of the other variables.

    The variables of a strongly connected component are solved, which means expressed without variables, if the
    component is right linear and has at most `_MAX_EQUATIONS` variables. In the returned productions, solved variables
    are replaced by their expressions.
    """

    def callees(variable: int) -> list[int]:
        return [symbol for one in group[variable] for symbol in one if isinstance(symbol, int) and symbol in group]

    solved: dict[int, Regular] = {}
    left: Group = {}
    for component in strongly_connected_components(group, callees):
        put = {variable: joined(group[variable], solved, expressions) for variable in component}
        answer = _solved(put, expressions)
        if answer is None:
            left |= put
        else:
            solved |= answer
    return solved, left


def joined(productions: list[Production], known: dict[int, Regular], expressions: Expressions) -> list[Production]:
    """Return productions with variables of `known` replaced by their expressions, and adjacent expressions joined.

    Productions that are then equal are returned once.
    """
    made: dict[Hashable, Production] = {}
    for production in productions:
        symbols = [known.get(symbol, symbol) if isinstance(symbol, int) else symbol for symbol in production]
        one: list[Symbol] = []
        run: list[Regular] = []
        for symbol in [*symbols, None]:
            if isinstance(symbol, Regular):
                run.append(symbol)
                continue
            if run:
                one.append(expressions.cat(run))
                run = []
            if symbol is not None:
                one.append(symbol)
        made[expressions.key(one)] = tuple(one)
    return list(made.values())


def _solved(component: Group, expressions: Expressions) -> dict[int, Regular] | None:
    """Return an expression for each variable of a right-linear strongly connected component, by Arden's rule.

    None: the strongly connected component is not right linear, or has more than `_MAX_EQUATIONS` variables.
    """
    if len(component) > _MAX_EQUATIONS:
        return None
    steps: dict[int, dict[int, list[Regular]]] = {variable: {} for variable in component}
    ends: dict[int, list[Regular]] = {variable: [] for variable in component}
    for variable, productions in component.items():
        for one in productions:
            *text, last = one
            if any(not isinstance(symbol, Regular) for symbol in text):
                return None
            if isinstance(last, Regular):
                ends[variable].append(expressions.cat([*text, last]))  # type: ignore[list-item]  # checked above
            elif isinstance(last, int) and last in component and text:
                steps[variable].setdefault(last, []).append(expressions.cat(text))  # type: ignore[arg-type]  # as above
            else:
                return None
    for variable in component:
        again = steps[variable].pop(variable, None)
        if again is not None:
            loop = Repeat(expressions.either(again), 0, None)
            after = steps[variable]
            steps[variable] = {to: [expressions.cat([loop, expressions.either(texts)])] for to, texts in after.items()}
            ends[variable] = [expressions.cat([loop, expressions.either(ends[variable])])] if ends[variable] else []
        for other in component:
            way = steps[other].pop(variable, None) if other != variable else None
            if way is None:
                continue
            start = expressions.either(way)
            for to, texts in steps[variable].items():
                steps[other].setdefault(to, []).append(expressions.cat([start, expressions.either(texts)]))
            if ends[variable]:
                ends[other].append(expressions.cat([start, expressions.either(ends[variable])]))
    return {variable: expressions.either(ends[variable]) for variable in component}
