"""A model that gives the same logits after every text: the simplest model that passes `step_engine_contract`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from guideway.engines.base import Arrays, Cache, Logits, check_rows, check_truncation
from guideway.engines.kv_cache import closed_model
from guideway.errors import EngineError
from guideway.generation import Model
from guideway.tokenizers import Tokenizer, Vocabulary

__all__ = ["ConstantEngine", "ConstantModel"]


@dataclass(frozen=True)
class _Count:
    """A cache that consists only of the number of tokens."""

    length: int

    nbytes = 0

    def truncated(self, length: int) -> _Count:
        check_truncation(self, length)
        return _Count(length)


class ConstantEngine:
    """An engine that gives the same logits after any tokens. `logits`: one-dimensional; copied as float32."""

    supports_rollback = True

    def __init__(self, logits: ArrayLike, *, context_size: int = 4096) -> None:
        self._logits = np.array(logits, dtype=np.float32)
        if self._logits.ndim != 1 or not self._logits.size:
            raise EngineError(f"constant logits must have one dimension, got the shape {self._logits.shape}")
        self.context_size = context_size
        self._closed = False

    @property
    def vocab_size(self) -> int:
        return self._logits.size

    @property
    def fingerprint(self) -> str:
        return hashlib.blake2b(self._logits.tobytes(), digest_size=16).hexdigest()

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`."""
        if self._closed:
            raise closed_model()
        check_rows(self, rows, caches)
        lengths = [cache.length if cache is not None else 0 for cache in caches]
        made: list[Cache] = [_Count(n + len(row)) for n, row in zip(lengths, rows, strict=True)]
        return np.tile(self._logits, (len(rows), 1)), made

    def export(self, cache: Cache) -> Arrays:
        return {"length": np.array([cache.length])}

    def restore(self, arrays: Arrays) -> Cache:
        if set(arrays) != {"length"} or arrays["length"].shape != (1,) or arrays["length"].dtype != np.int64:
            raise EngineError(f"a cache here is one length, got {', '.join(arrays)}")
        return _Count(int(arrays["length"][0]))

    def close(self) -> None:
        self._closed = True


class ConstantModel(Model):
    """A model with a vocabulary or tokenizer that gives the same logits at every step.

    `logits`: one number for each token id; None: all are 0.
    """

    def __init__(
        self, vocabulary: Vocabulary | Tokenizer, logits: ArrayLike | None = None, *, context_size: int = 4096
    ) -> None:
        tokenizer = Tokenizer.of(vocabulary)
        values = np.zeros(len(tokenizer.vocabulary)) if logits is None else logits
        super().__init__(ConstantEngine(values, context_size=context_size), tokenizer, name="constant")
