"""Measures the size of a schema that is sent, and compares it with the published limits of an endpoint.

If a schema exceeds the limit of enumerated values or of characters, its largest enumerations are replaced by types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from guideway.errors import LimitExceededError
from guideway.remote.capabilities import Capabilities
from guideway.remote.lowering import SentSchema, lower

__all__ = ["check_limits", "heaviest", "lowered_within", "measured"]


def lowered_within(document: Any, given: Capabilities) -> SentSchema:
    """Rewrite a schema for an endpoint, within its limits for enumerated values and characters where that is possible.

    If the rewritten schema exceeds these limits, its largest enumerations are replaced as `SchemaSubset.enum_values`
    describes: as few as possible, but of several with equally many values all or none. If it exceeds them even without
    enumerations, all are replaced.
    """
    limits = {name: given.limits[name] for name in ("enum_values", "characters") if name in given.limits}

    def fits(sent: SentSchema) -> bool:
        found = _sizes(sent.schema)
        return all(found[name] <= most for name, most in limits.items())

    lowered = lower(document, given.subset)
    if fits(lowered) or not lowered.enumerations:
        return lowered
    # the largest number of values that an enumeration may have so that the schema fits
    numbers = [0, *sorted(lowered.enumerations)[:-1]]
    low, high = 0, len(numbers)
    while low < high:
        middle = (low + high) // 2
        tried = lower(document, replace(given.subset, enum_values=numbers[middle]))
        if middle and not fits(tried):
            high = middle
        else:  # the schema fits, or no enumeration is left
            lowered, low = tried, middle + 1
    return lowered


def measured(given: Capabilities, lowered: SentSchema) -> dict[str, tuple[int, int]]:
    """Return by the name of each published limit for schemas: the size of the rewritten schema, and the limit."""
    found = _sizes(lowered.schema)
    return {name: (found[name], most) for name, most in given.limits.items() if name in found}


def _sizes(schema: Any) -> dict[str, int]:
    sizes = dict.fromkeys(("properties", "depth", "characters", "enum_values", "unions", "optional"), 0)
    todo: list[tuple[Any, int]] = [(schema, 1)]
    while todo:
        one, depth = todo.pop()
        if not isinstance(one, dict):
            continue
        inner = one.get("properties", {})
        if one.get("type") == "object" or one.get("type") == "array":
            sizes["depth"] = max(sizes["depth"], depth)
        sizes["properties"] += len(inner)
        sizes["optional"] += len(set(inner) - set(one.get("required", ())))
        sizes["characters"] += sum(map(len, inner))
        if isinstance(one.get("enum"), list):
            sizes["enum_values"] += len(one["enum"])
            sizes["characters"] += sum(len(str(value)) for value in one["enum"])
        options = one.get("anyOf", ())
        sizes["unions"] += bool(options)
        todo += [(value, depth + 1) for value in inner.values()]
        todo += [(value, depth) for value in (*options, *one.get("$defs", {}).values())]
        todo += [(one[name], depth + 1) for name in ("items", "additionalProperties") if name in one]
        todo += [(value, depth + 1) for value in one.get("prefixItems", ())]
    return sizes


def check_limits(
    given: Capabilities, sizes: Mapping[str, tuple[int, int]], what: str, lowered: SentSchema | None = None
) -> None:
    """Raise `LimitExceededError` if a size is above its limit.

    Args:
        given: The capabilities of the endpoint.
        sizes: By name: the measured size, and the limit.
        what: The name of the measured thing, for the message.
        lowered: The rewritten schema, whose largest parts the message names; None: it is not a schema.
    """
    over = {name: pair for name, pair in sizes.items() if pair[0] > pair[1]}
    if over:
        shown = ", ".join(f"{name} {size:,} (limit {most:,})" for name, (size, most) in over.items())
        raise LimitExceededError(
            f"{what} is too large for {given.title or given.name}: {shown}{heaviest(lowered.schema if lowered else None)}"
        )


def heaviest(schema: Any) -> str:
    """Name the largest members of `properties` and `$defs`, at most three, as the end of an error message.

    "" if the schema is None or has no such members.
    """
    if not isinstance(schema, dict):
        return ""
    parts = [(f"/properties/{key}", value) for key, value in schema.get("properties", {}).items()]
    parts += [(f"/$defs/{key}", value) for key, value in schema.get("$defs", {}).items()]
    sized = sorted(((len(json.dumps(value)), place) for place, value in parts), reverse=True)[:3]
    return (
        "; the heaviest parts are " + ", ".join(f"{place} ({size:,} bytes)" for size, place in sized) if sized else ""
    )
