"""The values of a JSON text by their JSON Pointers (RFC 6901)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from guideway.constraints.captures.spans import Capture
from guideway.errors import LimitExceededError

__all__ = ["values_of"]

MAX_POINTERS = 10_000_000
"""How many characters all pointers of a text may have."""

_TOKEN = re.compile(r'[ \t\r\n]*(?:([{}\[\],:])|("(?:[^"\\]|\\.)*")|([^\s{}\[\],:"]+))')


def values_of(text: str) -> Iterator[Capture]:
    """All values of a text that is JSON, as they are written, a value before those in it; "" is the whole."""
    spans: list[tuple[str, int, int]] = []
    opened: list[tuple[int, bool]] = []  # containers: which span, whether it is an object
    counts: list[int] = []  # in arrays: how many items are done
    keys: list[str | None] = []  # in objects: the key whose value comes

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
            raise LimitExceededError(f"the JSON Pointers of this text have more than {MAX_POINTERS} characters")
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
