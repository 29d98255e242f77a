"""`OnnxEngine`: a step engine for ONNX exports with a KV cache in the Hub's naming.

`run` with NumPy arrays is as fast as OrtValues with IO binding (0.24 to 0.45 ms per token for 6 layers, width 192,
vocabulary 4096, on 2 cores), so it is used. For small models one thread is faster than two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.engines import config as configs
from guideway.engines.base import Arrays, Cache, Logits, check_rows
from guideway.engines.batching import by_length
from guideway.engines.kv_cache import ArrayBatch, RowCache, closed_model, export_cache, restore_rows, row_caches
from guideway.engines.onnx.cache import NUMPY, gather
from guideway.engines.onnx.files import find_model, fingerprint
from guideway.engines.onnx.graph import Graph, check_probe, read_graph
from guideway.engines.onnx.runtime import open_session
from guideway.errors import EngineError

__all__ = ["OnnxEngine"]

_PREFILL = 512
"""Tokens per prefill call. The graph computes logits for all of them, and all but the last are discarded."""


class OnnxEngine:
    """A decoder model in a folder: `model.onnx` (or `onnx/model.onnx`), its external data, and `config.json`.

    The inputs are `input_ids`, `past_key_values.N.key/value`, and optionally `attention_mask`, `position_ids`,
    `use_cache_branch`, `num_logits_to_keep`. The outputs are `logits` and `present.N.key/value`.

    Args:
        path: The folder or the model file.
        device: "cpu", or "cuda" if this build of ONNX Runtime supports it.
        threads: Number of threads; by default 1 for small models and all cores for others.
        context_size: Maximum number of tokens per row; by default that of config.json.
        session: An `onnxruntime.InferenceSession` of this file, to use instead of a new one.

    Raises:
        ModelNotFoundError: There is no model.
        EngineError: The model has other inputs or outputs, or cannot be loaded.
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
        self._graph: Graph = read_graph(self._session.get_inputs(), self._session.get_outputs(), config)
        self._outputs = ["logits", *self._graph.presents]
        self.context_size = configs.context_size(config, context_size)
        logits, arrays = self._run(np.zeros((1, 1), dtype=np.int64), gather(self._graph, [None], 0), 0)
        self.vocab_size = check_probe(self._graph, logits, arrays)
        self._like = RowCache(ArrayBatch(NUMPY, arrays), 0, 1)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self._file)

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. Rows of equal cached and new lengths run as one batch."""
        check_rows(self, rows, caches)
        return by_length(rows, caches, self._batch)

    def _batch(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Run rows of equal cached and new lengths."""
        cached, new = caches[0].length if caches[0] is not None else 0, len(rows[0])
        ids = np.array(rows, dtype=np.int64)
        past = gather(self._graph, caches, cached)
        for start in range(0, new, _PREFILL):
            logits, past = self._run(ids[:, start : start + _PREFILL], past, cached + start)
        return logits, row_caches(ArrayBatch(NUMPY, past), cached + new)

    def export(self, cache: Cache) -> Arrays:
        return export_cache(cache, NUMPY, self._graph.pasts)

    def restore(self, arrays: Arrays) -> Cache:
        made, length = restore_rows(arrays, self._like, self._graph.pasts)
        return RowCache(ArrayBatch(NUMPY, made), 0, length)

    def close(self) -> None:
        self._session = None

    def _run(
        self, ids: NDArray[np.int64], past: tuple[NDArray[Any], ...], cached: int
    ) -> tuple[Logits, tuple[NDArray[Any], ...]]:
        """Run ids of shape [rows, new] after `cached` tokens. Returns the last logits and the new arrays."""
        if self._session is None:
            raise closed_model()
        feeds = {**self._graph.feeds(ids, cached), **dict(zip(self._graph.pasts, past, strict=True))}
        try:
            logits, *presents = self._session.run(self._outputs, feeds)
        except Exception as error:  # the exception classes of the runtime have no other common base
            shape = f"{ids.shape[0]} rows of {ids.shape[1]} tokens after {cached} cached tokens"
            raise EngineError(f"ONNX Runtime failed on {shape}: {error}") from error
        last = logits[:, -1, :].astype(
            np.float32, copy=logits.shape[1] > 1
        )  # a view would keep the logits of all tokens
        return last, tuple(presents)
