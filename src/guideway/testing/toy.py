"""A small model: every token affects the logits, and equal sequences of tokens give exactly equal logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guideway.engines.base import Arrays, Cache, Logits, check_rows, check_truncation
from guideway.engines.kv_cache import closed_model, foreign_cache, state_not_truncated
from guideway.errors import EngineError

__all__ = ["ToyEngine"]

_WIDTH = 16
State = NDArray[np.float32]


@dataclass(frozen=True)
class _States:
    """The state after each token, or only after the last if the model does not support rollback."""

    states: tuple[State, ...]
    length: int
    supports_rollback: bool

    @property
    def nbytes(self) -> int:
        return sum(state.nbytes for state in self.states)

    def truncated(self, length: int) -> _States:
        if not self.supports_rollback:
            raise state_not_truncated()
        check_truncation(self, length)
        return _States(self.states[:length], length, True)


class ToyEngine:
    """A recurrent network of random weights that are drawn from a seed.

    The logits do not depend on the batch or on the division into calls, so tests of sessions can require exact
    equality. `supports_rollback`: whether caches contain the states after all tokens, so that they can be truncated.
    """

    def __init__(
        self, vocab_size: int, *, seed: int = 0, context_size: int = 4096, supports_rollback: bool = True
    ) -> None:
        random = np.random.default_rng(seed)
        self._embedding = random.normal(0, 1, (vocab_size, _WIDTH)).astype(np.float32)
        self._turn = random.normal(0, _WIDTH**-0.5, (_WIDTH, _WIDTH)).astype(np.float32)
        self._head = random.normal(0, 1, (_WIDTH, vocab_size)).astype(np.float32)
        self.vocab_size = vocab_size
        self.context_size = context_size
        self.supports_rollback = supports_rollback
        self.fingerprint = f"toy {vocab_size} {seed} {supports_rollback}"
        self._closed = False

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`."""
        if self._closed:
            raise closed_model()
        check_rows(self, rows, caches)
        made: list[Cache] = []
        logits = np.empty((len(rows), self.vocab_size), dtype=np.float32)
        for index, (row, cache) in enumerate(zip(rows, caches, strict=True)):
            before = self._own(cache) if cache is not None else _States((), 0, self.supports_rollback)
            states = list(before.states)
            for token_id in row:
                last = states[-1] if states else np.zeros(_WIDTH, dtype=np.float32)
                states.append(np.tanh(last @ self._turn + self._embedding[token_id]))
            kept = tuple(states) if self.supports_rollback else (states[-1],)
            made.append(_States(kept, before.length + len(row), self.supports_rollback))
            logits[index] = states[-1] @ self._head
        return logits, made

    def export(self, cache: Cache) -> Arrays:
        own = self._own(cache)
        return {"states": np.array(own.states, dtype=np.float32), "length": np.array([own.length])}

    def restore(self, arrays: Arrays) -> Cache:
        if set(arrays) != {"states", "length"} or arrays["length"].shape != (1,):
            raise EngineError(f"a cache here is states and a length, got {', '.join(arrays)}")
        states, length = arrays["states"], int(np.asarray(arrays["length"], dtype=np.int64)[0])
        if states.dtype != np.float32 or states.shape != (length if self.supports_rollback else 1, _WIDTH):
            raise EngineError(f"states of {length} tokens with the shape {states.shape}")
        return _States(tuple(np.array(states, dtype=np.float32)), length, self.supports_rollback)

    def close(self) -> None:
        self._closed = True

    def _own(self, cache: Cache) -> _States:
        if not isinstance(cache, _States):
            raise foreign_cache(cache)
        return cache
