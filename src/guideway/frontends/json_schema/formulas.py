"""Boolean formulas over multi-valued variables: conjunction, disjunction, "exactly one", and negation.

The values of a variable are classes, written as bits. For a key of an object, the classes are sets of values, and one
class means that the key is absent. A cube is a conjunction of conditions on single variables: a dict from each of
these variables to the bits of the classes that are allowed. Other variables may have any class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

from guideway.background import checkpoint
from guideway.frontends.json_schema.assertions import ObjectAssertions

__all__ = [
    "ABSENT",
    "AllOf",
    "AnyOf",
    "Cube",
    "ExactlyOne",
    "Formula",
    "Formulas",
    "Not",
    "TooComplex",
    "product",
    "structural_key",
]

MAX_SPLITS = 100_000
"""The maximum number of steps of one division by cases."""

MAX_WORK = 4 * MAX_SPLITS
"""The maximum number of steps of one division by cases, including steps for formulas that are examined but not changed.
"""

ABSENT = 1
"""The bit of the class "the key is absent"."""

Cube = dict[int, int]  # variable -> bits of the allowed classes; see the module's docstring


class TooComplex(Exception):
    """The schemas cannot be written as a formula, or the formula is too large."""


class AllOf:
    """A conjunction of a cube and of the formulas in `rest`.

    `weight` and `weight_negated` cache the results of `Formulas._weight`, here and in the other classes; -1: not known.
    `variables` caches the result of `_variables`, and `key` that of `structural_key`, here and in the other classes;
    None: not known. `size` caches the number of conditions of the cube and the sum of their bits.
    """

    __slots__ = ("cube", "key", "rest", "size", "variables", "weight", "weight_negated")

    def __init__(self, cube: Cube, rest: tuple[Formula, ...] = ()) -> None:
        self.cube = cube
        self.rest = rest
        self.key: Any = None
        self.size: tuple[int, int] | None = None
        self.variables: Set[int] | None = None if rest else cube.keys()
        self.weight = self.weight_negated = -1.0


class Not:
    """The negation of a cube: at least one of its conditions fails."""

    __slots__ = ("cube", "key", "variables", "weight", "weight_negated")

    def __init__(self, cube: Cube) -> None:
        self.cube = cube
        self.key: Any = None
        self.variables: Set[int] = cube.keys()
        self.weight = self.weight_negated = -1.0


class AnyOf:
    """A disjunction."""

    __slots__ = ("parts", "variables", "weight", "weight_negated")

    def __init__(self, parts: tuple[Formula, ...]) -> None:
        self.parts = parts
        self.variables: Set[int] | None = None
        self.weight = self.weight_negated = -1.0


class ExactlyOne:
    """Exactly one of the parts holds. If `holds` is false: none or at least two of the parts hold."""

    __slots__ = ("holds", "parts", "variables", "weight", "weight_negated")

    def __init__(self, parts: tuple[Formula, ...], holds: bool) -> None:
        self.parts = parts
        self.holds = holds
        self.variables: Set[int] | None = None
        self.weight = self.weight_negated = -1.0


Formula = bool | AllOf | Not | AnyOf | ExactlyOne


class Formulas:
    """Operations on the formulas of one set of variables.

    A variable is a key (its classes are sets of values, and "absent"), or an assertion (its classes are "fails", bit 0,
    and "holds", bit 1). Some assertions are about the value of a key: if such an assertion fails, the key is present.

    Attributes:
        work: The steps so far; about two microseconds each.
    """

    def __init__(self) -> None:
        self._full: list[int] = []  # by variable, the bits of all its classes
        self._is_key: list[bool] = []
        # variable of an assertion -> (the objects for which it holds, the objects for which it fails)
        self._parts: dict[int, tuple[ObjectAssertions, ObjectAssertions]] = {}
        # variable of an assertion about the value of a key -> (variable of the key, literal that the value must meet)
        self._value_of: dict[int, tuple[int, int]] = {}
        self._values_at: dict[int, list[int]] = {}  # variable of a key -> variables of assertions about its value
        self.work = self._splits = 0

    def _spend(self, work: int) -> None:
        self.work += work
        self._splits += work
        if self._splits > MAX_SPLITS:
            raise TooComplex

    def _skim(self, parts: Sequence[Formula]) -> None:
        """Count formulas that are examined, most of which do not change."""
        self.work += len(parts) // 8
        if self.work > MAX_WORK:
            raise TooComplex

    def _all(self, parts: Iterable[Formula]) -> Formula:
        """Return the conjunction of formulas. Their cubes are combined, and this cube simplifies the other formulas."""
        self._spend(1)
        todo: list[Formula] = []
        for part in parts:
            empty = isinstance(part, AllOf) and not part.cube and not part.rest
            if part is not True and not empty:
                todo.append(part)
        if len(todo) == 1 and isinstance(todo[0], (AllOf, bool)) and not self._values_at:
            return todo[0]
        return self._extended({}, [], {}, todo)

    def _restricted(self, one: AllOf, var: int, bits: int, rest: Iterable[Formula]) -> Formula:
        """Return the conjunction of a formula and a condition on a variable.

        Args:
            one: The formula.
            var: The variable.
            bits: The classes that both `one.cube` and the condition allow for it.
            rest: `one.rest`, already simplified by the condition.
        """
        cube, news = {**one.cube, var: bits}, Cube()
        if not self._implied(var, bits, cube, news):
            return False
        kept: list[Formula] = []
        todo: list[Formula] = []
        for part in rest:
            (todo if isinstance(part, (AllOf, bool)) else kept).append(part)
        return self._extended(cube, kept, news, todo)

    def _extended(self, cube: Cube, rest: list[Formula], news: Cube, todo: list[Formula]) -> Formula:
        """Return the conjunction of a cube and other formulas.

        Args:
            cube: The cube. It is modified.
            rest: Formulas that are already simplified by the cube, but not by `news`.
            news: The conditions of the cube by which `rest` is not simplified yet.
            todo: Formulas that are not simplified by the cube yet.
        """
        while todo or news:
            checkpoint()
            for part in todo:
                if part is False:
                    return False
                if part is True:
                    continue
                if not isinstance(part, AllOf):
                    rest.append(part)
                    continue
                rest += part.rest
                self._spend(len(part.cube) // 8)
                for var, bits in part.cube.items():
                    before = cube.get(var, self._full[var])
                    after = before & bits
                    if not after:
                        return False
                    if after != before:
                        cube[var] = news[var] = after
                        if not self._implied(var, after, cube, news):
                            return False
            todo = []
            if news and rest:
                self._skim(rest)
                kept: list[Formula] = []
                for one in rest:
                    made = self._assumed(one, news)
                    if made is False:
                        return False
                    if made is one or not isinstance(made, (AllOf, bool)):
                        kept.append(made)
                    else:
                        todo.append(made)
                rest = kept
            news = {}
        if len(rest) > 1:
            rest = list({structural_key(one): one for one in rest}.values())
        if not cube and not rest:
            return True
        if not cube and len(rest) == 1:
            return rest[0]
        return AllOf(cube, tuple(rest))

    def _implied(self, var: int, bits: int, cube: Cube, news: Cube) -> bool:
        """Add to `cube` and `news` what a condition on a variable implies. Returns False on a contradiction.

        If an assertion about the value of a key fails, the key is present. If a key is absent, no assertion about its
        value fails.
        """
        owner = self._value_of.get(var)
        if owner is not None:
            if bits == 1:
                before = cube.get(owner[0], self._full[owner[0]])
                cube[owner[0]] = news[owner[0]] = before & ~ABSENT
                return before != ABSENT
        elif bits == ABSENT:
            for one in self._values_at.get(var, ()):
                if cube.get(one) == 1:
                    return False
                cube.pop(one, None)
                news[one] = 2
        return True

    def _any(self, parts: Iterable[Formula]) -> Formula:
        self._spend(1)
        made: list[Formula] = []
        single: Cube = {}
        seen: set[Any] = set()
        for part in parts:
            if part is True:
                return True
            if part is False:
                continue
            for one in part.parts if isinstance(part, AnyOf) else (part,):
                if isinstance(one, Not) or (isinstance(one, AllOf) and len(one.cube) == 1 and not one.rest):
                    for var, bits in one.cube.items():
                        if isinstance(one, Not):
                            bits = self._full[var] & ~bits
                        single[var] = single.get(var, 0) | bits
                        if single[var] == self._full[var]:
                            return True
                    continue
                shape = structural_key(one) if isinstance(one, AllOf) and not one.rest else None
                if shape is None or shape not in seen:
                    made.append(one)
                    seen.add(shape)
        if single:
            made.append(Not({var: self._full[var] & ~bits for var, bits in single.items()}))
            if len(single) == 1:
                made[-1] = AllOf(single)
        if len(made) == 1:
            return made[0]
        return AnyOf(tuple(made)) if made else False

    def _one(self, parts: Iterable[Formula], holds: bool) -> Formula:
        """Return the formula "exactly one of the parts holds", or its negation if `holds` is false."""
        self._spend(1)
        made: list[Formula] = []
        true = 0
        seen: dict[Any, int] = {}
        never: list[Formula] = []  # parts that occur twice: if such a part holds, at least two parts hold
        parts = list(parts)
        sizes = [_size(one) for one in parts if isinstance(one, AllOf) and not one.rest]
        differ = len(set(sizes)) == len(sizes)  # True: no two cubes are equal
        for part in parts:
            if part is False:
                continue
            if part is True:
                true += 1
                continue
            cube = not differ and isinstance(part, AllOf) and not part.rest
            shape = structural_key(part) if cube else id(part)
            if shape not in seen:
                made.append(part)
            seen[shape] = seen.get(shape, 0) + 1
            if seen[shape] == 2:
                never.append(part)
        if true > 1:
            return not holds
        if never:
            made = [one for one in made if one not in never]
            inner = self._negated(self._any(made)) if true else self._one(made, True)
            whole = self._all([*map(self._negated, never), inner])
            return whole if holds else self._negated(whole)
        if true:
            some = self._any(made)
            return self._negated(some) if holds else some
        if len(made) < 2:
            only = made[0] if made else False
            return only if holds else self._negated(only)
        return ExactlyOne(tuple(made), holds)

    def _negated(self, one: Formula) -> Formula:
        self._spend(1)
        if isinstance(one, bool):
            return not one
        if isinstance(one, Not):
            return AllOf(one.cube)
        if isinstance(one, ExactlyOne):
            return ExactlyOne(one.parts, not one.holds)
        if isinstance(one, AnyOf):
            return self._all([self._negated(part) for part in one.parts])
        missed: list[Formula] = [self._negated(part) for part in one.rest]
        if len(one.cube) == 1:
            missed += (AllOf({var: self._full[var] & ~bits}) for var, bits in one.cube.items())
        elif one.cube:
            missed.append(Not(one.cube))
        return self._any(missed)

    def _assumed(self, one: Formula, given: Cube) -> Formula:
        """Return the formula, simplified under the assumption that the cube `given` holds."""
        if isinstance(one, bool) or _variables(one).isdisjoint(given):
            return one
        if isinstance(one, (AllOf, Not)):
            cube = one.cube
            self._spend(1 + min(len(cube), len(given)) // 8)
            gone = []
            for var in given if len(given) < len(cube) else cube:
                bits, assumed = cube.get(var), given.get(var)
                if bits is None or assumed is None:
                    continue
                if not bits & assumed:
                    return isinstance(one, Not)
                if not assumed & ~bits:
                    gone.append(var)
            if gone:
                cube = {var: bits for var, bits in cube.items() if var not in gone}
            if isinstance(one, Not):
                if not gone:
                    return one
                if len(cube) == 1:
                    return AllOf({var: self._full[var] & ~bits for var, bits in cube.items()})
                return Not(cube) if cube else False
            rest = self._all_assumed(one.rest, given)
            if not gone and rest is one.rest:
                return one
            return self._all([AllOf(cube), *rest]) if rest else AllOf(cube) if cube else True
        parts = self._all_assumed(one.parts, given)
        if parts is one.parts:
            return one
        return self._any(parts) if isinstance(one, AnyOf) else self._one(parts, one.holds)

    def _all_assumed(self, parts: tuple[Formula, ...], given: Cube) -> Sequence[Formula]:
        """Return the results of `_assumed` for formulas; `parts` itself if it simplifies none of them."""
        self._skim(parts)
        made: list[Formula] = []
        changed = False
        for part in parts:
            if isinstance(part, bool) or (part.variables or _variables(part)).isdisjoint(given):
                made.append(part)
                continue
            one = self._assumed(part, given)
            changed = changed or one is not part
            made.append(one)
        return made if changed else parts

    def _is_demand(self, one: Not) -> bool:
        """Return whether a negated cube can be written as one `Demand`: at least one entry violates the cube."""
        others = 0
        for var, bits in one.cube.items():
            if not self._is_key[var]:
                if var in self._value_of:
                    if bits != 2:
                        return False
                    continue
                _, fails = self._parts[var]
                others += 1
                if bits != 2 or others > 1 or len(fails.demands) != 1 or fails.demands[0].inside:
                    return False
                if fails.demands[0].outside or fails.demands[0].keys:
                    return False
            elif not bits & ABSENT:
                return False
        return True

    def _count_vars(self, one: Formula, counts: dict[int, int], masks: dict[int, set[int]]) -> None:
        self._spend(1)
        if isinstance(one, (AllOf, Not)):
            for var, bits in one.cube.items():
                counts[var] = counts.get(var, 0) + 1
                masks.setdefault(var, set()).add(bits)
        if isinstance(one, (AnyOf, ExactlyOne)):
            for part in one.parts:
                self._count_vars(part, counts, masks)
        if isinstance(one, AllOf):
            for part in one.rest:
                self._count_vars(part, counts, masks)

    def _weight(self, one: Formula, negated: bool = False) -> float:
        """Return an estimate of the number of alternatives of a formula, or of its negation.

        The estimate is stored in the formula.
        """
        if isinstance(one, bool):
            return float(one is not negated)
        known = one.weight_negated if negated else one.weight
        if known < 0:
            known = self._new_weight(one, negated)
            if negated:
                one.weight_negated = known
            else:
                one.weight = known
        return known

    def _new_weight(self, one: AllOf | Not | AnyOf | ExactlyOne, negated: bool) -> float:
        self._spend(1)
        if isinstance(one, Not):
            return 1.0 if negated else 1.3 if self._is_demand(one) else float(len(one.cube))
        if isinstance(one, AllOf):
            if negated:
                some = 1.3 if len(one.cube) < 2 or self._is_demand(Not(one.cube)) else float(len(one.cube))
                return (some if one.cube else 0.0) + sum(self._weight(part, True) for part in one.rest)
            return product(map(self._weight, one.rest))
        if isinstance(one, AnyOf):
            if negated:
                return product(self._weight(part, True) for part in one.parts)
            return sum(map(self._weight, one.parts))
        each = [(self._weight(part), self._weight(part, True)) for part in one.parts]
        none = product([no for _, no in each])
        if one.holds is not negated:
            return min(1e200, sum(min(1e200, yes * none / max(no, 1e-9)) for yes, no in each))
        return min(1e200, none + sum(yes for yes, _ in each) ** 2 / 2)


def _variables(one: AllOf | Not | AnyOf | ExactlyOne) -> Set[int]:
    """Return the variables on which a formula has a condition."""
    found = one.variables
    if found is None and not isinstance(one, Not):
        parts = one.rest if isinstance(one, AllOf) else one.parts
        found = one.variables = frozenset().union(
            one.cube if isinstance(one, AllOf) else (),
            *[_variables(part) for part in parts if not isinstance(part, bool)],
        )
    return found or frozenset()


def _size(one: AllOf) -> tuple[int, int]:
    if one.size is None:
        one.size = len(one.cube), sum(one.cube.values())
    return one.size


def structural_key(one: Formula) -> Any:
    """Return a key that equal cubes share, and another one that equal negated cubes share. Others: the object's id."""
    if isinstance(one, AllOf) and not one.rest:
        if one.key is None:
            one.key = frozenset(one.cube.items())
        return one.key
    if isinstance(one, Not):
        if one.key is None:
            one.key = (False, frozenset(one.cube.items()))
        return one.key
    return id(one)


def product(weights: Iterable[float]) -> float:
    """Return the product of the weights, at most 1e200."""
    made = 1.0
    for weight in weights:
        made *= weight
        if made > 1e200:
            made = 1e200
    return made
