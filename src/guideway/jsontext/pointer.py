"""JSON Pointers (RFC 6901)."""

from __future__ import annotations

__all__ = ["pointer"]


def pointer(place: str, *names: str | int) -> str:
    """Return a JSON Pointer extended by property names and array indices."""
    for name in names:
        text = str(name)
        if "~" in text or "/" in text:
            text = text.replace("~", "~0").replace("/", "~1")
        place = f"{place}/{text}"
    return place
