"""A step engine over ONNX Runtime: any export with a KV cache in the Hub's naming.

Measured (6 layers, width 192, vocabulary 4096, one row, a busy 2-core machine): plain `run` with NumPy arrays takes
0.24 to 0.45 ms a token; OrtValues and IO binding were within noise of it, two threads slower. So arrays it is, and one
thread for small models.
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
from guideway.engines.onnx.cache import Batch, RowCache, export, gather, restore
from guideway.engines.onnx.files import find_model, fingerprint
from guideway.engines.onnx.graph import Graph, check_probe, read_graph
from guideway.engines.onnx.runtime import open_session
from guideway.errors import EngineError

__all__ = ["OnnxEngine"]

_PREFILL = 512
"""Tokens run at once: the graph computes logits for each of them, and all but the last are thrown away."""


class OnnxEngine:
    """A decoder model in a folder: `model.onnx` (or `onnx/model.onnx`), its external data, and `config.json`.

    Inputs: `input_ids`, `past_key_values.N.key/value`, and where the graph has them `attention_mask`,
    `position_ids`, `use_cache_branch`, `num_logits_to_keep`. Outputs: `logits`, `present.N.key/value`.

    `device`: "cpu", or "cuda" where this ONNX Runtime has it. `threads`: how many the runtime uses; by default 1 for
    small models and all cores for others. `context_size`: tokens per row; by default what config.json says.
    Raises `ModelNotFoundError` where there is no model, `EngineError` where it is not of this shape.
    """

    supports_rollback = True

    def __init__(
        self,
        path: str | Path,
        *,
        device: str = "cpu",
        threads: int | None = None,
        context_size: int | None = None,
    ) -> None:
        self._file = find_model(Path(path))
        config = configs.read_config(self._file)
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        self._session: Any = open_session(self._file, device, threads)
        self._graph: Graph = read_graph(self._session.get_inputs(), self._session.get_outputs(), config)
        self._outputs = ["logits", *self._graph.presents]
        self.context_size = configs.context_size(config, context_size)
        logits, arrays = self._run(np.zeros((1, 1), dtype=np.int64), gather(self._graph, [None], 0), 0)
        self.vocab_size = check_probe(self._graph, logits, arrays)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self._file)

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. Rows of equal lengths, cached and new, run as one batch; others one after another."""
        check_rows(self, rows, caches)
        return by_length(rows, caches, self._batch)

    def _batch(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """Rows of equal lengths, cached and new."""
        cached, new = caches[0].length if caches[0] is not None else 0, len(rows[0])
        ids = np.array(rows, dtype=np.int64)
        past = gather(self._graph, caches, cached)
        for start in range(0, new, _PREFILL):
            logits, past = self._run(ids[:, start : start + _PREFILL], past, cached + start)
        return logits, [RowCache(past, place, cached + new) for place in range(len(rows))]

    def export(self, cache: Cache) -> Arrays:
        return export(self._graph, cache)

    def restore(self, arrays: Arrays) -> Cache:
        return restore(self._graph, arrays)

    def close(self) -> None:
        self._session = None

    def _run(self, ids: NDArray[np.int64], past: Batch, cached: int) -> tuple[Logits, Batch]:
        """One call of the graph over ids [rows, new] behind `cached` tokens: the last logits, and the new arrays."""
        if self._session is None:
            raise EngineError("the model is closed")
        feeds = {**self._graph.feeds(ids, cached), **dict(zip(self._graph.pasts, past, strict=True))}
        try:
            logits, *presents = self._session.run(self._outputs, feeds)
        except Exception as error:  # the runtime raises classes of its own, which share no base but this
            shape = f"{ids.shape[0]} x {ids.shape[1]} tokens behind {cached}"
            raise EngineError(f"ONNX Runtime failed on {shape}: {error}") from error
        last = logits[:, -1, :].astype(np.float32, copy=logits.shape[1] > 1)  # a view would keep those of all tokens
        return last, tuple(presents)
