"""Which rows of a call run together, and how many they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guideway.engines.base import Cache, Logits

__all__ = ["CallCounts", "by_length", "by_padding", "in_groups"]


@dataclass
class CallCounts:
    """How well the rows of `forward` filled the calls of the model.

    Attributes:
        calls: The number of calls of the model.
        rows: The sum of the rows of each call.
        active: The sum, over these calls, of the rows that the enclosing `forward` was given.
        tokens: The number of tokens that ran, without padding.
    """

    calls: int = 0
    rows: int = 0
    active: int = 0
    tokens: int = 0

    def add(self, rows: int, active: int, tokens: int) -> None:
        """Count one call of the model."""
        self.calls += 1
        self.rows += rows
        self.active += active
        self.tokens += tokens

    @property
    def filled(self) -> float:
        """The rows per call as a part of the active rows; 1.0 if nothing ran."""
        return self.rows / self.active if self.active else 1.0


def by_length(
    rows: Sequence[Sequence[int]],
    caches: Sequence[Cache | None],
    run: Callable[[Sequence[Sequence[int]], Sequence[Cache | None]], tuple[Logits, list[Cache]]],
    *,
    alone: bool = False,
    stack: Callable[[Sequence[Any]], Any] = np.stack,
) -> tuple[Logits, list[Cache]]:
    """Implement `forward` by running groups of rows with equal cached and new lengths.

    Args:
        rows: As for `forward`.
        caches: As for `forward`.
        run: `forward` for rows of equal lengths.
        alone: Run every row separately.
        stack: Joins the logits of several rows.
    """
    groups: dict[tuple[int, int, int], list[int]] = {}
    for index, (row, cache) in enumerate(zip(rows, caches, strict=True)):
        key = (cache.length if cache is not None else 0, len(row), index if alone else 0)
        groups.setdefault(key, []).append(index)
    return in_groups(list(groups.values()), rows, caches, run, stack=stack)


PADDED_TOKENS = 128
"""A call whose padded tokens are at most this number is not split."""
WASTE = 1.25
"""The maximum number of padded tokens per new token in larger calls."""


def by_padding(counts: Sequence[int], cached: Sequence[int]) -> list[list[int]]:
    """Return groups of rows that run together with padding: few groups, and little padding in each.

    Rows with few new tokens share a group, whatever the lengths of their caches are. A prompt that would multiply the
    tokens of the others runs in its own call, with prompts of similar lengths.

    Args:
        counts: The number of new tokens of each row.
        cached: The number of cached tokens of each row.
    """
    order = sorted(range(len(counts)), key=lambda index: (counts[index], cached[index]))
    groups: list[list[int]] = []
    total = 0
    for index in order:
        count = counts[index]
        padded = (len(groups[-1]) + 1) * count if groups else 0
        if groups and (padded <= PADDED_TOKENS or padded <= WASTE * (total + count)):
            groups[-1].append(index)
            total += count
        else:
            groups.append([index])
            total = count
    return [sorted(group) for group in groups]


def in_groups(
    groups: Sequence[Sequence[int]],
    rows: Sequence[Sequence[int]],
    caches: Sequence[Cache | None],
    run: Callable[[Sequence[Sequence[int]], Sequence[Cache | None]], tuple[Logits, list[Cache]]],
    *,
    stack: Callable[[Sequence[Any]], Any] = np.stack,
) -> tuple[Logits, list[Cache]]:
    """Run each group of rows, and return the results in the order of the rows."""
    if len(groups) == 1:  # the common case: no need to join results
        return run(rows, caches)
    logits: list[Any] = [None] * len(rows)
    result: list[Cache | None] = [None] * len(rows)
    for members in groups:
        found, made = run([rows[i] for i in members], [caches[i] for i in members])
        for place, index in enumerate(members):
            logits[index], result[index] = found[place], made[place]
    return stack(logits), [cache for cache in result if cache is not None]
