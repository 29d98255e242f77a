"""The values of a JSON text by JSON Pointer (RFC 6901)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from guideway.constraints.captures.spans import Capture
from guideway.errors import LimitExceededError

__all__ = ["values_of"]

MAX_POINTERS = 10_000_000
"""Maximum total number of characters of the JSON Pointers of one text."""

_TOKEN = re.compile(r'[ \t\r\n]*(?:([{}\[\],:])|("(?:[^"\\]|\\.)*")|([^\s{}\[\],:"]+))')


def values_of(text: str) -> Iterator[Capture]:
    """Return all values of a JSON text as written, in document order, parents first. The root has the name ""."""
    spans: list[tuple[str, int, int]] = []
    opened: list[tuple[int, bool]] = []  # open containers: index in `spans`, whether it is an object
    counts: list[int] = []  # per open container: number of items so far
    keys: list[str | None] = []  # per open object: the key whose value follows

    written = 0

    def begin(start: int) -> None:
        nonlocal written
        pointer = ""
        if opened:
            number, is_object = opened[-1]
            step = keys[-1] if is_object else str(counts[-1])
            pointer = f"{spans[number][0]}/{(step or '').replace('~', '~0').replace('/', '~1')}"
            counts[-1] += 1
            keys[-1] = None
        if (written := written + len(pointer)) > MAX_POINTERS:
            raise LimitExceededError(f"the JSON Pointers of this text have more than {MAX_POINTERS:,} characters")
        spans.append((pointer, start, start))

    for found in _TOKEN.finditer(text):
        sign, string = found.group(1), found.group(2)
        if sign is None and string is not None and opened and opened[-1][1] and keys[-1] is None:
            keys[-1] = json.loads(string)
        elif sign is None:
            begin(found.start(2) if string is not None else found.start(3))
            spans[-1] = (*spans[-1][:2], found.end())
        elif sign in "{[":
            begin(found.start(1))
            opened.append((len(spans) - 1, sign == "{"))
            counts.append(0)
            keys.append(None)
        elif sign in "}]":
            number, _ = opened.pop()
            counts.pop()
            keys.pop()
            spans[number] = (*spans[number][:2], found.end())
    return (Capture(pointer, start, end, text) for pointer, start, end in spans)
