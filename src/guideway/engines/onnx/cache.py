"""KV caches of ONNX Runtime: NumPy arrays [row, head, token, channel], as values of `engines.kv_cache`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.engines.base import Cache
from guideway.engines.kv_cache import ArrayBatch, ArrayOps, RowCache, own_rows, padded_batch
from guideway.engines.onnx.graph import Graph

__all__ = ["NUMPY", "gather", "without_gaps"]


def gather(graph: Graph, caches: Sequence[Cache | None]) -> ArrayBatch:
    """Return the joined arrays of rows. All rows end at the last place; shorter rows begin later.

    If the rows are one previous batch in order, its arrays are reused.
    """
    rows = [None if cache is None or not cache.length else own_rows(cache, NUMPY) for cache in caches]
    held: list[RowCache[ArrayBatch]] = [row for row in rows if row is not None]
    if len(held) == len(rows) and (whole := padded_batch(held)) is not None:
        return whole
    lengths = [0 if row is None else row.length for row in rows]
    longest = max(lengths)
    arrays = []
    parts = [row.used() if row is not None else [] for row in rows]
    for index, sizes in enumerate(zip(graph.heads, graph.channels, strict=True)):
        heads, channels = sizes
        array = np.empty((len(rows), heads, longest, channels), dtype=graph.cache_type)
        for place, length in enumerate(lengths):
            array[place, :, : longest - length] = 0
            if length:
                array[place, :, longest - length :] = parts[place][index][0]
        arrays.append(array)
    return ArrayBatch(NUMPY, tuple(arrays), tuple(longest - length for length in lengths))


def without_gaps(arrays: tuple[NDArray[Any], ...], cached: int, counts: Sequence[int]) -> tuple[NDArray[Any], ...]:
    """Return arrays in which the `cached` places of rows with fewer new tokens are next to these tokens.

    The given arrays belong to the caller and may be modified.
    """
    if not all(array.flags.writeable for array in arrays):
        arrays = tuple(array.copy() for array in arrays)
    most = arrays[0].shape[2] - cached
    for row, count in enumerate(counts):
        if count < most and cached:
            gap = most - count
            for array in arrays:
                array[row, :, gap : cached + gap] = array[row, :, :cached].copy()
    return arrays


NUMPY = ArrayOps(
    concat=lambda parts: np.concatenate(parts) if len(parts) > 1 else np.ascontiguousarray(parts[0]),
    to_numpy=np.ascontiguousarray,
    from_numpy=lambda array, _: np.array(array),
)
"""The operations of this engine."""
