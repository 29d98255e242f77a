"""KV caches of ONNX Runtime.

`ArrayBatch` and `RowCache` of `engines.kv_cache` hold NumPy arrays [row, head, token, channel].
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.engines.base import Cache
from guideway.engines.kv_cache import ArrayBatch, ArrayOps, RowCache, own_rows, padded_batch
from guideway.engines.onnx.graph import Graph

__all__ = ["NUMPY", "Scratch", "gather", "without_gaps"]

SCRATCH_BYTES = 256 << 20
"""The maximum number of bytes that a `Scratch` keeps."""

_ALIGNED = 64

_MAPPED = 1 << 16
"""`mapped_copies` copies arrays of fewer bytes than this without mapping."""


class Scratch:
    """Memory for arrays that a call of the model only reads. The next call uses the same memory again.

    Newly allocated memory is several times slower, because the operating system clears each page of it. An object must
    not be used by several threads at once.
    """

    def __init__(self) -> None:
        self._held = np.empty(0, dtype=np.uint8)
        self._used = 0

    def begin(self, nbytes: int) -> None:
        """Begin a call that needs `nbytes` in total. Arrays of the previous call are no longer valid."""
        self._used = 0
        if nbytes > SCRATCH_BYTES:
            self._held = np.empty(0, dtype=np.uint8)
        elif nbytes > self._held.size:
            self._held = np.empty(min(nbytes + nbytes // 4, SCRATCH_BYTES), dtype=np.uint8)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array with undefined values. If the memory is used up, the array has separate memory."""
        begin, size = self._used, math.prod(shape) * dtype.itemsize
        if begin + size > self._held.size:
            return np.empty(shape, dtype)
        self._used += -(-size // _ALIGNED) * _ALIGNED
        return self._held[begin : begin + size].view(dtype).reshape(shape)


def gather(graph: Graph, caches: Sequence[Cache | None], scratch: Scratch | None = None) -> ArrayBatch:
    """Join the arrays of rows. All rows end at the last index of the token axis; shorter rows begin later.

    If the caches are all rows of one batch in order, this batch is returned. `scratch`: the memory of the joined
    arrays, which are valid until its next `begin`; None: separate memory.
    """
    rows = [None if cache is None or not cache.length else own_rows(cache, NUMPY) for cache in caches]
    held: list[RowCache[ArrayBatch]] = [row for row in rows if row is not None]
    if len(held) == len(rows) and (whole := padded_batch(held)) is not None:
        return whole
    lengths = [0 if row is None else row.length for row in rows]
    longest = max(lengths)
    arrays, scratch, cache_type = [], scratch or Scratch(), np.dtype(graph.cache_type)
    places = len(rows) * longest * cache_type.itemsize
    scratch.begin(sum(h * c * places + _ALIGNED for h, c in zip(graph.heads, graph.channels, strict=True)))
    parts = [row.used() if row is not None else [] for row in rows]
    for index, sizes in enumerate(zip(graph.heads, graph.channels, strict=True)):
        heads, channels = sizes
        array = scratch.empty((len(rows), heads, longest, channels), cache_type)
        for place, length in enumerate(lengths):
            array[place, :, : longest - length] = 0
            if length:
                array[place, :, longest - length :] = parts[place][index][0]
        arrays.append(array)
    return ArrayBatch(NUMPY, tuple(arrays), tuple(longest - length for length in lengths))


def without_gaps(arrays: tuple[NDArray[Any], ...], cached: int, counts: Sequence[int]) -> tuple[NDArray[Any], ...]:
    """Move cached tokens so that no unused index lies between the cached and the new tokens of a row.

    Args:
        arrays: Keys and values after a run with padding. They may be modified.
        cached: The number of indexes before the new tokens.
        counts: The number of new tokens of each row, which are at the end.
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


def mapped_copies(parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return copies of arrays in one block of memory that is mapped only for them.

    A prefix cache stores many copies for a long time. If the allocator placed them in its heaps, the free memory between
    them could not be used for larger arrays. A mapped block is returned to the system as a whole.
    """
    sizes = [-(-part.nbytes // _ALIGNED) * _ALIGNED for part in parts]
    if sum(sizes) < _MAPPED:
        return [np.array(part) for part in parts]
    block, begin, copies = np.frombuffer(mmap.mmap(-1, sum(sizes)), dtype=np.uint8), 0, []
    for part, size in zip(parts, sizes, strict=True):
        made = block[begin : begin + part.nbytes].view(part.dtype).reshape(part.shape)
        made[...] = part
        copies.append(made)
        begin += size
    return copies


NUMPY = ArrayOps(
    concat=lambda parts: np.concatenate(parts) if len(parts) > 1 else np.ascontiguousarray(parts[0]),
    to_numpy=np.ascontiguousarray,
    from_numpy=lambda array, _: np.array(array),
    copy=np.array,
    copy_row=mapped_copies,
)
"""The operations of this engine."""
