"""What a step engine is: it runs the model over new tokens, and hands the KV cache back.

The engine keeps nothing between calls. Caches are immutable values in the hands of the caller, so a session forks by
sharing one, goes back by keeping an older or a truncated one, and several sessions use one engine. An engine whose
library changes its caches in place copies when somebody else still holds the old value, and only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from guideway.errors import ContextOverflowError, EngineError

__all__ = [
    "Arrays",
    "Cache",
    "Draw",
    "EngineLogits",
    "Logits",
    "LogitsTensor",
    "MultiStepEngine",
    "StepEngine",
    "check_rows",
    "check_truncation",
    "decode_steps",
    "on_cpu",
]

Logits = NDArray[np.float32]
Arrays = Mapping[str, NDArray[np.generic]]
"""What is written to disk: the keys and values of used positions, by the engine's own names."""


class LogitsTensor(Protocol):
    """Logits on the engine's own device: a PyTorch tensor, float [rows, vocabulary] or [vocabulary]."""

    @property
    def shape(self) -> Any:
        """The size of each dimension."""
        ...

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __getitem__(self, index: Any, /) -> Any: ...

    def cpu(self) -> Any:
        """The same tensor in main memory."""
        ...


EngineLogits = Logits | LogitsTensor
"""What an engine returns: a NumPy array, or a tensor on the engine's device, from which tokens are drawn there."""
Draw = Callable[[EngineLogits], Sequence[Sequence[int]] | None]
"""Draws tokens from the logits of all rows: the next ids of each row, or None to stop. For `decode_steps`."""


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

    def forward(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]
    ) -> tuple[EngineLogits, Sequence[Cache]]:
        """Run new tokens of one or many rows.

        Args:
            rows: The new token ids of each row, one or more.
            caches: The cache of the tokens before them, for each row; None: there are none.

        Returns:
            The logits after the last token of each row, float32 [rows, vocab_size], and the new cache of each row. The
            caller keeps the logits without a copy, so the engine must not write to them again. A model on a device may
            return a PyTorch tensor there.

        Raises:
            EngineError: The engine failed. The given caches remain valid.
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


@runtime_checkable
class MultiStepEngine(StepEngine, Protocol):
    """A `StepEngine` with rollback that can also decode several tokens in one call. The method is optional."""

    def decode_steps(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None], draw: Draw
    ) -> Sequence[Cache]:
        """Multi-step decoding: run `forward`, call `draw` with its logits, and repeat with the ids that it returns.

        Args:
            rows: As in `forward`.
            caches: As in `forward`.
            draw: Called after each pass. The logits are only valid during the call. It returns the next ids of each
                row, or None to stop.

        Returns:
            The cache of each row after the last pass that succeeded. A later pass that fails ends the call.

        Raises:
            EngineError: The first pass failed. The given caches remain valid.
        """
        ...


def decode_steps(
    engine: StepEngine, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None], draw: Draw
) -> Sequence[Cache]:
    """`MultiStepEngine.decode_steps` of an engine, or the same by its `forward` where it does not have the method."""
    if hasattr(engine, "decode_steps"):
        return cast(MultiStepEngine, engine).decode_steps(rows, caches, draw)
    logits, made = engine.forward(rows, caches)
    while (more := draw(logits)) is not None:
        try:
            logits, made = engine.forward(more, made)
        except Exception:  # these tokens run again in the next call, which reports the error
            break
    return made


def on_cpu(logits: EngineLogits) -> Logits:
    """Logits as a NumPy array."""
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
