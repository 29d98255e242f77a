"""Sampling on torch tensors gives the tokens of NumPy, for each stage and for all stages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="these tests are about tensors of PyTorch")

import torch

import guideway as gw
from guideway import masks
from guideway.errors import InvalidLogitsError, NoAllowedTokenError
from guideway.sampling import Dry, Mirostat, Sampler, chain, draw
from guideway.testing import tiny_model

pytestmark = pytest.mark.engine("torch")
BIAS = {3: 2.0, 5: -math.inf, 400: 1.0}
SAMPLERS = {
    "greedy": Sampler(),
    "plain": Sampler(1.0),
    "hot": Sampler(1.7),
    "top_k": Sampler(0.8, top_k=7),
    "top_p": Sampler(1.0, top_p=0.6),
    "min_p": Sampler(1.0, min_p=0.05),
    "typical_p": Sampler(1.0, typical_p=0.4),
    "top_a": Sampler(1.0, top_a=0.4),
    "tail_free": Sampler(1.0, tail_free=0.7),
    "top_n_sigma": Sampler(1.0, top_n_sigma=1.0),
    "xtc": Sampler(1.0, xtc_probability=0.7, xtc_threshold=0.05),
    "bias": Sampler(1.0, logit_bias=BIAS),
    "penalties": Sampler(1.0, repetition_penalty=1.4, presence_penalty=0.3, frequency_penalty=-0.2, penalty_window=9),
    "greedy penalties": Sampler(0.0, repetition_penalty=1.4, logit_bias=BIAS),
    "dry": Sampler(1.0, dry=Dry()),
    "mirostat 1": Sampler(1.0, mirostat=Mirostat(3.0, version=1)),
    "mirostat 2": Sampler(1.0, mirostat=Mirostat(3.0)),
    "own": Sampler(1.0, order=("temperature", lambda tokens, logits: logits * 0.5)),
    "all": Sampler(0.9, 200, 0.95, 0.01, tail_free=0.99, top_a=0.01, repetition_penalty=1.1, top_n_sigma=3.0),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_tensors_give_the_same_tokens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "draw_native", lambda *_: None)  # the definition, not the kernel
    check_tokens(SAMPLERS[name], ((1, 1.0, False), (33, 2.0, True), (700, 1.0, False), (5000, 4.0, False)), "cpu")


def check_tokens(sampler: Sampler, cases: Sequence[tuple[int, float, bool]], device: str) -> None:
    """Check that tensors on a device give the tokens of arrays.

    `cases`: the number of logits, their standard deviation, and whether they are rounded, so that some are equal.
    """
    random, drawn = np.random.default_rng(5), set()
    for size, spread, rounded in cases:
        for position in range(12):
            logits = (random.normal(size=size) * spread).astype(np.float32)
            logits = logits.round() if rounded else logits  # equals, for the lowest id to win
            logits[random.random(size) < 0.1 * (size > 1)] = -np.inf
            mask = masks.pack(np.flatnonzero(random.random(size) < 0.5).tolist() or [0], size) if size > 1 else None
            tokens = random.integers(0, min(size, 12), 20).tolist()
            more: dict[str, Any] = {"tokens": tokens, "seed": 3, "position": position, "memory": 4.0}
            try:
                expected = draw(sampler, logits, mask, **more)
            except (InvalidLogitsError, NoAllowedTokenError) as error:
                with pytest.raises((InvalidLogitsError, NoAllowedTokenError), match=str(error).partition(":")[0]):
                    draw(sampler, torch.from_numpy(logits).to(device), mask, **more)
                continue
            found = draw(sampler, torch.from_numpy(logits).to(device), mask, **more)
            assert found.token_id == expected.token_id
            assert (found.memory is None) == (expected.memory is None)
            assert found.memory == pytest.approx(expected.memory)
            drawn.add(found.token_id)
    assert len(drawn) > 5


@pytest.mark.parametrize("wrong", [math.nan, -math.inf])
def test_logits_that_are_all_nan_or_infinite_are_refused(wrong: float) -> None:
    with pytest.raises((InvalidLogitsError, NoAllowedTokenError), match=r"is NaN|no token is allowed"):
        draw(Sampler(1.0), torch.full((40,), wrong))


def test_an_engine_may_keep_its_logits(tmp_path: Path) -> None:
    """As on a device: sessions sample from tensors, and return arrays to callers. (The test needs no device.)"""
    pytest.importorskip("transformers", reason="the engine is transformers'")
    folder = tiny_model("llama", tmp_path, seed=3)
    plain, kept = gw.load(f"hf:{folder}", dtype="float32"), gw.load(f"hf:{folder}", dtype="float32")
    kept.engine.on_device = True  # type: ignore[attr-defined]  # of this engine
    source = gw.Regex("[a-z ]{5,20}")
    for sampler in SAMPLERS.values():
        if any(token_id >= len(plain.vocabulary) for token_id, _ in sampler.biases):
            continue
        options: dict[str, Any] = {"sampler": sampler, "n": 2, "max_tokens": 16, "logprobs": 1}
        expected = gw.generation.complete(plain, ["the crab", "crabs and"], source, **options)
        found = gw.generation.complete(kept, ["the crab", "crabs and"], source, **options)
        assert [[one.tokens for one in group] for group in found] == [[one.tokens for one in g] for g in expected]
    session = kept.session()
    session.feed("the crab")
    assert isinstance(session.logits(), np.ndarray)
    session.save(tmp_path / "session")
    assert np.array_equal(plain.load_session(tmp_path / "session").logits(), session.logits())
    assert gw.score(kept, "the", ["crab", "scrabble"]) == gw.score(plain, "the", ["crab", "scrabble"])
