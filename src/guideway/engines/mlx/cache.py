"""Keeps the caches of mlx-lm in `RowCache` and `StateCache` values of `engines.kv_cache`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten
from numpy.typing import NDArray

from guideway.engines.base import Arrays, Cache
from guideway.engines.kv_cache import ArrayOps, RowCache, StateCache, own_state, restore_rows, restore_state
from guideway.engines.row_store import StoredRow, stored

__all__ = ["MLX", "copied_state", "like_cache", "restore"]


def copied_state(cache: Cache | None, empty: Any) -> Any:
    """Return a copy of the library's cache in `cache`. The model may modify the copy.

    `empty` itself is returned if `cache` is None or has no tokens.
    """
    return empty if cache is None or not cache.length else own_state(cache, MLX).copy_whole()


def like_cache(cache: Any, *, supports_rollback: bool) -> RowCache[StoredRow] | StateCache:
    """Convert the library's cache after one token. The result is the `like` of `restore` for this model."""
    if not supports_rollback:
        return StateCache(MLX, cache, 1)
    arrays = [part for one in cache for part in (one.keys[..., :1, :], one.values[..., :1, :])]
    return RowCache(stored(MLX, arrays, 1), 0, 1)


def restore(arrays: Arrays, like: RowCache[StoredRow] | StateCache) -> Cache:
    """Return the cache of exported arrays. `like`: a cache of the same model. Raises `EngineError` for mismatches."""
    if isinstance(like, StateCache):
        return restore_state(arrays, like)
    made, length = restore_rows(arrays, like)
    return RowCache(stored(MLX, made, length), 0, length)


def _flat(whole: Any) -> list[tuple[str, Any]]:
    return tree_flatten([one.state for one in whole])  # type: ignore[no-any-return]  # mlx has no types


def _replace(whole: Any, arrays: Mapping[str, Any]) -> None:
    filled = [(name, array if array is None else arrays[name]) for name, array in _flat(whole)]
    for one, state in zip(whole, tree_unflatten(filled), strict=True):
        one.state = state


def _to_numpy(array: Any) -> NDArray[Any]:
    return np.array(array.astype(mx.float32) if array.dtype == mx.bfloat16 else array)


def _copied(array: Any) -> Any:
    made = mx.contiguous(array)
    mx.eval(made)  # a lazy copy would keep the whole `Store` in memory
    return made


MLX = ArrayOps(
    concat=lambda parts: mx.concatenate(list(parts)) if len(parts) > 1 else parts[0],
    to_numpy=_to_numpy,
    from_numpy=lambda array, like: mx.array(np.array(array)).astype(like.dtype),
    zeros=lambda shape, like: mx.zeros(shape, like.dtype),
    copy=_copied,
    state_arrays=lambda whole: ((name, array) for name, array in _flat(whole) if array is not None),
    replace_state=_replace,
)
"""The operations of this engine. bfloat16 is exported as float32."""
