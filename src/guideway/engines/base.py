"""What a step engine is: it runs the model over new tokens, and hands the KV cache back.

The engine keeps nothing between calls. Caches are immutable values in the hands of the caller, so a session forks by
sharing one, goes back by keeping an older or a truncated one, and several sessions use one engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cache", "Logits", "StepEngine"]

Logits = NDArray[np.float32]


class Cache(Protocol):
    """The keys and values of one row's tokens."""

    @property
    def length(self) -> int:
        """How many tokens it covers."""
        ...

    def truncated(self, length: int) -> Cache:
        """The cache of the first `length` tokens; this one is unchanged. Costs nothing worth naming."""
        ...


class StepEngine(Protocol):
    """A model that runs step by step. `guideway.testing.check_step_engine` holds one to this contract."""

    @property
    def vocab_size(self) -> int:
        """How wide the logits are: at least, or at most, the tokenizer's vocabulary; models pad it."""
        ...

    @property
    def context_size(self) -> int:
        """How many tokens a row may hold."""
        ...

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run new tokens of one or many rows.

        `rows[i]`: the new token ids of row i, one or more. `caches[i]`: what stands before them; None: nothing.
        Gives the logits after the last token of each row, float32 [rows, vocab_size], and each row's new cache.
        Raises `EngineError` where the engine fails; nothing has changed then.
        """
        ...

    def close(self) -> None:
        """Give back what the engine holds; it is not used after."""
        ...
