"""A step engine over ONNX Runtime: any export with a KV cache in the Hub's naming.

Measured (6 layers, width 192, vocabulary 4096, one row, a busy 2-core machine): plain `run` with NumPy arrays takes
0.24 to 0.45 ms a token; OrtValues and IO binding were within noise of it, two threads slower. So arrays it is, and one
thread for small models.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from guideway.engines.base import Arrays, Cache, Logits, check_rows
from guideway.engines.onnx.cache import Batch, RowCache, export, gather, restore
from guideway.engines.onnx.files import context_size, find_model, fingerprint, read_config, weight_bytes
from guideway.engines.onnx.graph import Graph, check_probe, read_graph
from guideway.errors import EngineError

__all__ = ["OnnxEngine"]

_PREFILL = 512
"""Tokens run at once: the graph computes logits for each of them, and all but the last are thrown away."""

_SMALL_MODEL_BYTES = 64 << 20
"""Below this one thread is faster than several."""


class OnnxEngine:
    """A decoder model in a folder: `model.onnx` (or `onnx/model.onnx`), its external data, and `config.json`.

    Inputs: `input_ids`, `past_key_values.N.key/value`, and where the graph has them `attention_mask`,
    `position_ids`, `use_cache_branch`, `num_logits_to_keep`. Outputs: `logits`, `present.N.key/value`.

    `threads`: how many the runtime uses; by default 1 for small models and all cores for others.
    `context_size`: tokens per row; by default what config.json says.
    Raises `NotAvailable` where there is no model, `EngineError` where it is not of this shape.
    """

    rewinds = True

    def __init__(self, path: str | Path, *, threads: int | None = None, context_size: int | None = None) -> None:
        self._file = find_model(Path(path))
        config = read_config(self._file)
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        self._session: Any = _open(self._file, threads)
        self._graph: Graph = read_graph(self._session.get_inputs(), self._session.get_outputs(), config)
        self._outputs = ["logits", *self._graph.presents]
        self.context_size = _checked_context(context_size, config)
        logits, arrays = self._run(np.zeros((1, 1), dtype=np.int64), gather(self._graph, [None], 0), 0)
        self.vocab_size = check_probe(self._graph, logits, arrays)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self._file)

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. Rows of equal lengths, cached and new, run as one batch; others one after another."""
        check_rows(self, rows, caches)
        logits = np.empty((len(rows), self.vocab_size), dtype=np.float32)
        result: dict[int, Cache] = {}
        groups: dict[tuple[int, int], list[int]] = {}
        for index, (row, cache) in enumerate(zip(rows, caches, strict=True)):
            groups.setdefault((cache.length if cache is not None else 0, len(row)), []).append(index)
        for (cached, new), members in groups.items():
            ids = np.array([rows[i] for i in members], dtype=np.int64)
            past = gather(self._graph, [caches[i] for i in members], cached)
            for start in range(0, new, _PREFILL):
                found, past = self._run(ids[:, start : start + _PREFILL], past, cached + start)
            logits[members] = found
            result.update((index, RowCache(past, place, cached + new)) for place, index in enumerate(members))
        return logits, [result[i] for i in range(len(rows))]

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
        return logits[:, -1, :].astype(np.float32, copy=False), tuple(presents)


def _open(file: Path, threads: int | None) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or (1 if weight_bytes(file) < _SMALL_MODEL_BYTES else os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised; nothing is printed beside it
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as in _run
        raise EngineError(f"ONNX Runtime cannot load {file}: {error}") from error


def _checked_context(given: int | None, config: Mapping[str, Any]) -> int:
    if given is None:
        return context_size(config)
    if given < 1:
        raise ValueError(f"context_size must be at least 1, got {given}")
    return given
