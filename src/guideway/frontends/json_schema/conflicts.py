"""Finds why a schema is unsatisfiable: a minimal set of keywords that cannot be met together.

A deletion filter removes one keyword at a time, and keeps it removed if there is still no instance (Chinneck and
Dravnieks, "Locating minimal infeasible constraint sets", 1991).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from guideway.frontends.json_schema.keywords import KEYWORDS, SCHEMA_LISTS, SCHEMA_MAPS, SCHEMAS
from guideway.jsontext.pointer import pointer, unescape

__all__ = ["MAX_PLACES", "MAX_TRIALS", "conflict", "value_at"]

MAX_TRIALS = 60
"""The maximum number of trial deletions."""

MAX_PLACES = 500
"""The maximum number of schemas in a document for which the search is tried."""


_Box = tuple[dict[str, Any], str, list[str], bool]
"""A dict with removable members: the dict, its JSON Pointer, the members, and whether they are schemas."""


def conflict(document: Any, place: str, is_empty: Callable[[], bool]) -> list[str]:
    """Return the JSON Pointers of a minimal set of conflicting keywords, or an empty list if none was found.

    Args:
        document: Dicts and lists, which are modified during the search.
        place: The JSON Pointer of the unsatisfiable schema.
        is_empty: Whether the document in its current state has no instance.
    """
    schema = value_at(document, place)
    if not isinstance(schema, dict):
        return [place] if schema is False else []
    named: list[str] = []
    todo: list[_Box] = [(schema, place, _keywords(schema), False)]
    trials = 0
    while todo:
        box, where, names, schemas = todo.pop(0)
        for name in names:
            trials += 1
            if trials > MAX_TRIALS:
                return []
            value = box.pop(name)
            if is_empty():
                continue
            box[name] = value
            at = pointer(where, name)
            named.append(at)
            if schemas or name in SCHEMAS or name in SCHEMA_LISTS:
                todo += _inside(value, at)
            elif name in SCHEMA_MAPS:
                todo.append((value, at, list(value), True))
    return [one for one in named if not any(other.startswith(one + "/") for other in named)]


def _keywords(schema: dict[str, Any]) -> list[str]:
    return [name for name in schema if name in KEYWORDS]


def value_at(document: Any, place: str) -> Any:
    """Return the value at a JSON Pointer, or None."""
    for part in place.split("/")[1:]:
        name = unescape(part)
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document


def _inside(value: Any, where: str) -> Iterator[_Box]:
    """Yields the schemas in a value that was kept: a schema or a list of schemas."""
    if isinstance(value, dict):
        yield value, where, _keywords(value), False
    elif isinstance(value, list):
        for i, one in enumerate(value):
            if isinstance(one, dict):
                at = pointer(where, i)
                yield one, at, _keywords(one), False
