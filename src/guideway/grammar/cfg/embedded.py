"""Removes the empty text from an embedded grammar, so that rules can treat it as a text that is not empty."""

from __future__ import annotations

from dataclasses import replace

from guideway.grammar.cfg.expressions import Expressions, is_never
from guideway.grammar.cfg.fixpoint import reached
from guideway.grammar.nodes import Alternative, Grammar, Leaf, Node, Sequence
from guideway.grammar.regular import EMPTY, NEVER

__all__ = ["without_empty_text"]


def without_empty_text(grammar: Grammar) -> Grammar | None:
    """Return a grammar of the same texts except the empty text. None: the grammar does not derive the empty text."""
    root = grammar.nodes[grammar.root]
    if not isinstance(root, (Leaf, Sequence, Alternative)):
        return None
    expressions = Expressions()
    nullable = _nullable_nodes(grammar, expressions)
    return _Remover(grammar, nullable, expressions).run() if grammar.root in nullable else None


def _nullable_nodes(grammar: Grammar, expressions: Expressions) -> set[int]:
    """Return the nodes that derive the empty text, among those that the root reaches through sequences and alternatives."""
    group: dict[int, list[tuple[int, ...]]] = {}
    todo = [grammar.root]
    while todo:
        number = todo.pop()
        if number in group:
            continue
        match grammar.nodes[number]:
            case Sequence(parts):
                group[number] = [parts]
                todo += parts
            case Alternative(parts):
                group[number] = [(part,) for part in parts]
                todo += parts
            case Leaf(text):
                group[number] = [()] if expressions.nullable(text) else []
            case _:
                group[number] = []
    return reached(group, set)[0]


class _Remover:
    """Adds, for nullable nodes, nodes with the same texts except the empty text."""

    def __init__(self, grammar: Grammar, nullable: set[int], expressions: Expressions) -> None:
        self._grammar = replace(grammar, nodes=grammar.nodes.copy(), places=grammar.places.copy())
        self._nullable, self._expressions = nullable, expressions
        self._made: dict[int, int] = {}
        self._todo: list[int] = []

    def run(self) -> Grammar:
        self._grammar.root = self._some(self._grammar.root)
        while self._todo:
            number = self._todo.pop()
            self._grammar.define(self._made[number], self._defined(number))
        return self._grammar

    def _some(self, number: int) -> int:
        """Return the node without the empty text. It is defined later."""
        if number not in self._nullable:
            return number
        if number not in self._made:
            self._made[number] = self._grammar.reserve(self._grammar.places[number])
            self._todo.append(number)
        return self._made[number]

    def _defined(self, number: int) -> Node:
        match self._grammar.nodes[number]:
            case Leaf(text):
                return Leaf(self._expressions.some(text))
            case Alternative(parts):
                return Alternative(tuple(self._some(part) for part in parts if not self._is_empty(part)))
            case Sequence(parts):  # all parts are nullable: one alternative for each that can be the first with a text
                rest = self._grammar.add(Leaf(EMPTY))
                options: list[int] = []
                for part in reversed(parts):
                    if not self._is_empty(part):
                        options.append(self._grammar.add(Sequence((self._some(part), rest))))
                        rest = self._grammar.add(Sequence((part, rest)))
                return Alternative(tuple(options)) if options else Leaf(NEVER)
        raise AssertionError(number)

    def _is_empty(self, number: int) -> bool:
        """Return whether the node is a leaf of the empty text only."""
        node = self._grammar.nodes[number]
        return isinstance(node, Leaf) and number in self._nullable and is_never(self._expressions.some(node.text))
