"""Makes a lowered grammar smaller without changing it, and finds references that go in a circle."""

from __future__ import annotations

from guideway.errors import InvalidConstraint
from guideway.grammar.nodes import Alternative, Grammar, Leaf, Node, children, renumbered
from guideway.grammar.regular import NEVER, Regular, either

__all__ = ["tidied"]


def tidied(grammar: Grammar) -> Grammar:
    """Alternatives of leaves become one leaf; what the root does not reach is left out."""
    _fold_alternatives(grammar)
    return _reachable(grammar)


def _fold_alternatives(grammar: Grammar) -> None:
    done: set[int] = set()
    for start in range(len(grammar.nodes)):
        path: list[int] = [start]
        open_nodes: set[int] = set()
        while path:
            number = path[-1]
            node = grammar.nodes[number]
            if number in done or not isinstance(node, Alternative):
                path.pop()
                continue
            open_nodes.add(number)
            waiting = [part for part in node.parts if part not in done and _is_alternative(grammar, part)]
            if waiting:
                if any(part in open_nodes for part in waiting):
                    place = grammar.places[number]
                    raise InvalidConstraint(f"at {place!r}: the references lead back here without any text", place)
                path += waiting
                continue
            grammar.nodes[number] = _folded(grammar, node)
            done.add(number)
            open_nodes.discard(number)
            path.pop()


def _is_alternative(grammar: Grammar, number: int) -> bool:
    return isinstance(grammar.nodes[number], Alternative)


def _folded(grammar: Grammar, node: Alternative) -> Node:
    texts: list[Regular] = []
    others: list[int] = []
    for part in node.parts:
        inner = grammar.nodes[part]
        parts = inner.parts if isinstance(inner, Alternative) else (part,)
        for number in parts:
            found = grammar.nodes[number]
            if isinstance(found, Leaf):
                texts += [found.text] if found.text is not NEVER else []
            elif number not in others:
                others.append(number)
    texts = list({id(text): text for text in texts}.values())
    if not others:
        return Leaf(either(texts))
    leaf = [grammar.add(Leaf(either(texts)), grammar.places[node.parts[0]])] if texts else []
    return Alternative((*leaf, *others))


def _reachable(grammar: Grammar) -> Grammar:
    numbers = {grammar.root: 0}
    order = [grammar.root]
    for number in order:
        node = grammar.nodes[number]
        for part in children(node) if node is not None else ():
            if part not in numbers:
                numbers[part] = len(order)
                order.append(part)
    made = Grammar(places=[grammar.places[number] for number in order])
    for number in order:
        node = grammar.nodes[number]
        made.nodes.append(None if node is None else renumbered(node, numbers))
    return made
