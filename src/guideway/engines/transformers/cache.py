"""Caches of transformers as values.

Keys and values per layer, [row, head, token, channel], only ever grow, so whoever holds fewer tokens of a batch finds
them unchanged, and a fork or a rewind copies nothing; a batch that goes on whole goes on in place, what goes another
way is copied then. What is no such cache (recurrent states, sliding windows) is kept whole and copied before it is
changed; it cannot be truncated.
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
    """One row of a batch, of which the first `length` tokens count."""

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
    """A whole cache of transformers, which nobody changes."""

    whole: Any
    length: int

    @property
    def nbytes(self) -> int:
        return sum(place[key].nbytes for _, place, key in tensors(self.whole))

    def truncated(self, length: int) -> States:
        raise ValueError("the state of a recurrent model cannot be truncated")


def gather(caches: Sequence[Cache | None], cached: int, *, supports_rollback: bool) -> Any:
    """What these rows, of equal lengths, have before their new tokens, to be changed; None: the model makes its own."""
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
        return first.go_on()  # the batch that ran last, in order
    held, made = [c.layers for c in own], []
    for index in range(len(layers)):
        pairs = [one[index] for one in held]
        parts = ([pair[n][c.row : c.row + 1, :, :cached] for pair, c in zip(pairs, own, strict=True)] for n in (0, 1))
        keys, values = (torch.cat(part) if len(part) > 1 else part[0] for part in parts)
        made.append((keys, values))
    return Batch(made, cached)


def given_out(cache: Any, rows: int, length: int, *, supports_rollback: bool) -> list[Cache]:
    """The model's cache after it ran, row by row."""
    if not supports_rollback:
        return [States(cache, length)]
    cache.tip = length
    return [KeysValues(cache, row, length) for row in range(rows)]


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
