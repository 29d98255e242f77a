"""JSON Pointers (RFC 6901)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["MISSING", "child", "pointer", "unescape"]

MISSING = object()
"""The result of `child` for a value that does not exist."""


def pointer(place: str, *names: str | int) -> str:
    """Return a JSON Pointer extended by property names and array indices."""
    for name in names:
        text = str(name)
        if "~" in text or "/" in text:  # not a call of `escape`: this runs for each place of a schema
            text = text.replace("~", "~0").replace("/", "~1")
        place = f"{place}/{text}"
    return place


def unescape(part: str) -> str:
    """Return the property name that one part of a JSON Pointer encodes."""
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def child(value: object, name: str) -> Any:
    """Return the property or item with this name or index, or `MISSING`. `name` is unescaped."""
    if isinstance(value, Mapping):
        return value.get(name, MISSING)
    if isinstance(value, list) and name.isascii() and name.isdecimal() and len(name) < 10 and int(name) < len(value):
        return value[int(name)]
    return MISSING
