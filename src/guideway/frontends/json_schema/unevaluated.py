"""Computes which keys and items a schema evaluates, in the sense of the JSON Schema specification.

`unevaluatedProperties` and `unevaluatedItems` apply to all other keys and items. Their assertions, and the negations of
these, are made here too.
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
    """The keys and items that schemas evaluate.

    Attributes:
        names: Evaluated keys.
        patterns: Patterns of evaluated keys, in the form of `Demand.outside`. The JSON Pointers are empty.
        all_keys: Whether all keys are evaluated.
        items: The number of items that are evaluated, from the first item on.
        all_items: Whether all items are evaluated.
        contains: Literals. An item that meets one of them is evaluated.
    """

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
    """Return the keys and items that the keywords of one schema evaluate, without its in-place applicators.

    Args:
        found: The keywords of the schema.
        old_items: Whether `items` may be a list, as in drafts before 2020-12.
        contains: The literal of `contains`; None: the schema has no `contains`, or it evaluates no items in this draft.
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
    """Add the assertions of `unevaluatedProperties` and `unevaluatedItems`.

    Args:
        assertions: The other assertions.
        seen: The keys and items that are evaluated.
        keys: The condition on the values of all other keys; None: no condition.
        items: The condition on all other items; None: no condition.

    Returns:
        The assertions together; None: no value meets them.
    """
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
    """Return alternatives in which an unevaluated entry meets `keys`, or an unevaluated item meets `items`.

    Args:
        assertions: The assertions that each alternative includes.
        seen: The keys and items that are evaluated.
        keys: The condition on the value of the entry; None: there is no alternative with such an entry.
        items: The condition on the item; None: there is no alternative with such an item.
    """
    made: list[TypeAssertions | None] = []
    if keys is not None and not seen.all_keys:
        demand = Demand(keys, seen.names, (), seen.patterns)
        made.append(merge(assertions, TypeAssertions(OBJECT, object=ObjectAssertions(demands=(demand,)))))
    if items is not None and not seen.all_items:
        part = ArrayAssertions(contains=((seen.items, items, 1, None),))
        made.append(merge(assertions, TypeAssertions(ARRAY, array=part)))
    return [one for one in made if one is not None]
