"""Copies of a schema in which each sub-schema is changed, such as a schema without titles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

__all__ = ["copied"]

_DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are data, not schemas."""

_NAMED = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose values are maps from names to schemas."""


def copied(schema: Any, change: Callable[[dict[str, Any]], object], unchanged: Collection[str] = ()) -> Any:
    """Return a copy of a schema. Does not recurse.

    Args:
        schema: The schema.
        change: Gets a copy of each sub-schema, and may change it. Values of unknown keywords count as schemas.
        unchanged: More keywords whose values remain as they are.
    """
    made: list[Any] = [schema]
    todo: list[tuple[Any, Any, bool]] = [(made, 0, False)]  # container, key, and whether the value is a map of names
    while todo:
        container, key, named = todo.pop()
        value = container[key]
        if isinstance(value, Mapping):
            container[key] = kept = dict(value)
            if named:
                todo += [(kept, name, False) for name in kept]
                continue
            change(kept)
            todo += [(kept, word, word in _NAMED) for word in kept if word not in _DATA and word not in unchanged]
        elif isinstance(value, list):
            container[key] = items = list(value)
            todo += [(items, number, False) for number in range(len(items))]
    return made[0]
