"""Keeps the caches of transformers in `RowCache` and `StateCache` values of `engines.kv_cache`.

If exactly the rows of a `BatchCache` run again, in the same order and with all their tokens, it is extended in place.
Otherwise the rows are copied to a new one. `row_store.py` describes the rows of models that run them packed
(`TransformersEngine.packs_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guideway.engines.base import Arrays, Cache
from guideway.engines.kv_cache import (
    ArrayOps,
    RowCache,
    StateCache,
    join_rows,
    own_cache,
    own_rows,
    restore_rows,
    restore_state,
    row_caches,
    whole_batch,
)
from guideway.engines.row_store import StoredRow, stored
from guideway.engines.transformers.batch import BatchCache

__all__ = ["TORCH", "gather", "made_caches", "restore"]


def gather(caches: Sequence[Cache | None], cached: int, *, supports_rollback: bool) -> Any:
    """Join the caches of rows with `cached` tokens each to one cache that the model may modify.

    Returns None if there are no tokens and the model does not support rollback. The model then creates a cache.
    """
    given = [cache for cache in caches if cache is not None and cached]
    if not given:
        return BatchCache(TORCH) if supports_rollback else None
    if len(given) == 1 and isinstance(own := own_cache(given[0], TORCH), StateCache):
        return own.copy_whole()
    rows: list[RowCache[BatchCache]] = [own_rows(cache, TORCH) for cache in given]
    if (whole := whole_batch(rows, cached)) is not None:
        return whole.go_on()  # all rows of one batch in the same order: nothing is copied
    return BatchCache(TORCH, join_rows(rows), cached)


def made_caches(cache: Any, length: int, *, supports_rollback: bool) -> list[Cache]:
    """Return a cache for each row of the library's cache after a run. `length`: the number of tokens of each row."""
    if not supports_rollback:
        return [StateCache(TORCH, cache, length)]
    cache.tip = length
    return row_caches(cache, length)


def restore(arrays: Arrays, like: RowCache[BatchCache] | RowCache[StoredRow] | StateCache) -> Cache:
    """Return the cache of exported arrays. `like`: a cache of the same model. Raises `EngineError` for mismatches."""
    if isinstance(like, StateCache):
        return restore_state(arrays, like)
    made, length = restore_rows(arrays, like)
    if isinstance(like.batch, StoredRow):
        return RowCache(stored(TORCH, made, length), 0, length)
    return RowCache(BatchCache(TORCH, made, length), 0, length)


def _places(whole: Any) -> Iterator[tuple[str, dict[Any, Any], Any]]:
    """Yield, for every tensor of a cache, a name, the dictionary that contains it, and its key there."""
    for index, layer in enumerate(whole.layers):
        for name, value in vars(layer).items():
            if isinstance(value, torch.Tensor):
                yield f"{index}.{name}", vars(layer), name
            elif isinstance(value, dict):
                for key, part in value.items():
                    if isinstance(part, torch.Tensor):
                        yield f"{index}.{name}.{key}", value, key


def _replace(whole: Any, tensors: Mapping[str, Any]) -> None:
    for name, place, key in list(_places(whole)):
        place[key] = tensors[name]


def _to_numpy(tensor: Any) -> NDArray[Any]:
    # A copy, because the tokens of a `StoredRow` may be moved later.
    plain = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    found: NDArray[Any] = (plain.view(torch.uint16) if plain.dtype == torch.bfloat16 else plain).numpy()
    return found


def _from_numpy(array: NDArray[Any], like: Any) -> Any:
    made = torch.from_numpy(np.array(array))
    return (made.view(torch.bfloat16) if like.dtype == torch.bfloat16 else made).to(like.device)


TORCH = ArrayOps(
    concat=lambda parts: torch.cat(list(parts)) if len(parts) > 1 else parts[0],
    to_numpy=_to_numpy,
    from_numpy=_from_numpy,
    zeros=lambda shape, like: like.new_zeros(shape),
    copy=lambda tensor: tensor.clone(),
    state_arrays=lambda whole: ((name, place[key]) for name, place, key in _places(whole)),
    replace_state=_replace,
)
"""The operations of this engine. bfloat16 is exported as the same bits in uint16."""
