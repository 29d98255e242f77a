"""A step engine over ONNX Runtime: any export with a KV cache in the Hub's naming.

Measured (6 layers, width 192, vocabulary 4096, one row, a busy 2-core machine): plain `run` with NumPy arrays takes
0.24 to 0.45 ms a token; OrtValues and IO binding were within noise of it, two threads slower. So arrays it is, and one
thread for small models.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from guideway.engines.base import Cache, Logits
from guideway.engines.onnx.graph import Graph, context_size, find_model, read_config, read_graph
from guideway.errors import ContextOverflow, EngineError

__all__ = ["OnnxEngine"]

_PREFILL = 512
"""Tokens run at once: the graph computes logits for each of them, and all but the last are thrown away."""

_SMALL_MODEL_BYTES = 64 << 20
"""Below this one thread is faster than several."""

Arrays = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class _Cache:
    """One row of arrays [row, head, token, channel], of which the first `length` tokens count."""

    arrays: Arrays
    row: int
    length: int

    def truncated(self, length: int) -> _Cache:
        if not 0 <= length <= self.length:
            raise ValueError(f"a cache of {self.length} tokens cannot be truncated to {length}")
        return _Cache(self.arrays, self.row, length)


class OnnxEngine:
    """A decoder model in a folder: `model.onnx` (or `onnx/model.onnx`), its external data, and `config.json`.

    Inputs: `input_ids`, `past_key_values.N.key/value`, and where the graph has them `attention_mask`,
    `position_ids`, `use_cache_branch`, `num_logits_to_keep`. Outputs: `logits`, `present.N.key/value`.

    `threads`: how many the runtime uses; by default 1 for small models and all cores for others.
    `context_size`: tokens per row; by default what config.json says.
    Raises `NotAvailable` where there is no model, `EngineError` where it is not of this shape.
    """

    def __init__(self, path: str | Path, *, threads: int | None = None, context_size: int | None = None) -> None:
        file = find_model(Path(path))
        config = read_config(file)
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        self._session: Any = _open(file, threads)
        self._graph: Graph = read_graph(self._session.get_inputs(), self._session.get_outputs(), config)
        self._outputs = ["logits", *self._graph.presents]
        self._context_size = _checked_context(context_size, config)
        self._vocab_size = 0  # set by the probe
        self._probe()

    @property
    def vocab_size(self) -> int:
        return self._vocab_size

    @property
    def context_size(self) -> int:
        return self._context_size

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> tuple[Logits, list[Cache]]:
        """See `StepEngine`. Rows of equal lengths, cached and new, run as one batch; others one after another."""
        logits = np.empty((len(rows), self._vocab_size), dtype=np.float32)
        result: list[Cache | None] = [None] * len(rows)
        groups: dict[tuple[int, int], list[int]] = {}
        for index, (row, cache) in enumerate(zip(rows, caches, strict=True)):
            cached = cache.length if cache is not None else 0
            if not row:
                raise EngineError(f"row {index} has no new token")
            if cached + len(row) > self._context_size:
                raise ContextOverflow(f"{cached + len(row)} tokens, and the model's context holds {self._context_size}")
            groups.setdefault((cached, len(row)), []).append(index)
        for (cached, new), members in groups.items():
            ids = np.array([rows[i] for i in members], dtype=np.int64)
            past = self._gather([caches[i] for i in members], cached)
            for start in range(0, new, _PREFILL):
                part = ids[:, start : start + _PREFILL]
                found, past = self._run(part, past, cached + start)
            logits[members] = found
            for place, index in enumerate(members):
                result[index] = _Cache(past, place, cached + new)
        return logits, [cache for cache in result if cache is not None]

    def close(self) -> None:
        self._session = None

    def _run(self, ids: NDArray[np.int64], past: Arrays, cached: int) -> tuple[Logits, Arrays]:
        """One call of the graph over ids [rows, new] behind `cached` tokens: the last logits, and the new arrays."""
        if self._session is None:
            raise EngineError("the model is closed")
        count, new = ids.shape
        kinds = self._graph.integers
        feeds: dict[str, NDArray[Any]] = {"input_ids": ids.astype(kinds["input_ids"], copy=False)}
        if "attention_mask" in kinds:
            feeds["attention_mask"] = np.ones((count, cached + new), dtype=kinds["attention_mask"])
        if "position_ids" in kinds:
            span = np.arange(cached, cached + new, dtype=kinds["position_ids"])
            feeds["position_ids"] = np.ascontiguousarray(np.broadcast_to(span, (count, new)))
        if "num_logits_to_keep" in kinds:
            feeds["num_logits_to_keep"] = np.array(1, dtype=kinds["num_logits_to_keep"])
        if self._graph.has_branch:
            feeds["use_cache_branch"] = np.array([cached > 0])
        feeds.update(zip(self._graph.pasts, past, strict=True))
        try:
            logits, *presents = self._session.run(self._outputs, feeds)
        except Exception as error:  # the runtime raises classes of its own, which share no base but this
            raise EngineError(f"ONNX Runtime failed on {count} x {new} tokens behind {cached}: {error}") from error
        return logits[:, -1, :].astype(np.float32, copy=False), tuple(presents)

    def _gather(self, caches: Sequence[Cache | None], cached: int) -> Arrays:
        """The arrays of these rows together. Rows that came out of one batch in this order go in as they are."""
        graph, held = self._graph, [cache for cache in caches if cache is not None]
        if not cached:
            sizes = zip(graph.heads, graph.channels, strict=True)
            return tuple(np.zeros((len(caches), h, 0, c), dtype=graph.cache_type) for h, c in sizes)
        rows: list[_Cache] = []
        for cache in held:
            if not isinstance(cache, _Cache):
                raise EngineError(f"a cache of another engine: {type(cache).__name__}")
            rows.append(cache)
        first = rows[0].arrays
        whole = first[0].shape[0] == len(rows) and first[0].shape[2] == cached
        if whole and all(cache.arrays is first and cache.row == i for i, cache in enumerate(rows)):
            return first
        if len(rows) == 1:
            return tuple(np.ascontiguousarray(a[rows[0].row : rows[0].row + 1, :, :cached]) for a in first)
        return tuple(
            np.concatenate([cache.arrays[i][cache.row : cache.row + 1, :, :cached] for cache in rows])
            for i in range(len(first))
        )

    def _probe(self) -> None:
        """Run one token, and hold what comes out to what was announced."""
        ids, empty = np.zeros((1, 1), dtype=np.int64), self._gather([None], 0)
        self._vocab_size = 1
        logits, arrays = self._run(ids, empty, 0)
        for name, array, heads, channels in zip(
            self._graph.presents, arrays, self._graph.heads, self._graph.channels, strict=True
        ):
            if array.shape != (1, heads, 1, channels) or array.dtype != self._graph.cache_type:
                raise EngineError(
                    f"{name} must be {self._graph.cache_type} [1, {heads}, 1, {channels}] after one token,"
                    f" got {array.dtype} {list(array.shape)}"
                )
        if logits.ndim != 2 or not logits.size:
            raise EngineError(f"logits must be [row, token, vocabulary], got {list(logits.shape)} for the last token")
        self._vocab_size = int(logits.shape[1])


def _open(file: Path, threads: int | None) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or (1 if _weight_bytes(file) < _SMALL_MODEL_BYTES else os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised; nothing is printed beside it
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as in _run
        raise EngineError(f"ONNX Runtime cannot load {file}: {error}") from error


def _weight_bytes(file: Path) -> int:
    """About how large the model is: its file and what lies beside it."""
    return sum(f.stat().st_size for f in file.parent.iterdir() if f.is_file() and f.suffix not in {".json", ".txt"})


def _checked_context(given: int | None, config: dict[str, Any]) -> int:
    if given is None:
        return context_size(config)
    if given < 1:
        raise ValueError(f"context_size must be at least 1, got {given}")
    return given
