"""KV caches of ONNX Runtime: NumPy arrays [row, head, token, channel], as values of `engines.kv_cache`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.engines.base import Cache
from guideway.engines.kv_cache import ArrayOps, join_rows, own_rows, whole_batch
from guideway.engines.onnx.graph import Graph

__all__ = ["NUMPY", "gather"]


def gather(graph: Graph, caches: Sequence[Cache | None], cached: int) -> tuple[NDArray[Any], ...]:
    """Return the joined arrays of rows. If the rows are one previous batch in order, its arrays are reused."""
    rows = [own_rows(cache, NUMPY) for cache in caches if cache is not None]
    if not cached:
        sizes = zip(graph.heads, graph.channels, strict=True)
        return tuple(np.zeros((len(caches), h, 0, c), dtype=graph.cache_type) for h, c in sizes)
    whole = whole_batch(rows, cached)
    return whole.arrays if whole is not None else join_rows(rows)


def _concat(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if len(parts) > 1 else np.ascontiguousarray(parts[0])


NUMPY = ArrayOps(
    concat=_concat,
    to_numpy=np.ascontiguousarray,
    from_numpy=lambda array, _: np.array(array),
)
"""The operations of this engine."""
