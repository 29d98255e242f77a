"""Caches of transformers as immutable values.

Keys and values per layer have the shape [row, head, token, channel]. They are only appended to, so a value with fewer
tokens of a batch stays valid, and forks and rewinds copy nothing. A complete batch is extended in place; other rows are
copied when they are extended. Other caches (recurrent states, sliding windows) are kept whole, copied before they are
modified, and cannot be truncated.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from guideway.engines.base import Cache, check_truncation
from guideway.engines.transformers.batch import Batch
from guideway.errors import EngineError

__all__ = ["KeysValues", "States", "gather", "given_out", "own_cache", "tensors"]


class KeysValues:
    """The first `length` tokens of one row of a batch."""

    __slots__ = ("batch", "length", "row")

    def __init__(self, batch: Batch, row: int, length: int) -> None:
        self.batch, self.row, self.length = batch, row, length

    @property
    def layers(self) -> list[tuple[Any, Any]]:
        return self.batch.pairs()

    @property
    def nbytes(self) -> int:
        return self.batch.row_bytes

    def truncated(self, length: int) -> KeysValues:
        check_truncation(self, length)
        return KeysValues(self.batch, self.row, length)


@dataclass(frozen=True)
class States:
    """A complete cache of transformers, which is never modified."""

    whole: Any
    length: int

    @property
    def nbytes(self) -> int:
        return sum(place[key].nbytes for _, place, key in tensors(self.whole))

    def truncated(self, length: int) -> States:
        raise ValueError("the state of a recurrent model cannot be truncated; feed the tokens again")


def gather(caches: Sequence[Cache | None], cached: int, *, supports_rollback: bool) -> Any:
    """Return the joined cache of rows with equal lengths, to be modified; None: the model creates its own."""
    rows = [cache for cache in caches if cache is not None and cached]
    if not rows:
        return Batch() if supports_rollback else None
    if len(rows) == 1 and isinstance(rows[0], States):
        return copy.deepcopy(rows[0].whole)
    own = [own_cache(cache) for cache in rows]
    first = own[0].batch
    layers = first.pairs()
    whole = len(own) == layers[0][0].shape[0] and all(c.batch is first and c.row == i for i, c in enumerate(own))
    if whole and first.tip == cached:
        return first.go_on()  # the previous batch, in the same order
    held, made = [c.layers for c in own], []
    for index in range(len(layers)):
        pairs = [one[index] for one in held]
        parts = ([pair[n][c.row : c.row + 1, :, :cached] for pair, c in zip(pairs, own, strict=True)] for n in (0, 1))
        keys, values = (torch.cat(part) if len(part) > 1 else part[0] for part in parts)
        made.append((keys, values))
    return Batch(made, cached)


def given_out(cache: Any, rows: int, length: int, *, supports_rollback: bool) -> list[Cache]:
    """Return the values of the rows of a cache after a run."""
    if not supports_rollback:
        return [States(cache, length)]
    cache.tip = length
    return [KeysValues(cache, row, length) for row in range(rows)]


def tensors(whole: Any) -> Iterator[tuple[str, dict[Any, Any], Any]]:
    """Yield every tensor of a cache: its name, the dictionary that has it, and the key."""
    for index, layer in enumerate(whole.layers):
        for name, value in vars(layer).items():
            if isinstance(value, torch.Tensor):
                yield f"{index}.{name}", vars(layer), name
            elif isinstance(value, dict):
                for key, part in value.items():
                    if isinstance(part, torch.Tensor):
                        yield f"{index}.{name}.{key}", value, key


def own_cache(cache: Cache) -> KeysValues:
    """Check the type of a cache. Raises `EngineError` for caches of other engines."""
    if not isinstance(cache, KeysValues):
        raise EngineError(f"the cache belongs to another engine or model: {type(cache).__name__}")
    return cache
