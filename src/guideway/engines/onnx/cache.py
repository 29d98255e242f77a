"""KV caches of ONNX Runtime: NumPy arrays [row, head, token, channel], joined to batches and returned as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.engines.base import Arrays, Cache, check_truncation
from guideway.engines.onnx.graph import Graph
from guideway.errors import EngineError

__all__ = ["RowCache", "export", "gather", "restore"]

Batch = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class RowCache:
    """The first `length` tokens of one row of arrays."""

    arrays: Batch
    row: int
    length: int

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes // array.shape[0] for array in self.arrays)

    def truncated(self, length: int) -> RowCache:
        check_truncation(self, length)
        return RowCache(self.arrays, self.row, length)

    def used(self, index: int) -> NDArray[Any]:
        """Return the used part of an array: a view of shape [1, head, token, channel]."""
        return self.arrays[index][self.row : self.row + 1, :, : self.length]


def gather(graph: Graph, caches: Sequence[Cache | None], cached: int) -> Batch:
    """Return the joined arrays of rows. If the rows are one previous batch in order, its arrays are reused."""
    rows = [_own(cache) for cache in caches if cache is not None]
    if not cached:
        sizes = zip(graph.heads, graph.channels, strict=True)
        return tuple(np.zeros((len(caches), h, 0, c), dtype=graph.cache_type) for h, c in sizes)
    first = rows[0].arrays
    whole = first[0].shape[0] == len(rows) and first[0].shape[2] == cached
    if whole and all(cache.arrays is first and cache.row == i for i, cache in enumerate(rows)):
        return first
    if len(rows) == 1:
        return tuple(np.ascontiguousarray(rows[0].used(i)) for i in range(len(first)))
    return tuple(np.concatenate([cache.used(i) for cache in rows]) for i in range(len(first)))


def export(graph: Graph, cache: Cache) -> Arrays:
    own = _own(cache)
    return {name: np.ascontiguousarray(own.used(i)) for i, name in enumerate(graph.pasts)}


def restore(graph: Graph, arrays: Arrays) -> RowCache:
    """Return the cache of arrays. Raises `EngineError` if names, shapes or types do not match the graph."""
    if set(arrays) != set(graph.pasts):
        raise EngineError(
            f"expected {len(graph.pasts)} arrays ({', '.join(graph.pasts[:2])}, …) of this model,"
            f" got {len(arrays)} ({', '.join(list(arrays)[:2])}, …)"
        )
    length = arrays[graph.pasts[0]].shape[2] if arrays[graph.pasts[0]].ndim == 4 else 0
    for name, heads, channels in zip(graph.pasts, graph.heads, graph.channels, strict=True):
        array, expected = arrays[name], (1, heads, length, channels)
        if array.shape != expected or array.dtype != graph.cache_type:
            raise EngineError(f"{name} must be {graph.cache_type} {expected}, got {array.dtype} {array.shape}")
    return RowCache(tuple(np.array(arrays[name]) for name in graph.pasts), 0, length)


def _own(cache: Cache) -> RowCache:
    if not isinstance(cache, RowCache):
        raise EngineError(f"the cache belongs to another engine or model: {type(cache).__name__}")
    return cache
