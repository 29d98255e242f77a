"""Empty texts taken out: afterwards every variable stands for its texts but the empty one."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from guideway.grammar.regular import Regular

from .expressions import Expressions
from .productions import Production, Productions, Symbol

__all__ = ["nullable_variables", "without_empty"]

_AT_ONCE = 2  # parts that may be missing and are written out in every combination


def nullable_variables(
    group: dict[int, list[Production]], outside: Callable[[int], bool], expressions: Expressions, solid: set[int]
) -> set[int]:
    """The variables of a group that derive the empty text; `outside` says it of all others; `solid`: those that do not,
    whatever their productions."""
    users: dict[int, list[tuple[int, int]]] = {}  # by variable: the productions that it stands in
    waits: dict[tuple[int, int], int] = {}  # by production: variables of the group that must still be found
    found: set[int] = set()
    todo: list[int] = []

    def add(variable: int) -> None:
        if variable not in found and variable not in solid:
            found.add(variable)
            todo.append(variable)

    def is_empty(symbol: Symbol) -> bool:
        return (
            outside(symbol) if isinstance(symbol, int) else isinstance(symbol, Regular) and expressions.nullable(symbol)
        )

    for variable, productions in group.items():
        for number, one in enumerate(productions):
            inner = {symbol for symbol in one if isinstance(symbol, int) and symbol in group}
            if all((isinstance(symbol, int) and symbol in inner) or is_empty(symbol) for symbol in one):
                waits[variable, number] = len(inner)
                for symbol in inner:
                    users.setdefault(symbol, []).append((variable, number))
                if not inner:
                    add(variable)
    while todo:
        for variable, number in users.get(todo.pop(), ()):
            waits[variable, number] -= 1
            if waits[variable, number] == 0:
                add(variable)
    return found


def without_empty(
    group: dict[int, list[Production]], nullable: Callable[[Symbol], bool], made: Productions, expressions: Expressions
) -> dict[int, list[Production]]:
    """The productions of the same texts but the empty one. Parts that many combinations share get variables."""
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
