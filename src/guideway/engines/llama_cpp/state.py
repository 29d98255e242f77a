"""Runs recurrent models. Their states are `StateCache` values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from guideway.engines.base import Cache, Logits
from guideway.engines.kv_cache import ArrayOps, StateCache, own_state
from guideway.engines.llama_cpp.cache import SequencePool
from guideway.engines.llama_cpp.context import Context

__all__ = ["LLAMA", "run_state"]

LLAMA = ArrayOps(concat=np.concatenate, to_numpy=np.ascontiguousarray, from_numpy=lambda array, _: np.array(array))
"""The operations of this engine. A state is one array of bytes."""


def run_state(
    context: Context, pool: SequencePool, row: Sequence[int], cache: Cache | None, *, active: int
) -> tuple[Logits, StateCache]:
    """Run the new tokens of a row after a state, in a temporary sequence. Raises `EngineError`.

    `cache`: the state; None: the initial state. `active`: as for `Running.run`.
    """
    # When this function returns, the sequence is garbage-collected. A later call releases its number.
    sequence = pool.take()
    if cache is not None:
        own = own_state(cache, LLAMA)
        sequence.tip = own.length
        context.put_state(sequence.number, own.whole, sequence.tip)
    logits = context.running.run([sequence], [row], active=active)[0].copy()
    return logits, StateCache(LLAMA, context.state(sequence.number), sequence.tip)
