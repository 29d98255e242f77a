"""Batching for engines that need rows of equal lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from guideway.engines.base import Cache, Logits

__all__ = ["by_length"]


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
    if len(groups) == 1:  # the common case: no need to join results
        return run(rows, caches)
    logits: list[Any] = [None] * len(rows)
    result: list[Cache | None] = [None] * len(rows)
    for members in groups.values():
        found, made = run([rows[i] for i in members], [caches[i] for i in members])
        for place, index in enumerate(members):
            logits[index], result[index] = found[place], made[place]
    return stack(logits), [cache for cache in result if cache is not None]
