"""Epsilon elimination: after it, each variable derives the same texts as before except the empty text."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from guideway.grammar.cfg.expressions import Expressions
from guideway.grammar.cfg.fixpoint import reached
from guideway.grammar.cfg.productions import Production, Productions, Symbol
from guideway.grammar.regular import Regular

__all__ = ["nullable_variables", "without_empty"]

_AT_ONCE = 2  # maximum number of nullable symbols of a production whose combinations are written as productions


def nullable_variables(
    group: dict[int, list[Production]], outside: Callable[[int], bool], expressions: Expressions, solid: set[int]
) -> set[int]:
    """Return the variables of a strongly connected component that derive the empty text.

    Args:
        group: The productions of the strongly connected component.
        outside: Returns whether a variable outside the component derives the empty text.
        expressions: The properties of expressions.
        solid: Variables that do not derive the empty text, whatever their productions are.
    """

    def is_empty(symbol: Symbol) -> bool:
        return (
            outside(symbol) if isinstance(symbol, int) else isinstance(symbol, Regular) and expressions.nullable(symbol)
        )

    def needs(one: Production) -> set[int] | None:
        inner = {symbol for symbol in one if isinstance(symbol, int) and symbol in group}
        possible = all((isinstance(symbol, int) and symbol in inner) or is_empty(symbol) for symbol in one)
        return inner if possible else None

    return reached(group, needs, solid)[0]


def without_empty(
    group: dict[int, list[Production]], nullable: Callable[[Symbol], bool], made: Productions, expressions: Expressions
) -> dict[int, list[Production]]:
    """Return productions of the variables that derive the same texts except the empty text.

    If a production has more than `_AT_ONCE` nullable symbols, its last symbols are replaced by a new variable that
    derives them. The result has the productions of the new variables, too.

    Args:
        group: The productions of a strongly connected component.
        nullable: Returns whether a symbol derives the empty text.
        made: Supplies new variables, and limits the size of all productions.
        expressions: The properties of expressions.
    """
    result: dict[int, list[Production]] = {}

    def combinations(parts: list[tuple[Symbol, bool]]) -> list[Production]:
        found: list[list[Symbol]] = [[]]
        for symbol, optional in parts:
            longer = [one.copy() for one in found] if optional else found
            for one in longer:
                one.append(symbol)
            found = longer + found if optional else longer
        return [tuple(one) for one in found if one]

    for variable, productions in group.items():
        options: dict[Hashable, Production] = {}
        for production in productions:
            parts: list[tuple[Symbol, bool]] = []
            for symbol in production:
                optional = nullable(symbol)
                if optional and isinstance(symbol, Regular):
                    symbol = expressions.some(symbol)
                parts.append((symbol, optional))
            while sum(optional for _, optional in parts) > _AT_ONCE:
                at = [n for n, (_, optional) in enumerate(parts) if optional][-_AT_ONCE]
                rest = made.variable(made.rule[variable])
                result[rest] = combinations(parts[at:])
                made.count(result[rest])
                parts[at:] = [(rest, all(optional for _, optional in parts[at:]))]
            options |= {expressions.key(one): one for one in combinations(parts)}
        result[variable] = [one for key, one in options.items() if key != (variable,)]
        made.count(result[variable])
    return result
