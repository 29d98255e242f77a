"""Caches of transformers as values.

Keys and values per layer, [row, head, token, channel], are cut to their length when they are used: `DynamicCache`
appends by making new tensors, so the old ones never change, and a fork or a rewind copies nothing; a batch that goes
on whole goes on in the library's own object. What is no such
cache (recurrent states, sliding windows) is kept whole and copied before it is changed; it cannot be truncated.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache

from guideway.engines.base import Cache, check_truncation
from guideway.errors import EngineError

__all__ = ["Batch", "KeysValues", "States", "gather", "given_out", "own_cache", "tensors"]


@dataclass
class Batch:
    """What one run left: (keys, values) per layer, and the library's own object that has them, until it runs on."""

    layers: tuple[tuple[Any, Any], ...]
    live: Any = None


@dataclass(frozen=True)
class KeysValues:
    """One row of a batch, of which the first `length` tokens count."""

    batch: Batch
    row: int
    length: int

    @property
    def layers(self) -> tuple[tuple[Any, Any], ...]:
        return self.batch.layers

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes // part.shape[0] for pair in self.layers for part in pair)

    def truncated(self, length: int) -> KeysValues:
        check_truncation(self, length)
        return KeysValues(self.batch, self.row, length)


@dataclass(frozen=True)
class States:
    """A whole cache of transformers, which nobody changes."""

    whole: Any
    length: int

    @property
    def nbytes(self) -> int:
        return sum(place[key].nbytes for _, place, key in tensors(self.whole))

    def truncated(self, length: int) -> States:
        raise ValueError("the state of a recurrent model cannot be truncated")


def gather(caches: Sequence[Cache | None], cached: int) -> Any:
    """What these rows, of equal lengths, have before their new tokens, for the model to change; None: nothing."""
    rows = [cache for cache in caches if cache is not None and cached]
    if not rows:
        return None
    if len(rows) == 1 and isinstance(rows[0], States):
        return copy.deepcopy(rows[0].whole)
    own = [own_cache(cache) for cache in rows]
    first = own[0].batch
    count, _, there, _ = first.layers[0][0].shape
    together = all(c.batch is first for c in own) and [c.row for c in own] == list(range(count))
    if together and there == cached and first.live is not None:
        live, first.live = first.live, None  # it goes on by making new tensors; those of `first` stay as they are
        return live
    made = DynamicCache()
    for layer in range(len(first.layers)):
        if together:  # the batch that ran last, whole and in order: nothing to put together
            keys, values = (part[:, :, :cached] for part in first.layers[layer])
            made.update(keys, values, layer)
            continue
        parts = [[c.layers[layer][part][c.row : c.row + 1, :, :cached] for c in own] for part in (0, 1)]
        keys, values = (torch.cat(part) if len(part) > 1 else part[0] for part in parts)
        made.update(keys, values, layer)
    return made


def given_out(cache: Any, rows: int, length: int, *, rewinds: bool) -> list[Cache]:
    """The model's cache after it ran, row by row."""
    if not rewinds:
        return [States(cache, length)]
    batch = Batch(tuple((layer.keys, layer.values) for layer in cache.layers), live=cache)
    return [KeysValues(batch, row, length) for row in range(rows)]


def tensors(whole: Any) -> Iterator[tuple[str, dict[Any, Any], Any]]:
    """Every tensor of a cache: its name, the dictionary it stands in, and its key there."""
    for index, layer in enumerate(whole.layers):
        for name, value in vars(layer).items():
            if isinstance(value, torch.Tensor):
                yield f"{index}.{name}", vars(layer), name
            elif isinstance(value, dict):
                for key, part in value.items():
                    if isinstance(part, torch.Tensor):
                        yield f"{index}.{name}.{key}", value, key


def own_cache(cache: Cache) -> KeysValues:
    """Raises `EngineError` for what is none of these."""
    if not isinstance(cache, KeysValues):
        raise EngineError(f"a cache of another engine: {type(cache).__name__}")
    return cache
