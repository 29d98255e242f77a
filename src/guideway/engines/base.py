"""The protocol of engines: an engine runs a model on new tokens and returns the KV cache.

The state of a sequence belongs to its cache, an immutable value that the caller keeps: a session forks by sharing a
cache, and rewinds by truncating it or by returning to an older one. Several sessions can use one engine.
If the library of an engine modifies caches in place, the engine first copies a cache if its change would also change
another `Cache` value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from guideway.errors import ContextOverflowError, EngineError

__all__ = [
    "SHORTEST_PREFIX",
    "Arrays",
    "Cache",
    "Draw",
    "EngineLogits",
    "Logits",
    "LogitsTensor",
    "MultiStepEngine",
    "StepEngine",
    "VerifyingEngine",
    "batch_tolerance",
    "check_rows",
    "check_truncation",
    "decode_steps",
    "prefix_limit",
    "runs_prompts_separately",
    "shortest_prefix",
    "splits_rows",
]

Logits = NDArray[np.float32]
Arrays = Mapping[str, NDArray[np.generic]]
"""An exported cache: arrays by names that the engine defines. Positions that no token uses are left out."""


class LogitsTensor(Protocol):
    """Logits on the device of the engine: a PyTorch tensor, float [rows, vocabulary] or [vocabulary]."""

    @property
    def shape(self) -> Any:
        """Size of each dimension."""
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
"""The logits that an engine returns: a NumPy array, or a tensor on its device, where tokens are then drawn."""
Draw = Callable[[EngineLogits], Sequence[Sequence[int]] | None]
"""The callback of `decode_steps`: it samples from the logits of all rows.

It returns the ids that run next for each row; None ends the call.
"""


class Cache(Protocol):
    """The keys and values of the tokens of one row, or the state of a recurrent model after these tokens. Immutable."""

    @property
    def length(self) -> int:
        """Number of tokens."""
        ...

    @property
    def nbytes(self) -> int:
        """Approximate size of the cache in memory, in bytes. Memory that several caches share is counted for each."""
        ...

    def truncated(self, length: int) -> Cache:
        """Return the cache of the first `length` tokens. This cache is unchanged.

        Raises:
            ValueError: `length` is negative or greater than `self.length`, or the engine does not support rollback.
        """
        ...


class StepEngine(Protocol):
    """A model that runs step by step. `guideway.testing.step_engine_contract` tests implementations.

    An engine may also have the attributes `batch_tolerance`, `shortest_prefix`, `prefix_limit`,
    `runs_prompts_separately` and `splits_rows`. The functions of these names read them.
    """

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
        """Whether caches can be truncated.

        If not (recurrent models, sliding windows), a session keeps older caches to rewind to.
        """
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of the weights. A saved session is only loaded for a model with the same fingerprint."""
        ...

    def forward(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]
    ) -> tuple[EngineLogits, Sequence[Cache]]:
        """Run new tokens of one or more rows.

        Args:
            rows: The new token ids of each row, at least one per row.
            caches: The cache of the preceding tokens of each row; None: no preceding tokens.

        Returns:
            The logits after the last token of each row, float32, shape [rows, vocab_size], and the new cache of each
            row. The caller keeps the logits without copying, so the engine must not write to them again. Logits on a
            device can be returned as a PyTorch tensor.

        Raises:
            EngineError: The model failed, or an argument was refused (see `check_rows`). The given caches are still
                valid.
        """
        ...

    def export(self, cache: Cache) -> Arrays:
        """Return the contents of a cache as arrays. `restore` makes an equal cache from them."""
        ...

    def restore(self, arrays: Arrays) -> Cache:
        """Return the cache of arrays that `export` returned, or of a soft prompt given as such arrays.

        Raises:
            EngineError: The arrays do not match the model.
        """
        ...

    def close(self) -> None:
        """Release the model. Later calls of `forward` raise `EngineError`. Closing again has no effect."""
        ...


