"""KV caches of ONNX Runtime.

`ArrayBatch` and `RowCache` of `engines.kv_cache` hold NumPy arrays [row, head, token, channel].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.engines.base import Cache
from guideway.engines.kv_cache import ArrayBatch, ArrayOps, RowCache, own_rows, padded_batch
from guideway.engines.onnx.blocks import Blocks, arrays_in_block
from guideway.engines.onnx.graph import Graph

__all__ = ["NUMPY", "gather", "without_gaps"]


def gather(graph: Graph, caches: Sequence[Cache | None], blocks: Blocks) -> ArrayBatch:
    """Join the arrays of rows. All rows end at the last index of the token axis; shorter rows begin later.

    If the caches are all rows of one batch in order, with all their tokens, this batch is returned. `blocks`: the
    memory of the joined arrays.
    """
    rows = [None if cache is None or not cache.length else own_rows(cache, NUMPY) for cache in caches]
    held: list[RowCache[ArrayBatch]] = [row for row in rows if row is not None]
    if len(held) == len(rows) and (whole := padded_batch(held)) is not None:
        return whole
    lengths = [0 if row is None else row.length for row in rows]
    longest = max(lengths)
    shapes = [(len(rows), heads, longest, c) for heads, c in zip(graph.heads, graph.channels, strict=True)]
    arrays = blocks.arrays(shapes, graph.cache_type)
    for begin, end in _runs(rows):
        first = rows[begin]
        if first is None:
            for array in arrays:
                array[begin:end] = 0
            continue
        stop = first.start + first.length
        # Several rows are copied with the values before the shorter ones, which the attention mask excludes.
        width = min(longest, stop if end - begin > 1 else first.length)
        for array, held_array in zip(arrays, first.batch.arrays, strict=True):
            array[begin:end, :, : longest - width] = 0
            array[begin:end, :, longest - width :] = held_array[
                first.row : first.row + end - begin, :, stop - width : stop
            ]
    return ArrayBatch(NUMPY, tuple(arrays), tuple(longest - length for length in lengths))


def _runs(rows: Sequence[RowCache[ArrayBatch] | None]) -> list[tuple[int, int]]:
    """Divide rows into ranges whose arrays are copied at once: adjacent rows of a batch that end at the same token."""
    starts = [
        index
        for index, row in enumerate(rows)
        if not index
        or row is None
        or (before := rows[index - 1]) is None
        or row.batch is not before.batch
        or row.row != before.row + 1
        or row.start + row.length != before.start + before.length
    ]
    return list(zip(starts, [*starts[1:], len(rows)], strict=True))


def without_gaps(arrays: tuple[NDArray[Any], ...], cached: int, counts: Sequence[int]) -> tuple[NDArray[Any], ...]:
    """Move cached tokens so that no unused index lies between the cached and the new tokens of a row.

    Args:
        arrays: Keys and values after a run with padding. They may be modified.
        cached: The number of indexes before the new tokens.
        counts: The number of new tokens of each row, which are at the end.
    """
    if not all(array.flags.writeable for array in arrays):
        arrays = tuple(array.copy() for array in arrays)
    gaps = arrays[0].shape[2] - cached - np.array(counts)
    for gap in np.unique(gaps[gaps > 0]).tolist() if cached else ():
        places = np.flatnonzero(gaps == gap)
        for array in arrays:
            array[places, :, gap : cached + gap] = array[places, :, :cached]  # indexing with an array copies the values
    return arrays


def copies_in_block(parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return copies of arrays in one block of memory, which no other array uses."""
    copies = arrays_in_block([part.shape for part in parts], parts[0].dtype)
    for made, part in zip(copies, parts, strict=True):
        made[...] = part
    return copies


NUMPY = ArrayOps(
    concat=lambda parts: np.concatenate(parts) if len(parts) > 1 else np.ascontiguousarray(parts[0]),
    to_numpy=np.ascontiguousarray,
    from_numpy=lambda array, _: np.array(array),
    copy=np.array,
    copy_row=copies_in_block,
)
"""The operations of this engine."""
