"""Eliminates left recursion by the left-corner transform.

Rosenkrantz and Lewis, "Deterministic left corner parsing" (1970), restricted to the left-recursive strongly connected
components. No variable may derive the empty text. A text of a variable A begins with a production of the component of A
whose first symbol is outside the component. A new variable derives the rest, from there up to A. New variables are
right recursive.
"""

from __future__ import annotations

from guideway.background import checkpoint
from guideway.grammar.cfg.productions import Production, Productions
from guideway.grammar.cfg.scc import strongly_connected_components

__all__ = ["without_left_recursion"]

Group = dict[int, list[Production]]


def without_left_recursion(group: Group, wanted: set[int], made: Productions) -> Group:
    """Return productions without left recursion, for the variables of `wanted` and all that they refer to.

    Args:
        group: The productions, without empty ones.
        wanted: The variables that other components refer to.
        made: Supplies new variables, and counts the productions and the work.
    """

    def corners(variable: int) -> list[int]:
        return [one[0] for one in group[variable] if isinstance(one[0], int) and one[0] in group]

    component_of: dict[int, int] = {}  # variable -> index of its component, for left-recursive variables
    found = strongly_connected_components(group, corners)
    for number, component in enumerate(found):
        if len(component) > 1 or component[0] in corners(component[0]):
            component_of |= dict.fromkeys(component, number)
    if not component_of:
        return group
    needed = set(wanted)
    for variable, productions in group.items():
        for one in productions:
            inside = (
                isinstance(one[0], int)
                and variable in component_of
                and component_of.get(one[0]) == component_of[variable]
            )
            needed.update(symbol for symbol in one[1 if inside else 0 :] if isinstance(symbol, int))
    result = {variable: productions for variable, productions in group.items() if variable not in component_of}
    for component in found:
        if component[0] in component_of:
            _Component(component, group, made).turn([variable for variable in component if variable in needed], result)
    return result


class _Component:
    """A left-recursive component, as a graph: from each variable to the variables whose productions begin with it."""

    def __init__(self, component: list[int], group: Group, made: Productions) -> None:
        self._made = made
        members = set(component)
        self._bases: list[tuple[Production, int]] = []
        self._edges: dict[int, list[tuple[Production, int]]] = {variable: [] for variable in component}
        alone: dict[int, list[int]] = {variable: [] for variable in component}
        for variable in component:
            for one in group[variable]:
                corner = one[0]
                if not isinstance(corner, int) or corner not in members:
                    self._bases.append((one, variable))
                elif len(one) == 1:
                    alone[corner].append(variable)
                else:
                    self._edges[corner].append((one[1:], variable))
        # The variables that each one reaches by unit productions, and the steps of all these. Variables that reach one
        # another share both.
        self._same: dict[int, dict[int, None]] = {}
        self._steps: dict[int, list[tuple[Production, int]]] = {}
        for equal in strongly_connected_components(component, alone.__getitem__):
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
            # by variable of the component, the new variable for the rest from it up to the target
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
