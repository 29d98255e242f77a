"""Copies of a schema in which each subschema is changed, such as a schema without titles."""

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
        change: Is called with a copy of the schema and of each subschema, and may change it. The value of an unknown
            keyword counts as a schema, or as a list of schemas.
        unchanged: Keywords whose values are not searched for subschemas, in addition to `const`, `default`, `enum` and
            `examples`.
    """
    made: list[Any] = [schema]
    # a container, a key in it, and whether the value there maps names to schemas
    todo: list[tuple[Any, Any, bool]] = [(made, 0, False)]
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
