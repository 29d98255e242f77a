"""Caches of mlx-lm as immutable values.

Keys and values per layer have the shape [row, head, token, channel]. They are sliced when they are used, and every run
makes new arrays. Other caches (recurrent states, sliding windows) are kept whole, copied before they are modified, and
cannot be truncated.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models.cache import KVCache

from guideway.engines.base import Cache, check_truncation
from guideway.errors import EngineError

__all__ = ["KeysValues", "States", "gather", "given_out", "own_cache"]


@dataclass(frozen=True)
class KeysValues:
    """The first `length` tokens of one row of (keys, values) per layer."""

    layers: tuple[tuple[Any, Any], ...]
    row: int
    length: int

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes // part.shape[0] for pair in self.layers for part in pair)

    def truncated(self, length: int) -> KeysValues:
        check_truncation(self, length)
        return KeysValues(self.layers, self.row, length)

    def used(self, layer: int) -> list[Any]:
        return [part[self.row : self.row + 1, :, : self.length] for part in self.layers[layer]]


@dataclass(frozen=True)
class States:
    """A complete cache of mlx-lm, which is never modified."""

    whole: Any
    length: int

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for _, array in tree_flatten([one.state for one in self.whole]) if array is not None)

    def truncated(self, length: int) -> States:
        raise ValueError("the state of a recurrent model cannot be truncated; feed the tokens again")


def gather(caches: Sequence[Cache | None], empty: Any) -> Any:
    """Return the joined cache of rows with equal lengths, which the model may modify."""
    own = [own_cache(cache) for cache in caches if cache is not None and cache.length]
    if not own:
        return empty
    if isinstance(own[0], States):
        return copy.deepcopy(own[0].whole)
    rows = [one for one in own if isinstance(one, KeysValues)]
    made = []
    for layer in range(len(rows[0].layers)):
        one = KVCache()
        parts = zip(*(row.used(layer) for row in rows), strict=True)
        one.keys, one.values = (mx.concatenate(list(part)) if len(part) > 1 else part[0] for part in parts)
        one.offset = rows[0].length
        made.append(one)
    return made


def given_out(cache: Any, rows: int, length: int, *, supports_rollback: bool) -> list[Cache]:
    """Return the values of the rows of a cache after a run."""
    if not supports_rollback:
        return [States(cache, length)]
    layers = tuple(tuple(one.keys_and_values()) for one in cache)
    return [KeysValues(layers, row, length) for row in range(rows)]


def own_cache(cache: Cache) -> KeysValues | States:
    """Check the type of a cache. Raises `EngineError` for caches of other engines."""
    if not isinstance(cache, (KeysValues, States)):
        raise EngineError(f"the cache belongs to another engine or model: {type(cache).__name__}")
    return cache
