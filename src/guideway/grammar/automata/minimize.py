"""Minimal DFAs: without dead states, and with equivalent states merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from guideway.background import checkpoint
from guideway.grammar.regular import NEVER, Chars, Dfa, Ranges, Regular, chars
from guideway.grammar.work import spend

__all__ = ["alive", "minimal_automaton"]


def alive(after: Sequence[Iterable[int]], accepting: Sequence[bool]) -> set[int]:
    """Return the states from which an accepting state is reachable.

    Args:
        after: For each state, its next states, each once.
        accepting: For each state, whether it is accepting.
    """
    into: list[list[int]] = [[] for _ in after]
    for state, targets in enumerate(after):
        for target in targets:
            into[target].append(state)
    todo = [state for state, ends in enumerate(accepting) if ends]
    known = set(todo)
    for state in todo:  # the list grows during iteration
        fresh = [before for before in into[state] if before not in known]
        known.update(fresh)
        todo += fresh
    return known


def minimal_automaton(rows: list[dict[int, list[Ranges]]], accepting: list[bool]) -> Regular:
    """Return the minimal automaton of a DFA: without dead states, and with equivalent states merged.

    It is `NEVER` if no text is accepted.

    Args:
        rows: For each state, its next states, each with the character sets of the transitions. State 0 is initial. The
            character sets must be equal or disjoint.
        accepting: For each state, whether it is accepting.
    """
    known = alive(rows, accepting)
    if 0 not in known:
        return NEVER
    steps = {n: [(tuple(sorted(ranges)), after) for after, ranges in rows[n].items() if after in known] for n in known}
    spend(10 * (len(steps) + sum(map(len, steps.values()))))
    block = _equivalent(steps, accepting)
    one_of = {block[state]: state for state in known}
    order, numbers = [block[0]], {block[0]: 0}
    states = []
    shared: dict[Ranges, Chars] = {}
    for name in order:  # the list grows during iteration
        edges = []
        for after, ranges in sorted(_by_block(steps[one_of[name]], block), key=lambda edge: edge[1]):
            if after not in numbers:
                numbers[after] = len(order)
                order.append(after)
            merged = chars(*(pair for part in ranges for pair in part)).ranges
            edges.append((shared.setdefault(merged, Chars(merged)), numbers[after]))
        states.append((accepting[one_of[name]], tuple(edges)))
    return Dfa(tuple(states))


def _equivalent(steps: dict[int, list[tuple[tuple[Ranges, ...], int]]], accepting: list[bool]) -> dict[int, int]:
    """Return the block of each state in the coarsest partition into equivalent states.

    This is Hopcroft's partition refinement (1971) for automata with missing transitions (Valmari and Lehtinen 2008).
    Each initial block is a splitter; if a block is split, its smaller half is a new splitter. Equal character sets are
    one symbol, because the sets of all states are equal or disjoint.
    """
    sources: dict[int, list[tuple[Ranges, int]]] = {state: [] for state in steps}
    for state, edges in steps.items():
        for parts, after in edges:
            sources[after] += [(one, state) for one in parts]
    block = {state: int(accepting[state]) for state in steps}
    members: list[set[int]] = [set(), set()]
    for state, number in block.items():
        members[number].add(state)
    splitters = [0, 1]
    while splitters:
        checkpoint()
        before: dict[Ranges, list[int]] = {}
        for state in members[splitters.pop()]:
            for symbol, source in sources[state]:
                before.setdefault(symbol, []).append(source)
        for states in before.values():
            touched: dict[int, set[int]] = {}
            for state in states:
                touched.setdefault(block[state], set()).add(state)
            for number, moved in touched.items():
                rest = len(members[number]) - len(moved)
                if rest == 0:
                    continue
                smaller = moved if len(moved) <= rest else members[number] - moved
                members[number] -= smaller
                for state in smaller:
                    block[state] = len(members)
                splitters.append(len(members))
                members.append(smaller)
    return block


def _by_block(
    steps: Iterable[tuple[tuple[Ranges, ...], int]], block: dict[int, int]
) -> tuple[tuple[int, tuple[Ranges, ...]], ...]:
    found: dict[int, list[Ranges]] = {}
    for ranges, after in steps:
        found.setdefault(block[after], []).extend(ranges)
    return tuple(sorted((after, tuple(sorted(ranges))) for after, ranges in found.items()))
