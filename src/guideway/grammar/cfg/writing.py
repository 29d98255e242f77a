"""Writes productions as nodes of a grammar.

Productions of a variable that differ only in a first expression become one. Common first symbols are factored out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from guideway.grammar.cfg.expressions import Expressions
from guideway.grammar.cfg.productions import Opaque, Production, Symbol
from guideway.grammar.nodes import Alternative, Grammar, Leaf, Node, Sequence, renumbered
from guideway.grammar.regular import EMPTY, Regular

__all__ = ["Writer"]


class Writer:
    """Writes the productions of the variables that are reachable from a root as nodes of a grammar."""

    def __init__(
        self, productions: dict[int, list[Production]], expressions: Expressions, place: Callable[[int], str | None]
    ) -> None:
        self._productions, self._expressions, self._place = productions, expressions, place
        self._grammar = Grammar()
        self._variables: dict[int, int] = {}
        self._nodes: dict[Hashable, int] = {}  # the nodes of expressions and embedded grammars
        self._todo: list[tuple[int, list[Production], str | None]] = []

    def leaf(self, expression: Regular) -> Grammar:
        """Return a grammar of one leaf."""
        self._grammar.root = self._grammar.add(Leaf(expression))
        return self._grammar

    def write(self, root: int, nullable: bool) -> Grammar:
        """Return the grammar of a variable. With `nullable`, it also allows the empty text."""
        top = self._variable(root)
        while self._todo:
            number, productions, place = self._todo.pop()
            self._define(number, self._together(productions), place)
        if nullable:
            top = self._grammar.add(Alternative((top, self._grammar.add(Leaf(EMPTY)))))
        self._grammar.root = top
        return self._grammar

    def _variable(self, variable: int) -> int:
        if variable not in self._variables:
            place = self._place(variable)
            self._variables[variable] = self._later(self._productions[variable], place)
        return self._variables[variable]

    def _later(self, productions: list[Production], place: str | None) -> int:
        number = self._grammar.reserve(place)
        self._todo.append((number, productions, place))
        return number

    def _together(self, productions: list[Production]) -> list[Production]:
        """Merge productions that differ only in their first symbol, if that is an expression."""
        groups: dict[Hashable, list[Production]] = {}
        for one in productions:
            key = self._expressions.key(one[1:] if isinstance(one[0], Regular) else one)
            groups.setdefault((isinstance(one[0], Regular), key), []).append(one)
        made: list[Production] = []
        for found in groups.values():
            heads = [one[0] for one in found if isinstance(one[0], Regular)]
            if len(heads) > 1:
                made.append((self._expressions.either(heads), *found[0][1:]))
            else:
                made += found
        return made

    def _define(self, number: int, productions: list[Production], place: str | None) -> None:
        groups: dict[Hashable, list[Production]] = {}
        for one in productions:
            groups.setdefault(self._expressions.key(one[:1]), []).append(one)
        options: list[Production | tuple[Symbol, list[Production]]] = []
        for found in groups.values():
            longer = [one[1:] for one in found if len(one) > 1]
            if len(longer) < 2:
                options += found
                continue
            options += [one for one in found if len(one) == 1][:1]
            options.append((found[0][0], longer))
        made: list[Node] = [Sequence(self._parts(option, place)) for option in options]
        if len(made) == 1:
            self._grammar.define(number, made[0])
            return
        nodes = tuple(
            one.parts[0] if isinstance(one, Sequence) and len(one.parts) == 1 else self._grammar.add(one, place)
            for one in made
        )
        self._grammar.define(number, Alternative(nodes))

    def _parts(self, option: Production | tuple[Symbol, list[Production]], place: str | None) -> tuple[int, ...]:
        if len(option) == 2 and isinstance(option[1], list):
            return self._node(option[0]), self._later(option[1], place)
        return tuple(self._node(symbol) for symbol in option)

    def _node(self, symbol: Symbol) -> int:
        if isinstance(symbol, int):
            return self._variable(symbol)
        key = self._expressions.key([symbol])
        if key not in self._nodes:
            self._nodes[key] = self._whole(symbol) if isinstance(symbol, Opaque) else self._grammar.add(Leaf(symbol))
        return self._nodes[key]

    def _whole(self, symbol: Opaque) -> int:
        by, inner = len(self._grammar.nodes), symbol.grammar
        numbers = range(by, by + len(inner.nodes))
        self._grammar.nodes += [None if one is None else renumbered(one, numbers) for one in inner.nodes]
        self._grammar.places += inner.places
        return inner.root + by
