"""`LlamaCppEngine`: a `StepEngine` for GGUF files, with many sequences in one llama.cpp context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from guideway.arguments import short_repr
from guideway.engines.base import SHORTEST_PREFIX, Arrays, Cache, Draw, EngineLogits, Logits, check_rows
from guideway.engines.config import digest_of
from guideway.engines.kv_cache import StateCache, closed_model, export_cache, foreign_cache
from guideway.engines.llama_cpp.cache import CachedPrefix, CellSequence, Saved, SequencePool
from guideway.engines.llama_cpp.context import Context
from guideway.engines.llama_cpp.state import LLAMA, run_state
from guideway.engines.llama_cpp.streams import Arranger
from guideway.errors import EngineError
from guideway.sampling import on_cpu

__all__ = ["LlamaCppEngine"]


_SHORTEST_PREFIX = 256
"""The minimum number of tokens of a prefix that is kept for later prompts.

Attention reads the cells of all sequences in each call, those of kept prefixes included. Keeping short prefixes
costs more time than running them again.
"""

_FORCED = 8
"""A usual number of forced tokens: a key of a JSON object with its quotation marks."""


class LlamaCppEngine:
    """A model from a GGUF file, or the model of a `llama_cpp.Llama`, with a separate context.

    Models with recurrent states or sliding windows run one row at a time and do not support rollback.

    Args:
        path: The file, or a `llama_cpp.Llama`, whose weights are used. The `Llama` must stay open; its context is
            not changed.
        device: "cpu", or "gpu" if this build of llama.cpp supports one. It has no effect on a `llama_cpp.Llama`.
        dtype: Type of the KV cache: "float32" or "float16". With "float16", results depend more on how tokens were
            divided into calls.
        context_size: Maximum number of tokens per row. None: the context size of the model.
        kv_cache_tokens: Number of tokens of all rows together that fit into the KV cache, where a shared prefix counts
            once. None: 8,192. It is raised to the context size. It has no effect on models with recurrent states or
            sliding windows.
        rows: Maximum number of sequences that exist at the same time, those of caches and forks included. A
            number that llama.cpp does not support is lowered to its maximum.
        kv_unified: Whether all rows always share one KV cache, as with llama.cpp's option of this name. False: each row
            of a call gets a separate part of the KV cache (a stream of llama.cpp) where that saves time. Each row must
            then have at most about `kv_cache_tokens` divided by the number of rows. Each stream has its own copy of a
            shared prefix. Rows that are not in the call may be saved outside the KV cache; if they have more than
            `kv_cache_tokens` tokens in all, the rows share one KV cache again. Rows of a model on a GPU, and of a
            `llama_cpp.Llama` in a build with GPU support, always share it.

    Raises:
        ModelNotFoundError: The file does not exist.
        EngineError: The file cannot be loaded, or the device or type is not supported.
        ValueError: A size is out of range.
    """

    def __init__(
        self,
        path: str | Path | Any,
        *,
        device: str = "cpu",
        dtype: str = "float32",
        context_size: int | None = None,
        kv_cache_tokens: int | None = None,
        rows: int = 64,
        kv_unified: bool = False,
    ) -> None:
        if device not in ("cpu", "gpu"):
            raise EngineError(f"device must be 'cpu' or 'gpu' for llama.cpp, got {short_repr(device)}")
        if dtype not in ("float32", "float16"):
            raise EngineError(f"dtype must be 'float32' or 'float16' for llama.cpp's KV cache, got {short_repr(dtype)}")
        if (
            wrong := next((n for n in (context_size, kv_cache_tokens, rows) if n is not None and n < 1), None)
        ) is not None:
            raise ValueError(f"context_size, kv_cache_tokens and rows must be at least 1, got {wrong}")
        owner = None if isinstance(path, (str, Path)) else path
        self._file, gpu, half = Path(path if owner is None else owner.model_path), device == "gpu", dtype == "float16"
        self._context = Context(
            self._file,
            gpu=gpu,
            half=half,
            context=context_size,
            kv_cache_tokens=kv_cache_tokens,
            rows=rows,
            owner=owner,
        )
        self._pool = SequencePool(self._context)
        self._arranger = Arranger(self._pool, unified=kv_unified)
        self.context_size, self.vocab_size = self._context.size, self._context.vocab_size
        self.supports_rollback = not self._context.recurrent
        self.counts = self._context.counts
        """The groups of rows that ran so far. Each call of `llama_decode` is one group."""
        self.shortest_prefix = SHORTEST_PREFIX if self._context.recurrent else _SHORTEST_PREFIX
        if self.supports_rollback:  # kept prefixes need cells; states of recurrent models are in main memory
            self.prefix_limit = self._context.cells * self._context.cell_bytes

    @property
    def splits_rows(self) -> bool:
        """See `engines.base.splits_rows`. Streams run together only with equal numbers of new tokens.

        If one row has several forced tokens and the others have one, either its further tokens run in a separate
        forward pass, which reads the weights again, or they run one by one, and each reads the cells of the row again.
        The result is True if `_FORCED` forced tokens take less time one by one.
        """
        context = self._context
        return context.streams > 1 and context.pass_cells > _FORCED * context.room

    @cached_property
    def fingerprint(self) -> str:
        return digest_of(self._file)

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. Rows with few new tokens run together; lengths may differ.

        With streams, a row with many new tokens runs in pieces (`dividing.py`).

        A model without rollback runs one row at a time.
        """
        if self.supports_rollback:
            logits: list[Logits] = []
            # `append` returns None, which ends the call after one pass.
            made = self.decode_steps(rows, caches, lambda lent: logits.append(_kept(lent)))
            return logits[0], made
        self._check_open()
        check_rows(self, rows, caches)
        found = [
            run_state(self._context, self._pool, row, one, active=len(rows))
            for row, one in zip(rows, caches, strict=True)
        ]
        return np.array([logits for logits, _ in found]), [state for _, state in found]

    def forward_all(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]
    ) -> tuple[list[Logits], list[Cache]]:
        """See `VerifyingEngine`."""
        self._check_open()
        check_rows(self, rows, caches)
        taken = self._take(rows, caches)
        try:
            found = np.array(self._context.running.run(taken, rows, every=True))
        except BaseException:
            self._cut(taken)
            raise
        ends = np.cumsum([len(row) for row in rows]).tolist()
        logits = [found[end - len(row) : end] for row, end in zip(rows, ends, strict=True)]
        return logits, [CachedPrefix(sequence, sequence.tip) for sequence in taken]

    def _take(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> list[CellSequence]:
        """For each cache, return a sequence of its tokens that the tokens of the row may extend.

        All of these sequences get numbers (`Arranger.place`).
        """
        taken: list[CellSequence] = []
        known = set[CellSequence]()
        for cache in caches:
            sequence = self._own(cache).to_go_on() if cache is not None else self._pool.take()
            if sequence in known:  # two rows extend the same cache
                sequence = sequence.copy()
            known.add(sequence)
            taken.append(sequence)
        self._pool.forget_saved()
        self._arranger.place(taken, [len(row) for row in rows])
        return taken

    def decode_steps(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None], draw: Draw) -> list[Cache]:
        """See `MultiStepEngine`. The logits can be in llama.cpp's memory. Caches are created after the last pass."""
        self._check_open()
        check_rows(self, rows, caches)
        taken = self._take(rows, caches)
        try:
            begin = sum(sequence.tip for sequence in taken) + sum(map(len, rows))
            if not self._context.running.go_on(taken, rows, draw):
                self._cut(taken)
        except BaseException:
            self._cut(taken)
            raise
        self._arranger.ran(sum(sequence.tip for sequence in taken) - begin)
        return [CachedPrefix(sequence, sequence.tip) for sequence in taken]

    def export(self, cache: Cache) -> Arrays:
        self._check_open()
        if isinstance(cache, StateCache):
            return export_cache(cache, LLAMA)
        sequence = self._own(cache).to_go_on()  # keep it alive until its state is copied
        self._arranger.place([sequence], [0])
        return {"state": self._context.state(sequence.number), "length": np.array([cache.length])}

    def restore(self, arrays: Arrays) -> Cache:
        self._check_open()
        if set(arrays) != {"state", "length"} or arrays["length"].shape != (1,) or arrays["state"].dtype != np.uint8:
            raise EngineError(f"expected the arrays 'state' and 'length' of a llama.cpp cache, got {', '.join(arrays)}")
        length = int(np.asarray(arrays["length"], dtype=np.int64)[0])
        if not 0 <= length <= self.context_size:
            raise EngineError(f"expected a cache of at most {self.context_size} tokens, got {length}")
        sequence = self._pool.take()
        sequence.leave()
        sequence.saved, sequence.tip = Saved(np.asarray(arrays["state"], dtype=np.uint8), length), length
        self._arranger.place([sequence], [0])
        if self.supports_rollback:
            return CachedPrefix(sequence, length)
        return StateCache(LLAMA, np.array(arrays["state"], dtype=np.uint8), length)

    def close(self) -> None:
        self._context.close()

    def _cut(self, sequences: Iterable[CellSequence]) -> None:
        for sequence in sequences:  # remove the cells that a failed pass left after the last valid token
            sequence.cut(sequence.tip)

    def _own(self, cache: Cache) -> CachedPrefix:
        if not isinstance(cache, CachedPrefix) or cache.sequence.pool is not self._pool:
            raise foreign_cache(cache)
        return cache

    def _check_open(self) -> None:
        if self._context.handle is None:
            raise closed_model()


def _kept(lent: EngineLogits) -> Logits:
    """Return logits that stay valid. They are copied if they are in llama.cpp's memory."""
    logits = on_cpu(lent)
    return logits if logits.base is None else logits.copy()
