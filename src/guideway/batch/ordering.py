"""The order in which requests run: within a window of the input, grouped by constraint and sorted by prompt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from guideway.batch.requests import BatchRequest

__all__ = ["MAX_WINDOW_BYTES", "BatchItem", "grouped"]

MAX_WINDOW_BYTES = 64 << 20
"""The approximate maximum number of bytes of input in a window."""

SHARED = 128
"""If prompts have a common beginning of this number of characters, the first one runs first (`BatchItem.leads`)."""


@dataclass(frozen=True)
class BatchItem:
    """One line of the input.

    Attributes:
        position: The index of the line in the input.
        place: The place of the line for messages, such as "line 3".
        size: The size of the line in bytes; 0 if unknown.
        entry: The JSON value of the line, a `BatchRequest`, or the error of the line.
        request: The request; None: not read yet.
        leads: Whether this is the first of several consecutive items whose prompts have a common beginning. Its prompt
            runs first, so the others use the cache of the beginning.
        digest: The digest of the line and of the settings of the run; "": not computed.
    """

    position: int
    place: str
    size: int
    entry: Any
    request: BatchRequest | None = None
    leads: bool = False
    digest: str = ""


def grouped(items: Iterator[BatchItem], window: int) -> Iterator[BatchItem]:
    """Yield the items of each window in groups with the same constraint object, ordered by prompt within a group.

    Args:
        items: Items whose `request` is set.
        window: The maximum number of items that are held in memory and sorted at one time.
    """
    while taken := _taken(items, window):
        groups: dict[int, int] = {}
        keys = []
        for item in taken:
            request = item.request
            if request is None:
                raise ValueError("an item without a request cannot run")
            group = groups.setdefault(id(request.output), len(groups))
            keys.append((group, _beginning(request.prompt), item.position))
        order = sorted(range(len(taken)), key=keys.__getitem__)
        before = ""
        for at, index in enumerate(order):
            begins = keys[index][1][:SHARED]
            after = keys[order[at + 1]][1][:SHARED] if at + 1 < len(order) else ""
            leads = len(begins) == SHARED and begins == after and begins != before
            yield replace(taken[index], leads=leads)
            before = begins


def _taken(items: Iterator[BatchItem], window: int) -> list[BatchItem]:
    taken: list[BatchItem] = []
    size = 0
    for item in islice(items, window):
        taken.append(item)
        size += item.size
        if size > MAX_WINDOW_BYTES:
            break
    return taken


def _beginning(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False, default=str)
