"""The order in which requests run: grouped by constraint and by the beginning of the prompt, within a window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from guideway.batch.requests import BatchRequest

__all__ = ["MAX_WINDOW_BYTES", "BatchItem", "grouped"]

MAX_WINDOW_BYTES = 64 << 20
"""A window has at most about this number of bytes of input."""

SHARED = 128
"""The least number of characters of a common beginning for which a prompt runs before the others of its group."""


@dataclass(frozen=True)
class BatchItem:
    """One line of the input.

    Attributes:
        position: Its index in the input.
        place: Its place for messages, such as "line 3".
        size: Its size in bytes; 0 if unknown.
        entry: The JSON value, a `BatchRequest`, or the error of the line.
        request: The request, once it was read.
        leads: Whether the next item begins like this one, and the item before does not.
        digest: The digest of the line and of the settings of the run; "": there is none.
    """

    position: int
    place: str
    size: int
    entry: Any
    request: BatchRequest | None = None
    leads: bool = False
    digest: str = ""


def grouped(items: Iterator[BatchItem], window: int) -> Iterator[BatchItem]:
    """Yield items in groups of equal constraints, and within a group ordered by their prompts.

    Args:
        items: Items with requests.
        window: The number of items that are held in memory and ordered.
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
