"""Makes a lowered grammar smaller without changing it, and finds references that go in a circle."""

from __future__ import annotations

from dataclasses import replace

from guideway.errors import InvalidConstraint
from guideway.grammar.nodes import Alternative, Array, Grammar, Leaf, Node, Object, Sequence
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
        for part in _parts(grammar.nodes[number]):
            if part not in numbers:
                numbers[part] = len(order)
                order.append(part)
    made = Grammar(places=[grammar.places[number] for number in order])
    made.nodes = [_renumbered(grammar.nodes[number], numbers) for number in order]
    return made


def _parts(node: Node | None) -> tuple[int, ...]:
    if isinstance(node, (Sequence, Alternative)):
        return node.parts
    if isinstance(node, Array):
        return node.prefix if node.rest is None else (*node.prefix, node.rest)
    if isinstance(node, Object):
        return tuple(entry.value for entry in (*node.properties, *node.open))
    return ()


def _renumbered(node: Node | None, numbers: dict[int, int]) -> Node | None:
    if isinstance(node, (Sequence, Alternative)):
        return replace(node, parts=tuple(numbers[part] for part in node.parts))
    if isinstance(node, Array):
        rest = None if node.rest is None else numbers[node.rest]
        return replace(node, prefix=tuple(numbers[part] for part in node.prefix), rest=rest)
    if isinstance(node, Object):
        return replace(
            node,
            properties=tuple(replace(entry, value=numbers[entry.value]) for entry in node.properties),
            open=tuple(replace(entry, value=numbers[entry.value]) for entry in node.open),
        )
    return node
