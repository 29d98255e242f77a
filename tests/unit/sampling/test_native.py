"""The kernel's sampler gives the same tokens as the NumPy implementation."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from guideway import masks
from guideway._kernel import Sampling, shares
from guideway.errors import InvalidLogitsError, NoAllowedTokenError
from guideway.sampling import Dry, Mirostat, Sampler, chain, draw, native, report, uniform

NOTHING = np.empty(0, dtype=np.uint32)

STAGES = st.fixed_dictionaries(
    {"temperature": st.sampled_from([0.0, 0.3, 1.0, 1.7])},
    optional={
        "repetition_penalty": st.sampled_from([0.8, 1.3]),
        "presence_penalty": st.sampled_from([-0.5, 0.7]),
        "frequency_penalty": st.sampled_from([-0.25, 0.5]),
        "logit_bias": st.dictionaries(st.integers(0, 400), st.sampled_from([-math.inf, -3.0, 2.0, 30.0]), max_size=5),
    },
)
WARM_ONLY = st.fixed_dictionaries(
    {},
    optional={
        "top_k": st.integers(1, 60),
        "top_p": st.floats(0.05, 1.0),
        "min_p": st.floats(0.0, 0.9),
        "tail_free": st.floats(0.05, 1.0),
        "top_a": st.floats(0.0, 0.9),
        "top_n_sigma": st.floats(0.1, 3.0),
        "typical_p": st.floats(0.05, 1.0),
        "xtc_probability": st.just(0.7),
    },
)


def packed(bits: NDArray[np.bool_]) -> NDArray[np.uint32]:
    return masks.pack(np.flatnonzero(bits).tolist(), bits.size)


def by_arrays(sampler: Sampler, logits: NDArray[Any], mask: NDArray[np.uint32] | None, **more: Any) -> int | str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "draw_native", lambda *_: None)
        try:
            return draw(sampler, logits, mask, **more).token_id
        except (InvalidLogitsError, NoAllowedTokenError) as error:
            return str(error)


def natively(sampler: Sampler, logits: NDArray[Any], mask: NDArray[np.uint32] | None, **more: Any) -> int | str:
    try:
        return draw(sampler, logits, mask, **more).token_id
    except (InvalidLogitsError, NoAllowedTokenError) as error:
        return str(error)


@given(STAGES, WARM_ONLY, st.integers(0, 2**32), st.data())
@settings(max_examples=150)
def test_every_stage_and_their_combinations_give_the_same_token(
    options: dict[str, Any], warm: dict[str, Any], seed: int, data: st.DataObject
) -> None:
    sampler = Sampler(**options, **(warm if options["temperature"] else {}))
    random = np.random.default_rng(seed)
    size = data.draw(st.sampled_from([1, 5, 31, 32, 33, 100, 320, 5000]))
    logits = (random.normal(size=size) * data.draw(st.sampled_from([0.0, 1.0, 6.0]))).astype(np.float32)
    if data.draw(st.booleans()):
        logits = logits.round()  # equals, for the lowest id to win
    logits[random.random(size) < data.draw(st.sampled_from([0.0, 0.4]))] = -np.inf
    share = data.draw(st.sampled_from([None, 0.02, 0.5, 1.0]))
    mask = None if share is None else packed(random.random(size) < share)
    tokens = [int(t) for t in random.integers(0, size, data.draw(st.integers(0, 30)))]
    for position in range(6):
        more = {"tokens": tokens, "seed": seed, "position": position, "attempt": position % 2}
        assert natively(sampler, logits, mask, **more) == by_arrays(sampler, logits, mask, **more)


@pytest.mark.parametrize(("width", "spread"), [(131_072, 0.01), (131_072, 2.5), (4_097, 1e30), (20_000, 1e30)])
def test_wide_vocabularies(width: int, spread: float) -> None:
    """Vocabularies for which samples estimate floors, and the largest logits determine masses."""
    random = np.random.default_rng(3)
    logits = (random.normal(size=width) * spread).astype(np.float32)
    mask = packed(random.random(width) < 0.6)
    sampler = [
        Sampler(temperature=0.8, top_k=50, top_p=0.95),
        Sampler(temperature=1.0, min_p=0.05),
        Sampler(temperature=0.7, top_p=0.4),
        Sampler(temperature=0.7, typical_p=0.5),
        Sampler(temperature=1.0, top_k=3000, repetition_penalty=1.2),
        Sampler(temperature=1.3),
        Sampler(temperature=0.0, repetition_penalty=1.4),
    ]
    tokens = [int(t) for t in np.argsort(-logits)[:40]]  # the largest, so that penalties invalidate estimated floors
    for one in sampler:
        for row in (None, mask):
            for position in range(2):
                more = {"tokens": tokens, "position": position}
                assert natively(one, logits, row, **more) == by_arrays(one, logits, row, **more), one


def test_full_sample() -> None:
    """Draws follow the distribution, by the kernel too."""
    logits = np.log(np.array([0.1, 0.4, 0.2, 0.3], dtype=np.float32))
    sampler = Sampler(temperature=1.0)
    found = np.bincount([draw(sampler, logits, position=i).token_id for i in range(4000)], minlength=4)
    expected = np.array([0.1, 0.4, 0.2, 0.3]) * 4000
    assert float(((found - expected) ** 2 / expected).sum()) < 16.27  # chi-square, 3 degrees, one in a thousand


def test_unsupported_stages_use_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = np.zeros(64, dtype=np.float32)
    place = (0, 0, 0)
    for sampler in (
        Sampler(temperature=1.0, dry=Dry()),
        Sampler(temperature=1.0, mirostat=Mirostat()),
        Sampler(temperature=1.0, order=("min_p", "temperature"), min_p=0.1),
        Sampler(temperature=1.0, order=("temperature", lambda tokens, logits: logits)),
    ):
        if sampler.stages and sampler.stages != ("min_p",):
            assert native.draw_native(sampler, plain, None, [], place, 0) is None
        assert isinstance(natively(sampler, plain, None), int)
    usual = Sampler(temperature=1.0)
    assert native.draw_native(usual, plain, None, [], place, 0) is not None
    for other in (plain.astype(np.float64), np.zeros(128, dtype=np.float32)[::2], plain.astype(np.float16)):
        assert native.draw_native(usual, other, None, [], place, 0) is None
        assert natively(usual, other, None) == natively(usual, plain, None)
    used = Sampler(temperature=0.5)
    draw(used, plain)
    assert pickle.loads(pickle.dumps(used)) == used


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("masked", [False, True])
def test_strange_logits(wrong: float, masked: bool) -> None:
    sampler = Sampler(temperature=1.0)
    mask = packed(np.arange(64) % 3 == 1) if masked else None
    for at in (1, 34, 63):
        logits = np.zeros(64, dtype=np.float32)
        logits[at] = wrong
        assert natively(sampler, logits, mask) == by_arrays(sampler, logits, mask)
    logits[:] = -np.inf
    assert natively(sampler, logits, mask) == by_arrays(sampler, logits, mask)
    assert natively(sampler, logits, packed(np.zeros(64, dtype=bool))) == "no token is allowed: the mask is empty"


def test_the_last_number_below_one_is_drawn() -> None:
    logits = np.zeros(1000, dtype=np.float32)
    logits[600:] = -800
    settings = Sampler(temperature=1.0).kernel
    assert settings is not None
    assert settings.draw(logits, None, math.nextafter(1.0, 0.0), False, NOTHING, NOTHING) == 599
    assert settings.draw(logits, None, 0.0, False, NOTHING, NOTHING) == 0


def test_bad_input_is_named() -> None:
    good: dict[str, Any] = {
        "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "tail_free": 1.0, "typical_p": 1.0, "top_a": 0.0,
        "top_n_sigma": 0.0, "xtc_threshold": 0.1, "repetition_penalty": 1.0, "presence_penalty": 0.0,
        "frequency_penalty": 0.0, "bias_ids": [], "biases": [],
    }  # fmt: skip
    with pytest.raises(ValueError, match="one bias"):
        Sampling(**{**good, "bias_ids": [1]})
    one = np.zeros(1, dtype=np.uint32)
    with pytest.raises(ValueError, match="one count"):
        Sampling(**good).draw(np.zeros(3, dtype=np.float32), None, 0.5, False, one, NOTHING)
    with pytest.raises(ValueError, match="without words"):
        Sampling(**good).draw(np.zeros(3, dtype=np.float32), NOTHING, 0.5, False, NOTHING, NOTHING)
    with pytest.raises(ValueError, match="no logit"):
        shares(np.zeros(3, dtype=np.float32), None, 3)
    with pytest.raises(TypeError):
        shares(np.zeros(3), None, 0)  # type: ignore[arg-type]  # the mistake under test


@given(st.integers(0, 2**32), st.sampled_from([1, 31, 40, 64, 1000]), st.sampled_from([0.5, 8.0, 300.0]))
def test_probabilities_equal_the_report(seed: int, size: int, spread: float) -> None:
    random = np.random.default_rng(seed)
    logits = (random.normal(size=size) * spread).astype(np.float32)
    bits = random.random(size) < 0.5
    token = int(random.integers(size))
    bits[token] = True
    for mask in (None, packed(bits)):
        expected = report(logits.astype(np.float64), mask, token, count=3)
        found = shares(logits, mask, token)
        assert [a.token_id for a in report(logits, mask, token, count=3).alternatives] == [
            a.token_id for a in expected.alternatives
        ]
        assert found[0] == pytest.approx(expected.logprob, abs=1e-9, rel=1e-12)
        assert found[1] == pytest.approx(expected.mask_logprob, abs=1e-9, rel=1e-12)
        assert found[2] == pytest.approx(expected.masked_mass, abs=1e-12, rel=1e-9)


def test_numbers_are_those_of_the_chain() -> None:
    """XTC's random decision and rolled-back samples use the random streams of the chain."""
    logits = np.array([3.0, 2.9, 2.8, 0.0], dtype=np.float32)
    sampler = Sampler(temperature=1.0, xtc_probability=0.5, xtc_threshold=0.2)
    for position in range(40):
        for attempt in (0, 1, 2):
            more = {"position": position, "attempt": attempt, "seed": 1 << 70}
            assert natively(sampler, logits, None, **more) == by_arrays(sampler, logits, None, **more)
    assert 0 <= uniform(1 << 70, 0, 0) < 1


