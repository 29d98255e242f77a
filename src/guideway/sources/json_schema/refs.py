"""`$ref`: which place of the document a reference means."""

from __future__ import annotations

from urllib.parse import unquote

from guideway.errors import InvalidConstraint, Unsupported

from .keywords import name_of, pointer

__all__ = ["resolve"]


def resolve(document: object, reference: str, place: str) -> tuple[str, object]:
    """The JSON Pointer and the schema that a reference at `place` leads to."""
    at = f"{place}/$ref"
    uri, _, fragment = reference.partition("#")
    base, base_id = _resource(document, place)
    if uri and uri != base_id:
        raise Unsupported(f"{reference!r} leads out of the document, and nothing is fetched", at)
    fragment = unquote(fragment)
    if fragment and not fragment.startswith("/"):
        raise Unsupported(f"{reference!r} names an anchor; only JSON Pointers (#/…) are followed", at)
    target, found = base, _walk(document, base)
    for part in fragment.split("/")[1:]:
        name = name_of(part)
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif (
            isinstance(found, list)
            and name.isascii()
            and name.isdecimal()
            and len(name) < 10
            and int(name) < len(found)
        ):
            found = found[int(name)]
        else:
            raise InvalidConstraint(f"at {at!r}: {reference!r} leads nowhere: no {name!r} in '#{target}'", at)
        target = pointer(target, name)
    if not isinstance(found, (dict, bool)):
        raise InvalidConstraint(f"at {at!r}: {reference!r} leads to what is no schema", at)
    return target, found


def _resource(document: object, place: str) -> tuple[str, str | None]:
    """The nearest place around that has an `$id` (the whole document, if none has), and that id."""
    best: tuple[str, str | None] = ("", None)
    found, at = document, ""
    parts = place.split("/")[1:]
    for depth in range(len(parts) + 1):
        if depth:
            found, at = _step(found, parts[depth - 1]), f"{at}/{parts[depth - 1]}"
        if isinstance(found, dict) and isinstance(name := found.get("$id"), str) and not name.startswith("#"):
            best = (at, name.rstrip("#"))
    return best


def _step(found: object, part: str) -> object:
    name = name_of(part)
    if isinstance(found, dict):
        return found.get(name)
    return found[int(name)] if isinstance(found, list) else None


def _walk(document: object, place: str) -> object:
    found = document
    for part in place.split("/")[1:]:
        found = _step(found, part)
    return found
