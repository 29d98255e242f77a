"""Rows with different numbers of cached and new tokens run in one call, with the logits of one row alone."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.engines.base import Cache
from guideway.testing import tiny_model

_TORCH = pytest.mark.engine("torch", "transformers")
_MLX = pytest.mark.engine("mlx", "mlx_lm", "torch")
ENGINES = [
    "onnx",
    *(pytest.param(name, marks=_TORCH) for name in ("llama", "gpt2", "gpt_neox", "qwen2")),
    *(pytest.param(f"mlx {name}", marks=_MLX) for name in ("llama", "gpt2", "gpt_neox", "qwen2", "gptj")),
]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "onnx":
        return gw.load("tiny").engine
    if request.param.startswith("mlx "):
        from guideway.engines.mlx import MlxEngine

        return MlxEngine(tiny_model(request.param[4:], tmp_path))
    import torch

    from guideway.engines.transformers import TransformersEngine

    torch.set_num_threads(1)
    return TransformersEngine(tiny_model(request.param, tmp_path))


def _same(found: Any, engine: Any, ids: list[int]) -> None:
    expected, _ = engine.forward([ids], [None])
    assert np.abs(found - expected[0]).max() <= 1e-4 * max(1.0, np.abs(expected).max())


def test_random_rows_equal_single_rows(engine: Any) -> None:
    """Rows join, leave, fork and are rewound; each row has the logits and the exported cache of its tokens."""
    rng = random.Random(7)
    known: list[tuple[list[int], Cache]] = []
    for _ in range(25):
        chosen: list[tuple[list[int], Cache | None]] = [([], None) for _ in range(rng.randint(0, 2))]
        for ids, cache in rng.choices(known, k=min(len(known), rng.randint(1, 6))):
            kept = rng.choice([len(ids), len(ids), rng.randint(0, len(ids))])
            chosen.append((ids[:kept], cache.truncated(kept)))
        chosen = chosen or [([], None)]
        rng.shuffle(chosen)
        new = [[rng.randint(3, 300) for _ in range(rng.choice([1, 1, 1, 2, 5, 40]))] for _ in chosen]
        before = [None if cache is None else engine.export(cache) for _, cache in chosen]
        logits, caches = engine.forward(new, [cache for _, cache in chosen])
        for row, ((ids, cache), more) in enumerate(zip(chosen, new, strict=True)):
            whole = ids + more
            _same(logits[row], engine, whole)
            assert caches[row].length == len(whole)
            if cache is not None and before[row] is not None:
                after = engine.export(cache)
                assert all(np.array_equal(after[name], array) for name, array in before[row].items())
            known.append((whole, caches[row]))
        rng.shuffle(known)
        del known[8:]
    for ids, cache in known:
        fresh = engine.export(engine.forward([ids], [None])[1][0])
        for name, array in engine.export(cache).items():
            np.testing.assert_allclose(array, fresh[name], atol=1e-3)


def test_decoding_rows_of_different_lengths_is_one_call(engine: Any) -> None:
    rows = [[5 + i] * (3 + 9 * i) for i in range(6)]
    _, caches = engine.forward(rows, [None] * 6)
    calls = engine.counts.calls
    for step in range(4):
        logits, caches = engine.forward([[7 + step]] * 6, caches)
        assert engine.counts.calls == calls + step + 1
    for row, found in zip(rows, logits, strict=True):
        _same(found, engine, [*row, 7, 8, 9, 10])
    more = [[9], [9, 10], [9, 10, 11], [9], [9], [9, 10]]  # forced tokens in some rows
    calls = engine.counts.calls
    logits, caches = engine.forward(more, caches)
    assert engine.counts.calls == calls + 1
    for row, forced, found in zip(rows, more, logits, strict=True):
        _same(found, engine, [*row, 7, 8, 9, 10, *forced])


def test_joining_and_leaving_rows(engine: Any) -> None:
    """A row that leaves the batch keeps its cache, and a row that joins takes part in the same calls."""
    rows = [[5 + i] * (3 + 4 * i) for i in range(5)]
    _, caches = engine.forward(rows, [None] * 5)
    gone, gone_ids = caches[2], rows[2]
    held = engine.export(gone)
    texts, caches = [*rows[:2], *rows[3:]], [*caches[:2], *caches[3:]]
    for step in range(60):
        if step == 20:
            _, joined = engine.forward([[11, 12]], [None])
            texts.append([11, 12])
            caches = [*caches, *joined]
        logits, caches = engine.forward([[20 + step]] * len(texts), caches)
        texts = [[*text, 20 + step] for text in texts]
    for text, found in zip(texts, logits, strict=True):
        _same(found, engine, text)
    assert all(np.array_equal(engine.export(gone)[name], array) for name, array in held.items())
    _same(engine.forward([[9]], [gone])[0][0], engine, [*gone_ids, 9])
