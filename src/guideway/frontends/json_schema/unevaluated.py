"""Computes which keys and items a schema evaluates.

The rest is subject to `unevaluatedProperties` and `unevaluatedItems`.
"""

from __future__ import annotations

from dataclasses import dataclass

from guideway.frontends.json_schema.assertions import (
    ANYTHING,
    ARRAY,
    NOTHING,
    OBJECT,
    ArrayAssertions,
    Conjunction,
    Demand,
    ObjectAssertions,
    PropertyRules,
    TypeAssertions,
    merge,
)

__all__ = ["NOTHING_EVALUATED", "Evaluated", "assert_unevaluated", "evaluated_by", "violate_unevaluated"]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Evaluated keys by name and pattern (or all); evaluated items by count (or all) and by `contains` (literals)."""

    names: frozenset[str] = frozenset()
    patterns: tuple[tuple[str, str], ...] = ()
    all_keys: bool = False
    items: int = 0
    all_items: bool = False
    contains: tuple[int, ...] = ()

    def __or__(self, other: Evaluated) -> Evaluated:
        if other is NOTHING_EVALUATED or other is self:
            return self
        return Evaluated(
            self.names | other.names,
            tuple(dict.fromkeys(self.patterns + other.patterns)),
            self.all_keys or other.all_keys,
            max(self.items, other.items),
            self.all_items or other.all_items,
            tuple(dict.fromkeys(self.contains + other.contains)),
        )


NOTHING_EVALUATED = Evaluated()


def evaluated_by(found: dict[str, object], old_items: bool, contains: int | None) -> Evaluated:
    """What the keywords of one schema evaluate, without its in-place applicators.

    Args:
        found: The keywords of the schema.
        old_items: Whether `items` may be a list.
        contains: The literal of `contains` if it evaluates items.
    """
    names, patterns = found.get("properties"), found.get("patternProperties")
    prefix, items = found.get("prefixItems"), found.get("items")
    if old_items and isinstance(items, list):
        prefix, items = items, found.get("additionalItems")
    return Evaluated(
        frozenset(names) if isinstance(names, dict) else frozenset(),
        tuple((pattern, "") for pattern in patterns) if isinstance(patterns, dict) else (),
        "additionalProperties" in found or "unevaluatedProperties" in found,
        len(prefix) if isinstance(prefix, list) else 0,
        items is not None or "unevaluatedItems" in found,
        () if contains is None else (contains,),
    )


def assert_unevaluated(
    assertions: TypeAssertions, seen: Evaluated, keys: Conjunction | None, items: Conjunction | None
) -> TypeAssertions | None:
    """Assert that unevaluated entries meet `keys` and unevaluated items meet `items`. None means no assertion."""
    made = TypeAssertions()
    if keys is not None and not seen.all_keys:
        patterns = tuple((pattern, at, ANYTHING) for pattern, at in seen.patterns)
        made.object = ObjectAssertions((PropertyRules(dict.fromkeys(sorted(seen.names), ANYTHING), patterns, keys),))
    if items is not None and not seen.all_items:
        maximum = seen.items if items is NOTHING or 1 in items else None
        made.array = ArrayAssertions((ANYTHING,) * seen.items, items, maximum=maximum)
    return merge(assertions, made)


def violate_unevaluated(
    assertions: TypeAssertions, seen: Evaluated, keys: Conjunction | None, items: Conjunction | None
) -> list[TypeAssertions]:
    """Assert that some unevaluated entry meets `keys`, or some unevaluated item meets `items`. None means no option."""
    made: list[TypeAssertions | None] = []
    if keys is not None and not seen.all_keys:
        demand = Demand(keys, seen.names, (), seen.patterns)
        made.append(merge(assertions, TypeAssertions(OBJECT, object=ObjectAssertions(demands=(demand,)))))
    if items is not None and not seen.all_items:
        part = ArrayAssertions(contains=((seen.items, items, 1, None),))
        made.append(merge(assertions, TypeAssertions(ARRAY, array=part)))
    return [one for one in made if one is not None]