@pytest.mark.parametrize("sampler", [Sampler(), Sampler(0.7), Sampler(1.3), Sampler(presence_penalty=0.4)], ids=repr)
def test_gaps_bound_the_changes_without_effect(sampler: Sampler) -> None:
    random = np.random.default_rng(3)
    close = 0
    for position in range(400):
        logits = random.normal(0, 3, 600).astype(np.float32)
        place, tokens = (1, 0, position), [5, 5, 9]
        mask = packed(random.random(600) < 0.5) if position % 2 else None
        found = native.draw_with_gap(sampler, logits, mask, tokens, place, 0)
        assert found is not None
        token_id, gap = found
        assert token_id == native.draw_native(sampler, logits, mask, tokens, place, 0)
        size = gap / 2  # the difference of two logits changes by less than the gap
        if size < 1e-2:
            close += 1
            for _ in range(20):
                other = (logits + random.uniform(-0.9 * size, 0.9 * size, 600)).astype(np.float32)
                assert native.draw_native(sampler, other, mask, tokens, place, 0) == token_id
    assert close > 3


def test_gaps_of_stages_that_the_kernel_does_not_have() -> None:
    logits = np.zeros(32, dtype=np.float32)
    assert native.draw_with_gap(Sampler(1.0, mirostat=Mirostat()), logits, None, [], (0, 0, 0), 0) is None
    assert native.draw_with_gap(Sampler(), logits.astype(np.float64), None, [], (0, 0, 0), 0) is None
    assert native.draw_with_gap(Sampler(), logits, None, [], (0, 0, 0), 0) == (0, 0.0)
