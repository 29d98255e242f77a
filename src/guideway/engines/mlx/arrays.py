"""Conversion of mlx-lm caches to NumPy arrays of used positions, and back."""

from __future__ import annotations

import copy
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten

from guideway.engines.base import Arrays, Cache
from guideway.engines.mlx.cache import KeysValues, States, own_cache
from guideway.errors import EngineError

__all__ = ["from_arrays", "to_arrays"]


def to_arrays(cache: Cache) -> Arrays:
    """Return the arrays of a cache. bfloat16 becomes float32."""
    own = own_cache(cache)
    if isinstance(own, States):
        flat = tree_flatten([one.state for one in own.whole])
        return {**{name: _numpy(a) for name, a in flat if a is not None}, "length": np.array([own.length])}
    names = ("key", "value")
    parts = ((i, name, part) for i in range(len(own.layers)) for name, part in zip(names, own.used(i), strict=True))
    return {f"{index}.{name}": _numpy(part) for index, name, part in parts}


def from_arrays(arrays: Arrays, like: KeysValues | States) -> Cache:
    """Return the cache of arrays. `like` is a cache of the model with one token. Raises `EngineError` on mismatch."""
    expected = to_arrays(like)
    first = next(iter(expected))
    if set(arrays) != set(expected):
        raise EngineError(f"expected the arrays {', '.join(expected)} of this model, got {', '.join(arrays)}")
    length = int(np.asarray(arrays["length"]).flat[0]) if isinstance(like, States) else int(arrays[first].shape[2])
    for name, model in expected.items():
        shape = model.shape if isinstance(like, States) else (1, model.shape[1], length, model.shape[3])
        if arrays[name].shape != shape or arrays[name].dtype != model.dtype:
            raise EngineError(f"{name} must be {model.dtype} {shape}, got {arrays[name].dtype} {arrays[name].shape}")
    if isinstance(like, States):
        whole = copy.deepcopy(like.whole)
        flat = tree_flatten([one.state for one in whole])
        filled = [(n, a if a is None else mx.array(np.array(arrays[n])).astype(a.dtype)) for n, a in flat]
        for one, state in zip(whole, tree_unflatten(filled), strict=True):
            one.state = state
        return States(whole, length)
    layers = [
        tuple(mx.array(np.array(arrays[f"{i}.{part}"])).astype(pair[0].dtype) for part in ("key", "value"))
        for i, pair in enumerate(like.layers)
    ]
    return KeysValues(tuple((keys, values) for keys, values in layers), 0, length)


def _numpy(array: Any) -> Any:
    return np.array(array.astype(mx.float32) if array.dtype == mx.bfloat16 else array)
