"""Strongly connected components, by Tarjan's algorithm (1972) without recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from guideway.background import checkpoint

__all__ = ["strongly_connected_components"]


def strongly_connected_components(starts: Iterable[int], edges: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """Return the strongly connected components that are reachable from `starts`.

    A component follows all components that it has edges to. `edges` returns the targets of the edges of a node.
    """
    found: list[list[int]] = []
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for start in starts:
        if start in index:
            continue
        path: list[tuple[int, Iterator[int]]] = []

        def enter(node: int, path: list[tuple[int, Iterator[int]]] = path) -> None:
            index[node] = low[node] = len(index)
            stack.append(node)
            on_stack.add(node)
            path.append((node, iter(edges(node))))

        enter(start)
        while path:
            checkpoint()
            node, left = path[-1]
            below = next(left, None)
            if below is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node) if stack[-1] != node else len(stack) - 1
                    found.append(stack[at:])
                    on_stack.difference_update(found[-1])
                    del stack[at:]
            elif below not in index:
                enter(below)
            elif below in on_stack:
                low[node] = min(low[node], index[below])
    return found
