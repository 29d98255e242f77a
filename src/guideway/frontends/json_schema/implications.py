"""Implications between schemas that follow from a comparison of their keywords.

The assertions of a conjunction are compared with those of a schema: types, required keys, conditions on the values of
keys and items. The answer True is reliable. False means that the comparison does not show the implication.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from guideway.frontends.json_schema.assertions import (
    ANYTHING,
    ARRAY,
    NOTHING,
    OBJECT,
    UNCONSTRAINED,
    ArrayAssertions,
    Conjunction,
    ObjectAssertions,
    PropertyRules,
    TypeAssertions,
    constant_key,
    join,
    merge,
)
from guideway.frontends.json_schema.parse import KEYWORD_NAMES, SchemaGraph

__all__ = ["Implications"]

_MAX_DEPTH = 8
_ANY_ARRAY, _ANY_OBJECT = ArrayAssertions(), ObjectAssertions()
MAX_COMPARED = 200_000
"""The maximum number of keys that one `Implications` compares. After that, no further property rules are compared."""


class Implications:
    """The implications between the schemas of one document. Answers are cached."""

    def __init__(self, graph: SchemaGraph) -> None:
        self._graph = graph
        # the answers of `implies` and `excludes`, by the literal and then by the conjunction
        self._known: dict[int, dict[Conjunction, bool]] = {}
        self._excluded: dict[int, dict[Conjunction, bool]] = {}
        # by conjunction: its even literals, and the even literals whose negations it contains
        self._split: dict[Conjunction, tuple[Conjunction, tuple[int, ...]]] = {}
        # by object assertions and key, the result of `_conditions_of`
        self._conditions: dict[ObjectAssertions, dict[str | None, Conjunction]] = {}
        self._assertions: dict[Conjunction, TypeAssertions | None] = {}
        self._same: dict[Hashable, int] = {}
        self._same_of: dict[int, int] = {}
        self._depth = 0
        self._compared = 0

    def excludes(self, conjunction: Conjunction, literal: int) -> bool:
        """Return True if it is shown that no value meets both the conjunction and the even literal."""
        known = self._excluded.setdefault(literal, {})
        found = known.get(conjunction)
        if found is None:
            positive, negated = self._signs(conjunction)
            both = positive | {literal}
            found = self._assertions_of(both) is None or any(self.implies(both, one) for one in negated)
            known[conjunction] = found
        return found

    def _signs(self, conjunction: Conjunction) -> tuple[Conjunction, tuple[int, ...]]:
        """Return the even literals of a conjunction, and the even literals whose negations it contains."""
        found = self._split.get(conjunction)
        if found is None:
            negated = tuple(one ^ 1 for one in conjunction if one & 1)
            positive = frozenset(one for one in conjunction if not one & 1) if negated else conjunction
            found = self._split[conjunction] = positive, negated
        return found

    def implies(self, conjunction: Conjunction, literal: int) -> bool:
        """Return True if it is shown that each value that meets the conjunction meets the literal."""
        if not literal or literal in conjunction or 1 in conjunction:
            return True
        if literal & 1:
            return False
        known = self._known.setdefault(literal, {})
        found = known.get(conjunction)
        if found is None:
            if self._depth >= _MAX_DEPTH:
                return False
            known[conjunction] = False  # the answer during the comparison, so that it ends for recursive schemas
            self._depth += 1
            try:
                found = known[conjunction] = self._compare(conjunction, literal)
            finally:
                self._depth -= 1
        return found

    def _compare(self, conjunction: Conjunction, literal: int) -> bool:
        same = self._canonical(literal)
        positive, _ = self._signs(conjunction)
        for one in positive:
            if one and self._canonical(one) == same:
                return True
        analysis = self._graph.analysis(self._graph.places[literal >> 1])
        if analysis.conjuncts or analysis.applicators or analysis.unevaluated is not None:
            return False
        assumed, required = self._assertions_of(positive), analysis.own
        if assumed is None:
            return True
        if assumed.types & ~required.types or required.composites is not None or required.number or required.string:
            return False
        if required.array and assumed.types & ARRAY and not self._arrays(assumed.array or _ANY_ARRAY, required.array):
            return False
        if required.object and assumed.types & OBJECT:
            return self._objects(assumed.object or _ANY_OBJECT, required.object)
        return True

    def _assertions_of(self, conjunction: Conjunction) -> TypeAssertions | None:
        """Return assertions that each value of a conjunction of even literals meets. None: there is no such value."""
        if conjunction in self._assertions:
            return self._assertions[conjunction]
        made: TypeAssertions | None = UNCONSTRAINED
        for one in conjunction:
            analysis = self._graph.analysis(self._graph.places[one >> 1])
            if made is not None and analysis.unevaluated is None and analysis.own is not UNCONSTRAINED:
                made = merge(made, analysis.own)
        self._assertions[conjunction] = made
        return made

    def _canonical(self, literal: int) -> int:
        """Return the first literal of a schema with the same keywords, resource and dynamic scope."""
        found = self._same_of.get(literal)
        if found is None:
            place = self._graph.places[literal >> 1]
            schema = place.schema
            shape: Hashable = literal
            if isinstance(schema, dict) and schema:
                keywords = {name: one for name, one in schema.items() if name in KEYWORD_NAMES}
                shape = (constant_key(keywords), id(place.resource), place.scope)
            found = self._same_of[literal] = self._same.setdefault(shape, literal)
        return found

    def _all(self, conjunction: Conjunction, required: Conjunction) -> bool:
        if required <= conjunction:
            return True
        if len(required) == 1:
            (one,) = required
            return self.implies(conjunction, one)
        return all(self.implies(conjunction, one) for one in required)

    def _arrays(self, assumed: ArrayAssertions, required: ArrayAssertions) -> bool:
        if (
            required.prefix
            or required.contains
            or required.unique
            or required.duplicates
            or required.minimum > assumed.minimum
        ):
            return False
        if required.maximum is not None and (assumed.maximum is None or assumed.maximum > required.maximum):
            return False
        return all(self._all(one, required.rest) for one in (*assumed.prefix, assumed.rest))

    def _objects(self, assumed: ObjectAssertions, required: ObjectAssertions) -> bool:
        if (
            required.forbidden
            or required.keys
            or required.demands
            or required.counted_disjunctions
            or required.minimum > assumed.minimum
        ):
            return False
        if required.maximum is not None and (assumed.maximum is None or assumed.maximum > required.maximum):
            return False
        if not required.required.keys() <= assumed.required.keys():
            return False
        return all(self._property_rules(assumed, rules) for rules in required.rule_sets)

    def _property_rules(self, assumed: ObjectAssertions, required: PropertyRules) -> bool:
        if required.patterns:
            return False
        others = required.additional or ANYTHING
        self._compared += 1 + len(required.names)
        if self._compared > MAX_COMPARED:
            return False
        known = self._conditions.setdefault(assumed, {})
        if None not in known:
            known[None] = _conditions_of(assumed, None)
        if others and not self._all(known[None], others):
            return False
        names: dict[str, Any] = {**required.names}
        if others:  # else nothing is required of other keys
            for rules in assumed.rule_sets:
                names.update(rules.names)
            self._compared += len(names)
        for name in names:
            condition = required.names.get(name, others)
            if condition and name not in assumed.forbidden:
                held = known.get(name)
                if held is None:
                    held = known[name] = _conditions_of(assumed, name)
                if not condition <= held and not self._all(held, condition):
                    return False
        return True


def _conditions_of(part: ObjectAssertions, name: str | None) -> Conjunction:
    """Return conditions on the value of the key `name`; None: of each key that no property rules name.

    Conditions that depend on `patternProperties` are left out. The result is `NOTHING` if no value is allowed.
    """
    conjunction = ANYTHING
    for rules in part.rule_sets:
        inner = None if name is None else rules.names.get(name)
        if inner is None and not rules.patterns:
            inner = rules.additional
        if inner:
            conjunction = join(conjunction, inner)
    return NOTHING if 1 in conjunction else conjunction
