"""`OnnxEngine`: a `StepEngine` for ONNX exports whose inputs have the names that are usual on the Hugging Face Hub.

A run writes the cache outputs to memory of `Blocks`, which is used again, and the next run reads them there (`Calls`).
On a CPU, runs are in place: the output of a layer uses the memory of the previous layer's input (`CacheOutputs`). If
all arrays are small, `InferenceSession.run` makes new ones instead: copying them takes less time than making an
`OrtValue` for each. For small models one thread is faster than two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.engines import config as configs
from guideway.engines.base import Arrays, Cache, Logits, check_rows
from guideway.engines.batching import CALL_TOKENS, DEVICE_CALL_TOKENS, CallCounts, by_length, by_padding, in_groups
from guideway.engines.kv_cache import ArrayBatch, RowCache, closed_model, export_cache, restore_rows
from guideway.engines.onnx.blocks import MAPPED, Blocks
from guideway.engines.onnx.cache import (
    NUMPY,
    CacheOutputs,
    GrowingBatch,
    claimed,
    gather,
    grown,
    rejoin,
    values_of,
    without_gaps,
)
from guideway.engines.onnx.files import find_model, fingerprint
from guideway.engines.onnx.graph import Graph, check_probe, read_graph
from guideway.engines.onnx.runtime import Calls, open_session
from guideway.errors import EngineError

__all__ = ["OnnxEngine"]

_PREFILL = 512
"""The maximum number of new tokens of each row in a call of the model by `forward`.

