"""The protocol of step engines: an engine runs a model on new tokens and returns the KV cache.

An engine keeps no state between calls. Caches are immutable values that the caller owns: a session forks by sharing a
cache, rewinds by keeping an older or truncated one, and several sessions can use one engine. An engine whose library
modifies caches in place copies a cache only if someone else still holds the old value.
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
"""An exported cache: keys and values of used positions, by names that the engine defines."""
Draw = Callable[[Any], Sequence[Sequence[int]] | None]
"""The callback of `go_on(rows, caches, draw) -> caches`, an optional multi-step decode of engines with rollback.

`go_on` runs `forward`, calls `draw(logits)` for the next token ids per row, and repeats until `draw` returns None or a
later pass fails. The logits are only valid during the call of `draw`. A failure of the first pass raises as `forward`
does."""


class Cache(Protocol):
    """The keys and values of the tokens of one row, or the state of a recurrent model after them. Immutable."""

    @property
    def length(self) -> int:
        """Number of tokens."""
        ...

    @property
    def nbytes(self) -> int:
        """Approximate size of the memory that it keeps alive, in bytes."""
        ...

    def truncated(self, length: int) -> Cache:
        """Return the cache of the first `length` tokens. This cache is unchanged. The cost does not depend on `length`.

        Raises:
            ValueError: The cache has fewer tokens, or the engine does not support rollback.
        """
        ...


class StepEngine(Protocol):
    """A model that runs step by step. `guideway.testing.step_engine_contract` tests implementations."""

    @property
    def vocab_size(self) -> int:
        """Width of the logits. Models pad it, so it can differ from the size of the tokenizer's vocabulary."""
        ...

    @property
    def context_size(self) -> int:
        """Maximum number of tokens per row."""
        ...

    @property
    def supports_rollback(self) -> bool:
        """Whether caches can be truncated. If not (recurrent models), sessions keep some caches as checkpoints."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of weights and shape. Saved caches can be exchanged between models with equal fingerprints."""
        ...

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run new tokens of one or more rows.

        Args:
            rows: The new token ids of each row, at least one per row.
            caches: The cache of the preceding tokens of each row; None: no preceding tokens.

        Returns:
            The logits after the last token of each row, float32, shape [rows, vocab_size], and the new cache of each
            row. The caller keeps the logits without copying, so the engine must not write to them again. Logits on a
            device can be returned as a PyTorch tensor, which is then sampled on that device.

        Raises:
            EngineError: The model failed. The given caches are still valid.
        """
        ...

    def export(self, cache: Cache) -> Arrays:
        """Return the cache as arrays of its used positions."""
        ...

    def restore(self, arrays: Arrays) -> Cache:
        """Return the cache of exported arrays, or of a soft prompt in that form.

        Raises:
            EngineError: The arrays do not match the model.
        """
        ...

    def close(self) -> None:
        """Release the model. Later calls raise `EngineError`. Closing again has no effect."""
        ...


def on_cpu(logits: Any) -> Logits:
    """Return logits as a NumPy array."""
    return logits if isinstance(logits, np.ndarray) else np.asarray(logits.cpu().numpy())


def check_rows(engine: StepEngine, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> None:
    """Check the arguments of `forward`.

    Raises:
        EngineError: A row has no new token, or a token id is not in the model's vocabulary.
        ContextOverflowError: A row has more tokens than the context.
    """
    known, room = engine.vocab_size, engine.context_size
    for index, (row, cache) in enumerate(zip(rows, caches, strict=True)):
        count = len(row)
        if not count:
            raise EngineError(f"row {index} needs at least one new token, got none")
        low, high = (row[0], row[0]) if count == 1 else (min(row), max(row))
        if not 0 <= low <= high < known:
            raise EngineError(f"row {index}: token ids must be in 0..{known - 1}, got {low if low < 0 else high}")
        total = count + (cache.length if cache is not None else 0)
        if total > room:
            raise ContextOverflowError(f"row {index} has {total} tokens, but the context of the model is {room} tokens")


def check_truncation(cache: Cache, length: int) -> None:
    """Raise `ValueError` if the cache does not have this length."""
    if not 0 <= length <= cache.length:
        raise ValueError(f"a cache of {cache.length} tokens cannot be truncated to {length} tokens")
