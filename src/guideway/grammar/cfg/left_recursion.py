"""Eliminates left recursion by the left-corner transform.

Rosenkrantz and Lewis, "Deterministic left corner parsing" (1970), restricted to the left-recursive sets. These are the
sets of variables that reach each other in at least one step, in the graph from each variable to the first symbols of
its productions. No variable may derive the empty text. A text of a variable A begins with a production of the set of A
whose first symbol is outside the set. A new variable derives the rest, from there up to A. New variables are right
recursive.
"""

from __future__ import annotations

from guideway.background import checkpoint
from guideway.grammar.cfg.productions import Production, Productions
from guideway.grammar.cfg.scc import strongly_connected_components

__all__ = ["without_left_recursion"]

Group = dict[int, list[Production]]


def without_left_recursion(group: Group, wanted: set[int], made: Productions) -> Group:
    """Return equivalent productions without left recursion.

    Left-recursive variables to which nothing refers any more have no productions in the result.

    Args:
        group: The productions of a strongly connected component of the grammar, and of the variables that were added
        for it. No production is empty.
        wanted: The variables of `group` that must keep productions: the start variable, and those to which the rest of
            the grammar refers.
        made: Supplies new variables, and counts the productions and the work.
    """

    def corners(variable: int) -> list[int]:
        return [one[0] for one in group[variable] if isinstance(one[0], int) and one[0] in group]

    set_of: dict[int, int] = {}  # left-recursive variable -> index of its left-recursive set
    found = strongly_connected_components(group, corners)
    for number, members in enumerate(found):
        if len(members) > 1 or members[0] in corners(members[0]):
            set_of |= dict.fromkeys(members, number)
    if not set_of:
        return group
    needed = set(wanted)
    for variable, productions in group.items():
        for one in productions:
            inside = isinstance(one[0], int) and variable in set_of and set_of.get(one[0]) == set_of[variable]
            needed.update(symbol for symbol in one[1 if inside else 0 :] if isinstance(symbol, int))
    result = {variable: productions for variable, productions in group.items() if variable not in set_of}
    for members in found:
        if members[0] in set_of:
            _LeftRecursiveSet(members, group, made).turn(
                [variable for variable in members if variable in needed], result
            )
    return result


class _LeftRecursiveSet:
    """A left-recursive set, as a graph: from each variable to the variables whose productions begin with it."""

    def __init__(self, variables: list[int], group: Group, made: Productions) -> None:
        self._made = made
        members = set(variables)
        self._bases: list[tuple[Production, int]] = []
        self._edges: dict[int, list[tuple[Production, int]]] = {variable: [] for variable in variables}
        alone: dict[int, list[int]] = {variable: [] for variable in variables}
        for variable in variables:
            for one in group[variable]:
                corner = one[0]
                if not isinstance(corner, int) or corner not in members:
                    self._bases.append((one, variable))
                elif len(one) == 1:
                    alone[corner].append(variable)
                else:
                    self._edges[corner].append((one[1:], variable))
        # `_same`: for each variable, itself and the variables that derive it by unit productions only. `_steps`: the
        # edges from these. Variables that derive one another share both.
        self._same: dict[int, dict[int, None]] = {}
        self._steps: dict[int, list[tuple[Production, int]]] = {}
        for equal in strongly_connected_components(variables, alone.__getitem__):
            reached = dict.fromkeys(equal)
            for variable in equal:
                for after in alone[variable]:
                    if after not in reached:
                        made.work(len(self._same[after]))
                        reached |= self._same[after]
            steps = [step for same in reached for step in self._edges[same]]
            made.work(len(reached) + len(steps))
            for variable in equal:
                self._same[variable], self._steps[variable] = reached, steps

    def turn(self, wanted: list[int], result: Group) -> None:
        for target in wanted:
            # by variable of the set, the new variable for the rest from it up to the target
            rest: dict[int, int] = {}
            todo: list[int] = []

            def onwards(
                start: Production,
                corner: int,
                target: int = target,
                rest: dict[int, int] = rest,
                todo: list[int] = todo,
            ) -> list[Production]:
                if corner not in rest:
                    rest[corner] = self._made.variable(self._made.rule[target])
                    todo.append(corner)
                whole = [start] if target in self._same[corner] else []
                return [*whole, (*start, rest[corner])]

            result[target] = [one for start, corner in self._bases for one in onwards(start, corner)]
            self._made.count(result[target])
            while todo:
                checkpoint()
                corner = todo.pop()
                result[rest[corner]] = [one for text, above in self._steps[corner] for one in onwards(text, above)]
                self._made.count(result[rest[corner]])
