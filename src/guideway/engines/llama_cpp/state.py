"""The state of a recurrent model as an immutable value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guideway.engines.base import Cache, Logits
from guideway.engines.llama_cpp.cache import Pool
from guideway.engines.llama_cpp.context import Context
from guideway.errors import EngineError

__all__ = ["State", "run_state"]


@dataclass(frozen=True, eq=False)
class State:
    """The state of a recurrent model, copied from llama.cpp."""

    data: np.ndarray[Any, np.dtype[np.uint8]]
    length: int

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)

    def truncated(self, length: int) -> State:
        raise ValueError("the state of a recurrent model cannot be truncated; feed the tokens again")


def run_state(context: Context, pool: Pool, row: Sequence[int], cache: Cache | None) -> tuple[Logits, State]:
    """Run a row after a state (None: initial state) in a temporary sequence. Raises `EngineError`."""
    sequence = pool.take()  # released when this function returns
    if cache is not None:
        if not isinstance(cache, State):
            raise EngineError(f"the cache belongs to another engine or model: {type(cache).__name__}")
        sequence.tip = cache.length
        context.put_state(sequence.number, cache.data, sequence.tip)
    logits = context.running.run([sequence], [row])[0].copy()
    return logits, State(context.state(sequence.number), sequence.tip)
