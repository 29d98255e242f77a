"""The kept logits: those of the last positions, and the largest of older ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.generation import Model
from guideway.sampling import Sampler
from guideway.sessions.history import OLDER_POSITIONS, TOP, LogitsRing, TopLogits
from guideway.testing import ToyEngine
from tests.helpers.byte_tokens import BYTES
from tests.helpers.toy_models import toy_model

WIDTH = 131_072


def packed(legal: np.ndarray) -> np.ndarray:
    whole = np.zeros(-(-legal.size // 32) * 32, bool)
    whole[: legal.size] = legal
    return np.packbits(whole, bitorder="little").view(np.uint32)


@pytest.mark.parametrize("width", [5, 300, 3000, 40_000])
def test_a_decision_is_that_of_all_logits_or_none(width: int) -> None:
    rng = np.random.default_rng(width)
    decided = 0
    for scale in (0.1, 1.0, 4.0, 30.0):
        for part in (1.0, 0.5, 0.01, 0.0):
            logits = (rng.standard_normal(width) * scale).astype(np.float32)
            logits[rng.integers(width, size=width // 4)] = np.float32(scale)  # ties
            top = TopLogits.of(logits)
            assert top is not None
            assert top.ids.size <= TOP
            legal = rng.random(width) < part
            found = top.best(packed(legal))
            decided += found is not None
            if found is not None:
                allowed = np.where(legal, logits, -np.inf)
                assert found == allowed.argmax()
                assert np.count_nonzero(allowed == allowed.max()) == 1
            if (found := top.best(None)) is not None:
                assert found == logits.argmax()
    assert decided or width < 10


def test_a_clear_decision_is_found() -> None:
    logits = np.random.default_rng(1).standard_normal(WIDTH).astype(np.float32)
    logits[77_777] = 9
    top = TopLogits.of(logits)
    assert top is not None
    assert top.best(None) == 77_777
    legal = np.ones(WIDTH, bool)
    legal[77_777] = False
    legal[::2] = False
    assert top.best(packed(legal)) == np.where(legal, logits, -np.inf).argmax()
    assert top.best(packed(np.zeros(WIDTH, bool))) is None


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_wrong_logits_are_not_kept(wrong: float) -> None:
    logits = np.zeros(500, np.float32)
    logits[3] = wrong
    assert TopLogits.of(logits) is None
    assert TopLogits.of(np.full(500, -np.inf, np.float32)) is None


@pytest.mark.engine("torch")
def test_tensors_are_stored_as_arrays() -> None:
    import torch

    class OnTensors(ToyEngine):
        def forward(self, rows: Any, caches: Any) -> Any:
            logits, made = super().forward(rows, caches)
            return torch.from_numpy(logits), made

    found, same = (toy_model(BYTES, 3, engine).session(logits_bytes=1 << 20) for engine in (OnTensors, ToyEngine))
    for session in (found, same):
        session.feed("abc")
        session.infer()
        session.infer()
    assert found.tokens == same.tokens
    for (place, logits), (other, expected) in zip(found._ring._held, same._ring._held, strict=True):
        assert place == other
        assert isinstance(logits, np.ndarray)
        assert np.array_equal(logits, expected)


def test_memory_is_bounded() -> None:
    ring = LogitsRing(8 << 20)
    logits = np.random.default_rng(3).standard_normal(WIDTH).astype(np.float32)
    for position in range(OLDER_POSITIONS + 100):
        ring.put(position, logits)
    full = sum(one.nbytes for _, one in ring._held)
    older = sum(top.ids.nbytes + top.values.nbytes for _, top in ring._older)
    assert full <= 8 << 20
    assert len(ring._older) == OLDER_POSITIONS
    assert older <= OLDER_POSITIONS * TOP * 12
    assert ring.top_at(500) is None  # later ones are kept
    ring.rewind(500)
    assert ring.at(500) is None
    assert ring.top_at(500) is not None
    without = LogitsRing(0)
    for position in range(10):
        without.put(position, logits)
    without.rewind(5)
    assert without.top_at(5) is None


@pytest.mark.parametrize("constrained", [False, True])
def test_rewinding_300_tokens_runs_no_token(constrained: bool) -> None:
    """As for a vocabulary of 131,072 tokens: the budget holds the logits of 16 positions."""
    model = Model(ToyEngine(len(BYTES)), gw.Tokenizer.of(BYTES))
    expected = model.session(logits_bytes=1 << 24)
    session = model.session(logits_bytes=16 * 4 * len(BYTES))
    for one in (expected, session):
        one.feed([5, 6, 7])
        if constrained:
            one.constrain(gw.Regex("[ab]{400}"))
    ids = [expected.infer() for _ in range(300)]
    assert [session.infer() for _ in range(300)] == ids
    for count in (300, 256, 17, 1):
        assert session.rewind(count) == ids[-count:]
        ran = session.counts.run
        token_id = session.infer()
        is_unclear = session.counts.run > ran
        assert token_id == ids[-count]
        assert not is_unclear or count > 16
        assert [session.infer() for _ in range(count - 1)] == ids[-count + 1 :][: count - 1]
    assert session.text == expected.text


def test_sampled_draws_use_all_logits() -> None:
    model = Model(ToyEngine(len(BYTES)), gw.Tokenizer.of(BYTES))
    session = model.session(sampler=Sampler(1.0), seed=3, logits_bytes=2000)
    session.feed([5])
    ids = [session.infer() for _ in range(60)]
    session.rewind(60)
    ran = session.counts.run
    assert session.infer() == ids[0]
    assert session.counts.run == ran + 1
