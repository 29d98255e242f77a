"""Logits that are tensors: draws of a batch, copies of logits, and an engine that returns tensors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="these tests are about tensors of PyTorch")

import torch

import guideway as gw
from guideway import masks
from guideway.errors import InvalidLogitsError, NoAllowedTokenError
from guideway.sampling import (
    DeviceDraw,
    DeviceRow,
    Dry,
    Mirostat,
    Sampler,
    device_rows,
    draw,
    draws_on_device,
    uniform,
)
from guideway.testing import tiny_model

pytestmark = pytest.mark.engine("torch")
SAMPLERS = {
    "greedy": Sampler(),
    "hot": Sampler(1.7),
    "top_p": Sampler(1.0, top_p=0.6),
    "all": Sampler(0.8, 50, 0.9, 0.02),
    "greedy penalties": Sampler(0.0, repetition_penalty=1.4, logit_bias={3: 2.0, 5: -math.inf}),
    "dry": Sampler(1.0, dry=Dry()),
    "mirostat": Sampler(1.0, mirostat=Mirostat(3.0)),
    "own": Sampler(1.0, order=("temperature", lambda tokens, logits: logits * 0.5)),
}

BATCHED = [
    Sampler(),
    Sampler(1.0),
    Sampler(0.7),
    Sampler(1.3, top_k=7),
    Sampler(1.0, top_p=0.6),
    Sampler(0.8, min_p=0.05),
    Sampler(1.0, top_k=1),
    Sampler(1.5, top_p=0.99),
    SAMPLERS["all"],
]


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_tensor_gives_the_token_of_an_array(name: str) -> None:
    check_draws(SAMPLERS[name], "cpu")


def check_draws(sampler: Sampler, device: str) -> None:
    random, drawn = np.random.default_rng(5), set()
    for position in range(12):
        logits = random.normal(size=700).astype(np.float32)
        mask = masks.pack(np.flatnonzero(random.random(700) < 0.5).tolist(), 700)
        more: dict[str, Any] = {"tokens": random.integers(0, 12, 20).tolist(), "seed": 3, "position": position}
        expected = draw(sampler, logits, mask, **more)
        assert draw(sampler, torch.from_numpy(logits).to(device), mask, **more) == expected
        drawn.add(expected.token_id)
    assert len(drawn) > 5


@pytest.mark.parametrize("size", [1, 33, 700, 5000])
def test_draws_of_a_batch(size: int) -> None:
    check_batch(size, "cpu")


def check_batch(size: int, device: str) -> None:
    """Check batches with several samplers, equal logits, rows without a mask, with one, with two, and copied rows."""
    random = np.random.default_rng(size)
    for spread, rounded in ((1.0, False), (2.0, True), (6.0, False)):
        logits = (random.normal(size=(3 * len(BATCHED), size)) * spread).astype(np.float32)
        logits = logits.round() if rounded else logits  # of equal logits, the lowest id is taken
        logits[random.random(logits.shape) < 0.1 * (size > 1)] = -np.inf
        given: list[DeviceDraw | None] = []
        for place in range(len(logits)):
            some = [masks.pack(np.flatnonzero(random.random(size) < 0.3).tolist(), size) for _ in range(2)]
            known = ([None], some[:1], some)[place // len(BATCHED)]
            number = uniform(3, place, 7)
            given.append(DeviceDraw(BATCHED[place % len(BATCHED)], number, known) if random.random() < 0.9 else None)
        found = device_rows(torch.from_numpy(logits).to(device), given)
        for place, (row, one, own) in enumerate(zip(found, given, logits, strict=True)):
            if one is None:
                assert isinstance(row, np.ndarray)
                assert np.array_equal(row, own)
                continue
            assert isinstance(row, DeviceRow)
            assert np.array_equal(row.array(), own)
            for mask in one.masks:
                try:
                    expected = draw(one.sampler, own, mask, seed=3, row=place, position=7).token_id
                except NoAllowedTokenError:
                    expected = None
                assert row.token(mask) == expected, one.sampler
            assert row.token(masks.all_of(size)) is None  # not one of the given masks


def test_logits_that_are_not_finite_give_no_token() -> None:
    logits = torch.zeros(4, 40)
    logits[0], logits[1, 7], logits[2, 9] = -math.inf, math.nan, math.inf
    for sampler in (Sampler(), Sampler(1.0)):
        found = device_rows(logits, [DeviceDraw(sampler, 0.5, [None])] * 4)
        assert [row.token(None) is None for row in found if isinstance(row, DeviceRow)] == [True, True, True, False]


def test_which_samplers_draw_on_a_device() -> None:
    assert all(draws_on_device(sampler) for sampler in BATCHED)
    for name in ("greedy penalties", "dry", "mirostat", "own"):
        assert not draws_on_device(SAMPLERS[name])
    assert not draws_on_device(Sampler(1.0, top_k=5, top_p=0.9, order=("top_p", "top_k", "temperature")))


def test_a_batch_without_draws_is_only_copied() -> None:
    logits = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    assert np.array_equal(np.stack([np.asarray(row) for row in device_rows(logits, [None] * 3)]), logits.numpy())


@pytest.mark.parametrize("wrong", [math.nan, -math.inf])
def test_logits_that_are_all_nan_or_infinite_are_refused(wrong: float) -> None:
    check_wrong_logits(wrong, "cpu")


def check_wrong_logits(wrong: float, device: str) -> None:
    logits = torch.full((1, 40), wrong, device=device)
    for row in (logits[0], device_rows(logits, [DeviceDraw(Sampler(), 0.0, [None])])[0]):
        with pytest.raises((InvalidLogitsError, NoAllowedTokenError), match=r"is NaN|no token is allowed"):
            draw(Sampler(), row)


def test_an_engine_may_return_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device: tokens are drawn there, and callers get arrays. The test needs no device."""
    pytest.importorskip("transformers", reason="the engine is transformers'")
    folder = tiny_model("llama", tmp_path, seed=3)
    plain, kept = gw.load(f"hf:{folder}", dtype="float32"), gw.load(f"hf:{folder}", dtype="float32")
    kept.engine.on_device = True  # type: ignore[attr-defined]  # of this engine
    pattern = gw.Regex("[a-z ]{5,20}")
    ways: list[tuple[Any, dict[str, Any]]] = [
        *((pattern, {"sampler": sampler}) for sampler in SAMPLERS.values()),
        (pattern, {"logprobs": 1}),
        (pattern, {"temperature": 0.0, "bad_words": "e"}),
        (None, {"temperature": 0.0}),
        (None, {"temperature": 0.0, "stop": "a"}),
        (None, {"temperature": 0.0, "prompt_lookup_num_tokens": 3}),
    ]
    calls = {"token": 0, "array": 0}
    token, array = DeviceRow.token, DeviceRow.array

    def counted_token(row: DeviceRow, mask: Any) -> int | None:
        calls["token"] += 1
        return token(row, mask)

    def counted_array(row: DeviceRow) -> Any:
        calls["array"] += 1
        return array(row)

    monkeypatch.setattr(DeviceRow, "token", counted_token)
    monkeypatch.setattr(DeviceRow, "array", counted_array)
    for constraint, options in ways:
        more: dict[str, Any] = {"n": 2, "max_tokens": 9, "allow_truncation": constraint is not None, **options}
        expected = gw.generation.complete(plain, ["the crab", "crabs and"], constraint, **more)
        found = gw.generation.complete(kept, ["the crab", "crabs and"], constraint, **more)
        assert [[one.tokens for one in group] for group in found] == [[one.tokens for one in g] for g in expected]
        assert [[one.truncation for one in group] for group in found] == [
            [one.truncation for one in g] for g in expected
        ]
    assert calls["token"] > 100, "no batch was drawn on the device"
    assert calls["array"] < calls["token"] // 10, "rows were drawn on the device and copied, too"
    session = kept.session()
    session.feed("the crab")
    assert isinstance(session.logits(), np.ndarray)
    session.save(tmp_path / "session")
    assert np.array_equal(plain.load_session(tmp_path / "session").logits(), session.logits())
    assert gw.score(kept, "the", ["crab", "scrabble"]) == gw.score(plain, "the", ["crab", "scrabble"])