@runtime_checkable
class MultiStepEngine(StepEngine, Protocol):
    """A `StepEngine` with rollback that can also decode several tokens in one call."""

    def decode_steps(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None], draw: Draw
    ) -> Sequence[Cache]:
        """Multi-step decoding: run `forward`, call `draw` with its logits, and repeat with the ids that it returns.

        Args:
            rows: As in `forward`.
            caches: As in `forward`.
            draw: Called after each forward pass. The logits are only valid during the call of `draw`, which returns
                the next ids per row, or None to stop.

        Returns:
            The cache of each row after the last pass that succeeded. A later pass that fails ends the call.

        Raises:
            EngineError: The first pass failed. The given caches are still valid.
        """
        ...


@runtime_checkable
class VerifyingEngine(StepEngine, Protocol):
    """A `StepEngine` with `supports_rollback` that can return the logits after each of several new tokens."""

    def forward_all(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]
    ) -> tuple[Sequence[EngineLogits], Sequence[Cache]]:
        """Run new tokens as `forward` does.

        Args:
            rows: As in `forward`. Only few tokens per row should be given, because the logits of all are returned.
            caches: As in `forward`.

        Returns:
            For each row the logits after each of its new tokens, float32 [tokens, vocab_size], and the new caches.

        Raises:
            EngineError: As in `forward`.
        """
        ...


def batch_tolerance(engine: StepEngine) -> float:
    """Return the attribute `batch_tolerance` of an engine; 0.0 if it has none.

    0.0 means that nothing is known. A positive number is an estimated limit. If other rows run in the same call, or if
    the tokens of a row are divided into calls in another way, the difference of two logits of the row changes by less
    than this number.
    """
    return float(getattr(engine, "batch_tolerance", 0.0))


SHORTEST_PREFIX = 16
"""The default of `shortest_prefix`. Running shorter prefixes again takes less time than storing them."""


def shortest_prefix(engine: StepEngine) -> int:
    """Return the attribute `shortest_prefix` of an engine; `SHORTEST_PREFIX` without the attribute.

    Prefixes of prompts with fewer tokens are not kept for later prompts.
    """
    return int(getattr(engine, "shortest_prefix", SHORTEST_PREFIX))


def prefix_limit(engine: StepEngine, budget_bytes: int) -> int:
    """Return the attribute `prefix_limit` of an engine, or `budget_bytes` if that is less or there is no attribute.

    The attribute is the maximum size in bytes of all prefixes of prompts that are kept for later prompts.
    """
    return min(budget_bytes, int(getattr(engine, "prefix_limit", budget_bytes)))


def runs_prompts_separately(engine: StepEngine) -> bool:
    """Return the attribute `runs_prompts_separately` of an engine; False if it has none.

    The attribute is true if `forward` usually runs prompts in other calls of the model than rows with one new token.
    One call of `forward` for the prompts and one for the other rows then take no longer than one for all.
    """
    return bool(getattr(engine, "runs_prompts_separately", False))


def splits_rows(engine: StepEngine) -> bool:
    """Return the attribute `splits_rows` of an engine; False if it has none.

    The attribute is true if `forward` runs rows with equal numbers of new tokens in one call of the model, also if they
    have different numbers of cached tokens, but may run rows with different numbers of new tokens in several calls.
    """
    return bool(getattr(engine, "splits_rows", False))


def decode_steps(
    engine: StepEngine, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None], draw: Draw
) -> Sequence[Cache]:
    """Call `MultiStepEngine.decode_steps`, or do the same with `forward` if the engine does not have the method."""
    if hasattr(engine, "decode_steps"):
        return cast(MultiStepEngine, engine).decode_steps(rows, caches, draw)
    logits, made = engine.forward(rows, caches)
    while (more := draw(logits)) is not None:
        try:
            logits, made = engine.forward(more, made)
        except Exception:  # the caller runs these tokens again in its next call, which raises the error
            break
    return made


def check_rows(engine: StepEngine, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> None:
    """Check the arguments of `forward`.

    Raises:
        EngineError: A row has no new token, or a token id is not in the range from 0 to `vocab_size` - 1.
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
    """Raise `ValueError` if the cache has fewer than `length` tokens, or `length` is negative."""
    if not 0 <= length <= cache.length:
        raise ValueError(f"a cache of {cache.length} tokens cannot be truncated to {length} tokens")
