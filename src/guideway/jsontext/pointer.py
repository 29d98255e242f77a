"""JSON Pointers (RFC 6901)."""

from __future__ import annotations

__all__ = ["pointer", "shown"]


def pointer(place: str, *names: str | int) -> str:
    """Return a JSON Pointer extended by property names and array indices."""
    for name in names:
        text = str(name)
        if "~" in text or "/" in text:
            text = text.replace("~", "~0").replace("/", "~1")
        place = f"{place}/{text}"
    return place


def shown(place: str) -> str:
    """Return a JSON Pointer as error messages show it."""
    return repr(place) if place else "the whole schema"
