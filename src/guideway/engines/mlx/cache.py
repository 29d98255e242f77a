"""Caches of mlx-lm as values of `engines.kv_cache`. Every run makes new arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.models.cache import KVCache
from numpy.typing import NDArray

from guideway.engines.base import Arrays, Cache
from guideway.engines.kv_cache import (
    ArrayBatch,
    ArrayOps,
    RowCache,
    StateCache,
    join_rows,
    own_cache,
    own_rows,
    restore_rows,
    restore_state,
    row_caches,
)

__all__ = ["MLX", "gather", "made_caches", "restore"]


def gather(caches: Sequence[Cache | None], empty: Any) -> Any:
    """Return the joined cache of rows with equal lengths, which the model may modify."""
    given = [cache for cache in caches if cache is not None and cache.length]
    if not given:
        return empty
    if isinstance(own := own_cache(given[0], MLX), StateCache):
        return own.copy_whole()
    rows = [own_rows(cache, MLX) for cache in given]
    arrays, made = join_rows(rows), []
    for index in range(0, len(arrays), 2):
        one = KVCache()
        one.keys, one.values, one.offset = arrays[index], arrays[index + 1], rows[0].length
        made.append(one)
    return made


def made_caches(cache: Any, length: int, *, supports_rollback: bool) -> list[Cache]:
    """Return the values of the rows of a cache after a run."""
    if not supports_rollback:
        return [StateCache(MLX, cache, length)]
    return row_caches(ArrayBatch(MLX, tuple(part for one in cache for part in one.keys_and_values())), length)


def restore(arrays: Arrays, like: RowCache[ArrayBatch] | StateCache) -> Cache:
    """Return the cache of arrays. `like`: a cache of the same model. Raises `EngineError` for mismatches."""
    if isinstance(like, StateCache):
        return restore_state(arrays, like)
    made, length = restore_rows(arrays, like)
    return RowCache(ArrayBatch(MLX, made), 0, length)


def _flat(whole: Any) -> list[tuple[str, Any]]:
    return tree_flatten([one.state for one in whole])  # type: ignore[no-any-return]


def _replace(whole: Any, arrays: Mapping[str, Any]) -> None:
    filled = [(name, array if array is None else arrays[name]) for name, array in _flat(whole)]
    for one, state in zip(whole, tree_unflatten(filled), strict=True):
        one.state = state


def _to_numpy(array: Any) -> NDArray[Any]:
    return np.array(array.astype(mx.float32) if array.dtype == mx.bfloat16 else array)


MLX = ArrayOps(
    concat=lambda parts: mx.concatenate(list(parts)) if len(parts) > 1 else parts[0],
    to_numpy=_to_numpy,
    from_numpy=lambda array, like: mx.array(np.array(array)).astype(like.dtype),
    state_arrays=lambda whole: ((name, array) for name, array in _flat(whole) if array is not None),
    replace_state=_replace,
)
"""The operations of this engine. bfloat16 is exported as float32."""
