"""Whether the branches of `oneOf` exclude each other, seen from their types, given values and tag properties.

Then "exactly one" is "any", and no branch has to be subtracted from another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .keywords import ALL_TYPES, meet, pointer
from .reader import identity
from .scalars import kind_of

__all__ = ["Resolve", "are_disjoint"]

MAX_PAIRED = 1000
"""How many branches are compared with each other where no one tag or value tells all of them apart."""

Resolve = Callable[[object, str], tuple[object, str]]
"""Follows a schema that is only a reference to the schema that it means."""


@dataclass(frozen=True, slots=True)
class _Face:
    """What a branch shows: its types, its values where they are given, and the values of its tag properties."""

    types: frozenset[str]
    values: frozenset[str] | None
    tags: dict[str, frozenset[str]]


def are_disjoint(branches: Sequence[object], places: Sequence[str], resolve: Resolve) -> bool:
    """Whether no value can fit two of the branches."""
    faces = [_face(branch, place, resolve) for branch, place in zip(branches, places, strict=True)]
    if _told_apart([face.values for face in faces]):
        return True
    if all(face.types <= {"object"} for face in faces):
        first = faces[0].tags if faces else {}
        if any(_told_apart([face.tags.get(name) for face in faces]) for name in first):
            return True
    return len(faces) <= MAX_PAIRED and all(
        _excluded(left, right) for i, left in enumerate(faces) for right in faces[:i]
    )


def _told_apart(sets: Sequence[frozenset[str] | None]) -> bool:
    """Whether all are known, and no value is in two of them."""
    known = [values for values in sets if values is not None]
    return len(known) == len(sets) and sum(map(len, known)) == len(frozenset().union(*known))


def _excluded(left: _Face, right: _Face) -> bool:
    common = meet(left.types, right.types)
    if not common or (left.values is not None and right.values is not None and not left.values & right.values):
        return True
    shared = left.tags.keys() & right.tags.keys()
    return common == {"object"} and any(not left.tags[name] & right.tags[name] for name in shared)


def _face(branch: object, place: str, resolve: Resolve) -> _Face:
    schema, place = resolve(branch, place)
    if not isinstance(schema, dict):
        return _Face(ALL_TYPES if schema else frozenset(), None, {})
    named = schema.get("type", sorted(ALL_TYPES))
    types = frozenset(name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str))
    values = _given(schema)
    if values is not None:
        types = meet(types, frozenset(map(kind_of, values)))
    return _Face(types, None if values is None else frozenset(map(identity, values)), _tags(schema, place, resolve))


def _tags(schema: dict[str, object], place: str, resolve: Resolve) -> dict[str, frozenset[str]]:
    properties, required = schema.get("properties"), schema.get("required")
    tags: dict[str, frozenset[str]] = {}
    if isinstance(properties, dict) and isinstance(required, list):
        for name in properties.keys() & set(map(str, required)):
            inner, _ = resolve(properties[name], pointer(place, "properties", name))
            values = _given(inner) if isinstance(inner, dict) else None
            if values is not None:
                tags[name] = frozenset(map(identity, values))
    return tags


def _given(schema: dict[str, object]) -> list[object] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None
