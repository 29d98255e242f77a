"""Why a schema has no instance: the keywords that cannot be met together.

Found by leaving out one keyword after the other, for as long as there is still no instance: what remains is a smallest
set of them (a deletion filter; Chinneck and Dravnieks, "Locating minimal infeasible constraint sets", 1991).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from guideway.frontends.json_schema.keywords import KEYWORDS, SCHEMA_LISTS, SCHEMA_MAPS, SCHEMAS, name_of
from guideway.jsontext.pointer import pointer

__all__ = ["MAX_PLACES", "MAX_TRIALS", "conflict"]

MAX_TRIALS = 60
"""How many keywords are left out on trial."""

MAX_PLACES = 500
"""How many schemas a document may have for this to be tried."""


_Box = tuple[dict[str, Any], str, list[str], bool]
"""What has parts to leave out, where it stands, which ones, and whether these are schemas (else keywords)."""


def conflict(document: Any, place: str, is_empty: Callable[[], bool]) -> list[str]:
    """The places of the keywords that leave nothing of the schema at `place`; none where that was not found out.

    `document`: of dicts and lists, and free to be changed; `is_empty`: whether it has no instance as it stands.
    """
    schema = _at(document, place)
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


def _at(document: Any, place: str) -> Any:
    for part in place.split("/")[1:]:
        name = name_of(part)
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document


def _inside(value: Any, where: str) -> Iterator[_Box]:
    """The schemas in what was kept, a schema or a list of them."""
    if isinstance(value, dict):
        yield value, where, _keywords(value), False
    elif isinstance(value, list):
        for i, one in enumerate(value):
            if isinstance(one, dict):
                at = pointer(where, i)
                yield one, at, _keywords(one), False
