"""JSON Pointers (RFC 6901): joining and reading them, and the pointer of a position in a text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from guideway.arguments import short_repr

__all__ = ["MISSING", "child", "pointer", "pointer_at", "shown", "target", "unescape"]

_PART = re.compile(r'[ \t\n\r]+|"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^ \t\n\r{}\[\],:"]+', re.DOTALL)
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")

MISSING = object()
"""The result of `child` for a value that does not exist."""


def pointer(place: str, *names: str | int) -> str:
    """Return the JSON Pointer `place`, extended by keys and indices. "~" and "/" in them are escaped."""
    parts = [place]
    for name in names:
        text = str(name)
        if "~" in text or "/" in text:  # tested first for speed: this runs for each location of a schema
            text = text.replace("~", "~0").replace("/", "~1")
        parts.append(text)
    return "/".join(parts)


class _Container:
    """An array or object whose closing bracket was not read yet.

    Attributes:
        name: The key or index of its current child; None: an object without a current child.
        is_array: Whether it is an array.
        is_inside: Whether the current child has begun and is incomplete.
    """

    def __init__(self, name: str | int | None) -> None:
        self.name = name
        self.is_array = isinstance(name, int)
        self.is_inside = False


def pointer_at(text: str, following: str | None = None) -> str:
    """Return the JSON Pointer of the innermost value that is incomplete at the end of `text`.

    A key belongs to its object until its colon. After a comma, the result is the object, or the next item of the array.

    Args:
        text: The beginning of a JSON text. Its syntax is not checked.
        following: The text that follows. It decides whether a number at the end is complete. None: it is not known, and
            the number is taken as incomplete.
    """
    containers: list[_Container] = []
    for found in _PART.finditer(text):
        part = found[0]
        last = containers[-1] if containers else None
        if part in ("{", "["):
            if last is not None:
                last.is_inside = True
            containers.append(_Container(0 if part == "[" else None))
        elif part in ("}", "]"):
            del containers[-1:]
            if containers:
                _complete(containers[-1])
        elif last is None or part.isspace():
            continue
        elif part == ",":
            last.is_inside = last.is_array
        elif part == ":":
            last.is_inside = True
        elif not last.is_array and not last.is_inside:
            if _is_whole(part):
                last.name = str(json.loads(part))
        else:
            is_end = found.end() == len(text)
            if part[0] == '"':
                going = not _is_whole(part)
            else:
                continues = following is None or following[:1] in tuple("0123456789.eE+-") or part == "-"
                going = is_end and (part in _STARTS or (continues and part not in ("true", "false", "null")))
            if going:
                last.is_inside = True
            else:
                _complete(last)
    return pointer("", *(one.name for one in containers if one.is_inside and one.name is not None))


_STARTS = frozenset(word[:n] for word in ("true", "false", "null") for n in range(1, len(word)))


def _complete(container: _Container) -> None:
    """Record that the current child is complete."""
    container.is_inside = False
    container.name = container.name + 1 if isinstance(container.name, int) else None


def _is_whole(part: str) -> bool:
    """Return whether a string is complete."""
    if len(part) < 2 or part[-1] != '"':
        return False
    escapes = len(part) - 1 - len(part[:-1].rstrip("\\"))
    return escapes % 2 == 0


def shown(place: str) -> str:
    """Return a JSON Pointer as error messages write it: quoted, or "the whole schema" for the root.

    "…" ends a JSON Pointer of more than 400 characters.
    """
    return short_repr(place, 400) if place else "the whole schema"


def unescape(part: str) -> str:
    """Return the key or index that a reference token of a JSON Pointer encodes: "~1" is "/", and "~0" is "~"."""
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def child(value: object, name: str) -> Any:
    """Return the member of a mapping or list with a key or index; `MISSING`: there is none.

    `name` is the key or the index, without the escapes of a JSON Pointer.
    """
    if isinstance(value, Mapping):
        return value.get(name, MISSING)
    if isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
        return value[int(name)]
    return MISSING


def target(document: object, reference: str) -> Any:
    """Return the value in a document to which a `$ref` refers; None if there is none.

    Only "#" (the document) and "#" with a JSON Pointer, which may be percent-encoded, are followed. Anchors ("#name")
    and references to other documents give None.
    """
    if reference != "#" and not reference.startswith("#/"):
        return None
    found: Any = document
    for part in unquote(reference[1:]).split("/")[1:]:
        if (found := child(found, unescape(part))) is MISSING:
            return None
    return found