A graph without the input `num_logits_to_keep` computes the logits of all of them; only the last are used.
"""


class OnnxEngine:
    """A decoder model in a folder: `model.onnx` (or `onnx/model.onnx`), its external data, and `config.json`.

    The inputs are `input_ids`, `past_key_values.N.key/value`, and optionally `attention_mask`, `position_ids`,
    `use_cache_branch`, `num_logits_to_keep`. The outputs are `logits` and `present.N.key/value`.

    If the graph supports it (`pads_rows`), rows of different lengths can run together with padding. The logits of a row
    in a batch and alone differ by rounding.

    Args:
        path: The folder or the model file.
        device: "cpu", or "cuda" if this build of ONNX Runtime supports it.
        threads: Number of threads. None: 1 for small models, all cores for others.
        context_size: Maximum number of tokens per row. None: the context size in config.json.
        session: An `onnxruntime.InferenceSession` of this file, to use instead of a new one.

    Raises:
        ModelNotFoundError: There is no model.
        EngineError: The model has other inputs or outputs, or cannot be loaded, or the device is not available.
        ValueError: `threads` or `context_size` is out of range.
    """

    supports_rollback = True

    def __init__(
        self,
        path: str | Path,
        *,
        device: str = "cpu",
        threads: int | None = None,
        context_size: int | None = None,
        session: Any = None,
    ) -> None:
        self._file = find_model(Path(path))
        config = configs.read_config(self._file)
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        self._session: Any = open_session(self._file, device, threads) if session is None else session
        self._call_tokens = CALL_TOKENS if device == "cpu" else DEVICE_CALL_TOKENS
        self.runs_prompts_separately = device == "cpu"
        self._graph: Graph = read_graph(self._session.get_inputs(), self._session.get_outputs(), config)
        self.context_size = configs.context_size(config, context_size)
        self.counts = CallCounts()
        """The groups of rows that ran so far."""
        self._blocks = Blocks()
        self._calls: Calls | None = None
        self._copied_bytes = 0
        """If each array of a cache has fewer bytes than this, a run makes new arrays (`InferenceSession.run`)."""
        ids = np.zeros((1, 1), dtype=np.int64)
        logits, made = self._run(ids, gather(self._graph, [None], self._blocks, 1), self._graph.feeds(ids, 0))
        self.vocab_size = check_probe(self._graph, logits[:, -1], made.arrays)
        self._like = RowCache(made, 0, 1)
        self._runs_in_place = device == "cpu" and self._is_exact_in_place()
        self._copied_bytes = MAPPED

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self._file)

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. If `pads_rows`, rows run with padding in the groups of `by_padding`.

        Otherwise, or if padded rows would exceed the context, rows with equal numbers of cached and of new tokens run
        together.
        """
        check_rows(self, rows, caches)

        def run(some: Sequence[Sequence[int]], held: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
            self.counts.add(len(some), len(rows), sum(map(len, some)))
            (*_, logits), made = self._batch(some, held, pads=pads)
            return logits[:, -1], made

        pads = len(rows) > 1 and self._may_pad(rows, caches)
        if not pads:
            return by_length(rows, caches, run)
        return in_groups(by_padding([len(row) for row in rows], self._call_tokens), rows, caches, run)

    def forward_all(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]
    ) -> tuple[list[Logits], list[Cache]]:
        """See `VerifyingEngine`. Rows run together as in `forward`."""
        check_rows(self, rows, caches)
        found: list[Logits] = [np.empty(0, np.float32)] * len(rows)
        rows = [list(row) for row in rows]  # different objects, because `place` distinguishes them by identity
        place = {id(row): number for number, row in enumerate(rows)}

        def run(some: Sequence[Sequence[int]], held: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
            self.counts.add(len(some), len(rows), sum(map(len, some)))
            parts, made = self._batch(some, held, every=True, pads=pads)
            logits = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
            for row, own in zip(some, logits, strict=True):
                found[place[id(row)]] = own[len(own) - len(row) :]
            return logits[:, -1], made

        pads = self._may_pad(rows, caches)
        if not pads:
            _, made = by_length(rows, caches, run)
        else:
            _, made = in_groups(by_padding([len(row) for row in rows], self._call_tokens), rows, caches, run)
        return found, made

    def _may_pad(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> bool:
        """Return whether these rows may run with padding. Their padded lengths must not exceed the context."""
        if len(rows) == 1 or not self.pads_rows:
            return False
        cached = max(0 if cache is None else cache.length for cache in caches)
        return cached + max(map(len, rows)) <= self.context_size

    @cached_property
    def pads_rows(self) -> bool:
        """Whether rows of different lengths can run together.

        True if the graph has the inputs `attention_mask` and `position_ids`, and gives three short padded rows the
        logits of single rows, within a tolerance. Some exports have both inputs, but only support padding at the end of
        rows.
        """
        return self._rounding is not None

    @property
    def splits_rows(self) -> bool:
        """See `engines.base.splits_rows`."""
        return self.pads_rows and self.runs_prompts_separately

    @cached_property
    def batch_tolerance(self) -> float:
        """See `engines.base.batch_tolerance`.

        0.0 if rows are not padded, or if the cache is float16, which rounds too much.
        """
        if self._rounding is None or self._graph.cache_type != np.float32:
            return 0.0
        return 4 * self._rounding

    @cached_property
    def _rounding(self) -> float | None:
        """The largest change of logits by padding, measured with a few short rows; None: rows cannot be padded.

        The result is at least 2**-20.
        """
        if not self._graph.takes_padding or self.context_size < 8:
            return None
        ids = [number % self.vocab_size for number in (3, 1, 4, 1, 5, 9, 2, 6)]
        rows = [ids[:6], ids[6:7], ids[2:5]]
        try:
            expected = np.concatenate([self._batch([row], [None])[0][-1][:, -1] for row in rows])
            _, caches = self._batch([row[:2] for row in rows[::2]], [None, None])
            parts, caches = self._batch([rows[0][2:5], rows[1], rows[2][2:]], [caches[0], None, caches[1]])
            found = parts[-1][:, -1].copy()
            found[:1] = self._batch([rows[0][5:]], [caches[0]])[0][-1][:, -1]
        except EngineError:
            return None
        scale = max(1.0, float(np.abs(expected).max()))
        tolerance = 1e-3 if self._graph.cache_type == np.float32 else 5e-2
        rounding = float(np.abs(found - expected).max())
        return max(rounding, scale * 2**-20) if rounding <= scale * tolerance else None

    def _batch(
        self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None], *, every: bool = False, pads: bool = False
    ) -> tuple[list[Logits], list[Cache]]:
        """Run rows as one batch. Padding is between the cached and the new tokens of a row.

        `pads`: whether the rows may run in a batch with other rows, which do not run (`rejoin`).

        Returns a list of logits [row, token, vocabulary], and the caches. If `every`, the list has one item for each
        call of the model, padding included; else one item with the logits of the last token of each row.
        """
        counts = [len(row) for row in rows]
        new, least = max(counts), min(counts)
        asked, given = rows, caches
        batch: ArrayBatch
        places: Sequence[int] = range(len(rows))
        joined = None
        if pads and least == new and self._runs_in_place:
            joined = rejoin(caches, new, self.context_size, self._blocks)
        if joined is not None:
            batch, places = joined
            if [*places] != [*range(batch.rows)]:
                rows, caches = _placed(batch, places, rows, caches)
                counts = [new] * len(rows)
        else:
            batch = gather(self._graph, caches, self._blocks, new, self.context_size)
        cached = batch.tip
        starts = tuple(cached - (0 if cache is None else cache.length) for cache in caches)
        is_padded = least < new or any(starts)
        in_place = self._runs_in_place
        if least < new and any(isinstance(cache, RowCache) and cache.batch is batch for cache in caches):
            # With unequal numbers of new tokens, `without_gaps` moves cached tokens, which is not allowed in a batch to
            # which other caches refer.
            in_place = False
        parts: list[Logits] = []
        if not is_padded:
            ids = np.array(rows, dtype=np.int64)
            for start in range(0, new, _PREFILL):
                part = ids[:, start : start + _PREFILL]
                feeds = self._graph.feeds(part, cached + start, part.shape[1] if every else 1)
                logits, batch = self._run(part, batch, feeds, every=every, in_place=in_place)
                parts = [*parts, logits] if every else [logits]
        else:
            ids = np.zeros((len(rows), new), dtype=np.int64)
            for index, row in enumerate(rows):
                ids[index, new - len(row) :] = row
            begun, left = np.array(starts), np.array(counts)
            for start in range(0, new, _PREFILL):
                part = ids[:, start : start + _PREFILL]
                width = part.shape[1]
                here = np.clip(left - (new - start - width), 0, width)
                feeds = self._graph.padded_feeds(part, begun, here, cached + start, width if every else 1)
                logits, batch = self._run(part, batch, feeds, every=every, in_place=in_place)
                parts = [*parts, logits] if every else [logits]
                in_place = self._runs_in_place
                if here.min() < width:
                    batch.arrays = without_gaps(batch.arrays, cached + start, here.tolist())
                begun = begun + width - here
            starts = tuple(begun.tolist())
        batch.starts = starts if is_padded else None
        if rows is not asked:
            parts = [part[places] for part in parts]
        return parts, claimed(batch, places, cached + new, starts, given)

    def export(self, cache: Cache) -> Arrays:
        return export_cache(cache, NUMPY, self._graph.pasts)

    def restore(self, arrays: Arrays) -> Cache:
        made, length = restore_rows(arrays, self._like, self._graph.pasts)
        return RowCache(ArrayBatch(NUMPY, made), 0, length)

    def close(self) -> None:
        self._session = self._calls = None
        self._blocks = Blocks()

    def _is_exact_in_place(self) -> bool:
        """Return whether runs in place give the logits and arrays of other runs, bit by bit, for a few tokens.

        They do not if the graph reads the cache of a layer after later layers have run.
        """
        ids = np.array([[number % self.vocab_size for number in (3, 1, 4, 1)]], dtype=np.int64)
        found = []
        for in_place in (False, True):
            batch, logits = gather(self._graph, [None], self._blocks, 1), []
            try:
                for start in range(min(ids.shape[1], self.context_size)):
                    part = ids[:, start : start + 1]
                    own, batch = self._run(part, batch, self._graph.feeds(part, start), in_place=in_place)
                    logits.append(own.copy())
            except EngineError:
                return False
            found.append([*logits, *batch.arrays])
        return all(one.tobytes() == other.tobytes() for one, other in zip(*found, strict=True))

    def _run(
        self,
        ids: NDArray[np.int64],
        past: ArrayBatch,
        inputs: Mapping[str, NDArray[Any]],
        *,
        every: bool = False,
        in_place: bool = False,
    ) -> tuple[Logits, ArrayBatch]:
        """Run ids of shape [rows, new]. Returns logits [row, token, vocabulary] and the batch with the new tokens.

        Args:
            ids: The ids.
            past: The batch of the cached tokens.
            inputs: The result of `Graph.feeds` or `Graph.padded_feeds`.
            every: Whether the logits of every token are returned. If not, those of the last one are.
            in_place: Whether `past` may get the new tokens. If it is a `GrowingBatch`, it is then the batch that is
                returned. The caches of its tokens are valid in both cases, also if the run fails.
        """
        if self._session is None:
            raise closed_model()
        rows, tokens = ids.shape[0], past.tip + ids.shape[1]
        graph, outputs = self._graph, None
        try:
            if rows * tokens * max(graph.token_bytes) < self._copied_bytes:
                named = dict(zip(graph.pasts, past.arrays, strict=True))
                logits, *arrays = self._session.run(["logits", *graph.presents], {**inputs, **named})
                made = grown(past if in_place else None, tuple(arrays))
            else:
                outputs = CacheOutputs.of(graph, past, rows, tokens, self._blocks, in_place=in_place)
                self._blocks.count_run()
                if self._calls is None:
                    self._calls = Calls(self._session, [*inputs, *graph.pasts], ["logits", *graph.presents])
                logits = self._calls([*inputs.values()], values_of(past), outputs.values)
                made = outputs.done()
        except (
            BaseException
        ) as error:  # the exception classes of ONNX Runtime have no common base class but `Exception`
            if outputs is not None:
                outputs.failed()
            if not isinstance(error, Exception):
                raise
            shape = f"{rows} rows of {ids.shape[1]} tokens after {tokens - ids.shape[1]} cached tokens"
            raise EngineError(f"ONNX Runtime failed on {shape}: {error}") from error
        if every:
            return logits.astype(np.float32, copy=False), made
        # A view would keep the logits of all tokens in memory.
        return logits[:, -1:].astype(np.float32, copy=logits.shape[1] > 1), made


def _placed(
    batch: GrowingBatch, order: Sequence[int], rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]
) -> tuple[list[Sequence[int]], list[Cache | None]]:
    """Return the new tokens and the cache of each place of a batch, for the result of `rejoin`.

    A place whose row does not run gets the token 0 for each new token, and no cache: it attends to no cached token.
    """
    ids: list[Sequence[int]] = [[0] * len(rows[0])] * batch.rows
    held: list[Cache | None] = [None] * batch.rows
    for place, row, cache in zip(order, rows, caches, strict=True):
        ids[place], held[place] = row, cache
    return ids, held
