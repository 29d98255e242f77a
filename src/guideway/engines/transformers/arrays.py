"""Conversion of transformers caches to NumPy arrays of used positions, and back."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

from guideway.engines.base import Arrays, Cache
from guideway.engines.transformers.batch import Batch
from guideway.engines.transformers.cache import KeysValues, States, own_cache, tensors
from guideway.errors import EngineError

__all__ = ["fill_states", "from_arrays", "to_arrays"]


def to_arrays(cache: Cache) -> Arrays:
    """Return the arrays of a cache."""
    if isinstance(cache, States):
        found = {name: _numpy(place[key]) for name, place, key in tensors(cache.whole)}
        return {**found, "length": np.array([cache.length])}
    own = own_cache(cache)
    names = ("key", "value")
    return {
        f"{index}.{name}": _numpy(tensor[own.row : own.row + 1, :, : own.length])
        for index, pair in enumerate(own.layers)
        for name, tensor in zip(names, pair, strict=True)
    }


def from_arrays(arrays: Arrays, like: KeysValues) -> KeysValues:
    """Return the cache of arrays. `like` is a cache of the same model. Raises `EngineError` for mismatches."""
    first = arrays.get("0.key")
    length = first.shape[2] if first is not None and first.ndim == 4 else 0
    layers = []
    for index, pair in enumerate(like.layers):
        made = []
        for name, tensor in zip(("key", "value"), pair, strict=True):
            expected = (1, tensor.shape[1], length, tensor.shape[3])
            made.append(_tensor(arrays, f"{index}.{name}", expected, tensor))
        layers.append((made[0], made[1]))
    if len(arrays) != 2 * len(layers):
        raise EngineError(f"a cache of this model needs {2 * len(layers)} arrays, got {len(arrays)}")
    return KeysValues(Batch(layers, length), 0, length)


def fill_states(arrays: Arrays, like: States) -> States:
    """Like `from_arrays`, for caches that are kept whole."""
    lengths = arrays.get("length")
    if lengths is None or lengths.shape != (1,):
        raise EngineError("a cache of this model needs an array 'length' of shape (1,)")
    whole = copy.deepcopy(like.whole)
    for name, place, key in tensors(whole):
        place[key] = _tensor(arrays, name, tuple(place[key].shape), place[key])
    return States(whole, int(np.asarray(lengths, dtype=np.int64)[0]))


def _tensor(arrays: Arrays, name: str, shape: tuple[int, ...], like: Any) -> Any:
    array = arrays.get(name)
    if array is None or array.shape != shape or array.dtype != _numpy(like[:0]).dtype:
        got = "nothing" if array is None else f"{array.dtype} {array.shape}"
        raise EngineError(f"{name} must be {_numpy(like[:0]).dtype} {shape}, got {got}")
    made = torch.from_numpy(np.array(array))
    return (made.view(torch.bfloat16) if like.dtype == torch.bfloat16 else made).to(like.device)


def _numpy(tensor: Any) -> Any:
    plain = tensor.detach().cpu().contiguous()
    return (plain.view(torch.uint16) if plain.dtype == torch.bfloat16 else plain).numpy()
