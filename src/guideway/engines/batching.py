"""Divides the rows of a call of an engine into groups that run together, and counts groups, rows and tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guideway.engines.base import Cache, Logits

__all__ = ["CALL_TOKENS", "DEVICE_CALL_TOKENS", "PROMPT_TOKENS", "CallCounts", "by_length", "by_padding", "in_groups"]


PROMPT_TOKENS = 8
"""A group with more tokens per row than this, on average, counts as a call for prompts.

The time of such a call depends mostly on the number of its tokens, so joining its rows saves little. Therefore
`CallCounts.filled` leaves it out.
"""


@dataclass
class CallCounts:
    """Counts the groups of rows that ran together, and how many of the rows of `forward` were in each.

    Attributes:
        calls: The number of groups. An engine may call its model several times for a group with long prompts.
        prompt_calls: The number of groups with more than `PROMPT_TOKENS` tokens per row, on average.
        rows: The sum of the numbers of rows of the other groups.
        active: The sum, over these other groups, of the number of rows that `forward` was called with. llama.cpp leaves
            out the rows with long prompts, each of which runs in separate groups.
        tokens: The number of tokens that ran in all groups, without padding.
    """

    calls: int = 0
    prompt_calls: int = 0
    rows: int = 0
    active: int = 0
    tokens: int = 0

    def add(self, rows: int, active: int, tokens: int) -> None:
        """Count one group.

        Args:
            rows: The number of its rows.
            active: The number of rows that `forward` was called with, without those that run in separate groups.
            tokens: The number of tokens of the group, without padding.
        """
        self.calls += 1
        self.tokens += tokens
        if tokens > PROMPT_TOKENS * rows:
            self.prompt_calls += 1
        else:
            self.rows += rows
            self.active += active

    @property
    def filled(self) -> float:
        """`rows` divided by `active`, without the groups for prompts.

        1.0: all rows of `forward` always ran together, or only prompts ran, or nothing.
        """
        return self.rows / self.active if self.active else 1.0


def by_length(
    rows: Sequence[Sequence[int]],
    caches: Sequence[Cache | None],
    run: Callable[[Sequence[Sequence[int]], Sequence[Cache | None]], tuple[Logits, list[Cache]]],
    *,
    alone: bool = False,
    stack: Callable[[Sequence[Any]], Any] = np.stack,
) -> tuple[Logits, list[Cache]]:
    """Run groups of rows with equal numbers of cached and of new tokens. Returns the result of `StepEngine.forward`.

    Args:
        rows: As for `forward`.
        caches: As for `forward`.
        run: Runs the rows of one group. Arguments and result are those of `forward`.
        alone: Whether every row is a separate group.
        stack: Joins the logits of several rows to an array.
    """
    groups: dict[tuple[int, int, int], list[int]] = {}
    for index, (row, cache) in enumerate(zip(rows, caches, strict=True)):
        key = (cache.length if cache is not None else 0, len(row), index if alone else 0)
        groups.setdefault(key, []).append(index)
    return in_groups(list(groups.values()), rows, caches, run, stack=stack)


CALL_TOKENS = 8
"""The fixed cost of a call of the model on a CPU: about the time that this number of tokens takes.

If one of 16 rows has 8 forced tokens and the others have one token each, two calls take less time than one call in
which all rows are padded to 8 tokens.
"""
DEVICE_CALL_TOKENS = 256
"""The fixed cost of a call on a GPU, in tokens. A call with few tokens takes about as long as one with this number."""


def by_padding(counts: Sequence[int], call_tokens: int = CALL_TOKENS) -> list[list[int]]:
    """Divide rows into groups that run together with padding, so that the estimated time of all calls is least.

    The estimate for a call, in tokens, is its fixed cost plus the number of its tokens with padding: the number of rows
    of the group times the largest number of new tokens of one of them.

    Args:
        counts: The number of new tokens of each row.
        call_tokens: The fixed cost of a call, in tokens.

    Returns:
        The indexes of the rows of each group.
    """
    rows: dict[int, list[int]] = {}
    for index, count in enumerate(counts):
        rows.setdefault(count, []).append(index)
    if len(rows) == 1:
        return list(rows.values())
    sizes = sorted(rows)
    # For the rows with the n smallest numbers of new tokens (`sizes`): the least cost of a division into groups, and
    # the index in `sizes` of the smallest number in the last group of this division.
    best, starts = [0], [0]
    for end in range(1, len(sizes) + 1):
        total, found = 0, (0, 0)
        for start in range(end - 1, -1, -1):
            total += len(rows[sizes[start]])
            cost = best[start] + call_tokens + total * sizes[end - 1]
            if start == end - 1 or cost <= found[0]:
                found = cost, start
        best.append(found[0])
        starts.append(found[1])
    groups: list[list[int]] = []
    end = len(sizes)
    while end:
        groups.append(sorted(index for size in sizes[starts[end] : end] for index in rows[size]))
        end = starts[end]
    return groups[::-1]


def in_groups(
    groups: Sequence[Sequence[int]],
    rows: Sequence[Sequence[int]],
    caches: Sequence[Cache | None],
    run: Callable[[Sequence[Sequence[int]], Sequence[Cache | None]], tuple[Logits, list[Cache]]],
    *,
    stack: Callable[[Sequence[Any]], Any] = np.stack,
) -> tuple[Logits, list[Cache]]:
    """Run each group of rows, and return the results in the order of the rows. Each row is in exactly one group.

    `groups`: the indexes of the rows of each group. Other arguments: as for `by_length`.
    """
    if len(groups) == 1:  # the common case: results need not be joined
        return run(rows, caches)
    logits: list[Any] = [None] * len(rows)
    result: list[Cache | None] = [None] * len(rows)
    for members in groups:
        found, made = run([rows[i] for i in members], [caches[i] for i in members])
        for place, index in enumerate(members):
            logits[index], result[index] = found[place], made[place]
    return stack(logits), [cache for cache in result if cache is not None]
