"""What a step engine is: it runs the model over new tokens, and hands the KV cache back.

The engine keeps nothing between calls. Caches are immutable values in the hands of the caller, so a session forks by
sharing one, goes back by keeping an older or a truncated one, and several sessions use one engine. An engine whose
library changes its caches in place copies when somebody else still holds the old value, and only then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from guideway.errors import ContextOverflowError, EngineError

__all__ = ["Arrays", "Cache", "Draw", "Logits", "StepEngine", "check_rows", "check_truncation", "on_cpu"]

Logits = NDArray[np.float32]
Arrays = Mapping[str, NDArray[np.generic]]
"""What is written to disk: the keys and values of used positions, by the engine's own names."""
Draw = Callable[[Any], Sequence[Sequence[int]] | None]
"""Of `go_on(rows, caches, draw) -> caches`, which engines that rewind may have: `forward`, and on with the rows of new
ids that `draw` gives for the logits (lent for its call), until that is None or a later pass fails. The first raises as
`forward`."""


class Cache(Protocol):
    """The keys and values of one row's tokens, or the state of a recurrent model after them."""

    @property
    def length(self) -> int:
        """How many tokens it covers."""
        ...

    @property
    def nbytes(self) -> int:
        """About how many bytes it keeps alive."""
        ...

    def truncated(self, length: int) -> Cache:
        """The cache of the first `length` tokens; this one is unchanged. Costs the same at any length.

        Raises `ValueError` for a length that it does not have, and where the engine's `supports_rollback` is False.
        """
        ...


class StepEngine(Protocol):
    """A model that runs step by step. `guideway.testing.step_engine_contract` holds one to this contract."""

    @property
    def vocab_size(self) -> int:
        """How wide the logits are: at least, or at most, the tokenizer's vocabulary; models pad it."""
        ...

    @property
    def context_size(self) -> int:
        """How many tokens a row may hold."""
        ...

    @property
    def supports_rollback(self) -> bool:
        """Whether caches can be truncated. Recurrent models cannot; sessions then keep some caches as checkpoints."""
        ...

    @property
    def fingerprint(self) -> str:
        """A digest of the model's weights and shape: equal where a saved cache of one fits the other."""
        ...

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run new tokens of one or many rows.

        `rows[i]`: the new token ids of row i, one or more. `caches[i]`: what stands before them; None: nothing.
        Gives the logits after the last token of each row, float32 [rows, vocab_size], and each row's new cache. The
        caller keeps the logits without copying them: they are an array of their own, which is not written to again. Of
        a model on a device they may be a tensor of PyTorch there, so that they are drawn from where they are.
        Raises `EngineError` where the engine fails; the caches that were given are good then as before.
        """
        ...

    def export(self, cache: Cache) -> Arrays:
        """The cache as arrays of its used positions only."""
        ...

    def restore(self, arrays: Arrays) -> Cache:
        """The cache of what `export` gave, or of a learned prefix in that shape. Raises `EngineError` for misfits."""
        ...

    def close(self) -> None:
        """Give back what the engine holds; running it raises `EngineError` after. A second time does nothing."""
        ...


def on_cpu(logits: Any) -> Logits:
    """Logits as an array, of a tensor on a device too."""
    return logits if isinstance(logits, np.ndarray) else np.asarray(logits.cpu().numpy())


def check_rows(engine: StepEngine, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> None:
    """What every engine refuses before it runs: no new token, an id that is none, more than the context holds."""
    known, room = engine.vocab_size, engine.context_size
    for index, (row, cache) in enumerate(zip(rows, caches, strict=True)):
        count = len(row)
        if not count:
            raise EngineError(f"row {index} has no new token")
        low, high = (row[0], row[0]) if count == 1 else (min(row), max(row))
        if not 0 <= low <= high < known:
            raise EngineError(f"row {index} has a token id outside the model's {known} tokens")
        total = count + (cache.length if cache is not None else 0)
        if total > room:
            raise ContextOverflowError(f"{total} tokens, and the model's context holds {room}")


def check_truncation(cache: Cache, length: int) -> None:
    """Raises `ValueError` for a length that the cache does not have."""
    if not 0 <= length <= cache.length:
        raise ValueError(f"a cache of {cache.length} tokens cannot be truncated to {length}")
