"""The values of a JSON text by JSON Pointer (RFC 6901)."""

from __future__ import annotations

from collections.abc import Iterator

from guideway.constraints.captures.spans import Capture
from guideway.errors import LimitExceededError
from guideway.jsontext.pointer import pointer
from guideway.jsontext.tokens import located

__all__ = ["values_of"]

MAX_POINTERS = 10_000_000
"""The maximum number of characters of all JSON Pointers of one text together."""


def values_of(text: str) -> Iterator[Capture]:
    """Return a capture of each value of a JSON text. Its name is the JSON Pointer of the value, "" for the whole value.

    The captures are in the order in which the values begin. Raises `LimitExceededError` if the JSON Pointers are too
    long.
    """
    spans: list[tuple[str, int, int]] = []
    opened: list[int] = []  # the indices in `spans` of the arrays and objects that are open
    written = 0
    for token, path in located(text):
        kind = token.kind
        if kind in ("}", "]"):
            number = opened.pop()
            spans[number] = (*spans[number][:2], token.end)
        elif kind not in (",", ":", "key"):
            place = pointer(spans[opened[-1]][0], path[-1]) if opened else ""
            if (written := written + len(place)) > MAX_POINTERS:
                raise LimitExceededError(f"the JSON Pointers of this text have more than {MAX_POINTERS:,} characters")
            if kind in ("{", "["):
                opened.append(len(spans))
            spans.append((place, token.start, token.end))
    return (Capture(place, start, end, text) for place, start, end in spans)
