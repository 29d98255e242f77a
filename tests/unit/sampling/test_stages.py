"""Sampler stages: what each one keeps, the distribution of draws, and dependence on the arguments only."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from guideway.errors import InvalidLogitsError, NoAllowedTokenError
from guideway.sampling import Sampler, draw, uniform
from guideway.sampling.stages import min_p, temperature, top_k, top_p

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.3]))


def kept(logits: NDArray[np.float64]) -> set[int]:
    return set(np.flatnonzero(logits > -np.inf).tolist())


def test_top_k() -> None:
    assert kept(top_k(LOGITS, 2)) == {1, 3}
    assert kept(top_k(LOGITS, 9)) == {0, 1, 2, 3}
    assert kept(top_k(np.zeros(4), 2)) == {0, 1}  # of equals, the lower ids


def test_top_p() -> None:
    assert kept(top_p(LOGITS, 0.01)) == {1}
    assert kept(top_p(LOGITS, 0.69)) == {1, 3}
    assert kept(top_p(LOGITS, 0.71)) == {1, 2, 3}
    assert kept(top_p(LOGITS, 1.0)) == {0, 1, 2, 3}


def test_min_p() -> None:
    assert kept(min_p(LOGITS, 0.6)) == {1, 3}
    assert kept(min_p(LOGITS, 0.0)) == {0, 1, 2, 3}
    assert kept(min_p(LOGITS, 1.0)) == {1}


def test_temperature_does_not_overflow() -> None:
    assert temperature(np.array([1e4, 0.0]), 1e-6).tolist() == [0.0, -1e10]


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=200), st.integers(1, 220), st.floats(0.01, 1.0))
def test_stages_keep_what_a_full_sort_would(values: list[int], count: int, mass: float) -> None:
    logits = np.array(values, dtype=np.float64)
    ranked = sorted(range(len(values)), key=lambda i: (-values[i], i))
    assert kept(top_k(logits, count)) == set(ranked[:count])
    share = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    for size, place in enumerate(np.cumsum(share[ranked]), 1):
        if place >= mass or size == len(values):
            assert kept(top_p(logits, mass)) in (set(ranked[:size]), set(ranked[: size + 1]))  # rounding at the edge
            break


LOGIT = st.one_of(st.just(-math.inf), st.floats(-50, 50, width=32))


@given(
    st.lists(LOGIT, min_size=1, max_size=30).filter(lambda x: max(x) > -math.inf),
    st.sampled_from([0.0, 1e-8, 0.7, 1.0, 5.0, 1e6]),
    st.sampled_from([0, 1, 3, 100]),
    st.floats(0.001, 1.0),
    st.floats(0.0, 1.0),
    st.integers(0, 1 << 130),
)
def test_only_allowed_tokens_are_drawn(
    logits: list[float], temperature: float, top_k: int, top_p: float, min_p: float, seed: int
) -> None:
    sampler = Sampler(temperature, top_k, top_p, min_p) if temperature else Sampler()
    array = np.array(logits, dtype=np.float32)
    before = array.copy()
    token = draw(sampler, array, seed=seed, position=3).token_id
    assert logits[token] > -math.inf
    assert np.array_equal(array, before)
    assert token == draw(sampler, array, seed=seed, position=3).token_id
    if top_k == 1 or temperature == 0:
        assert logits[token] == max(logits)


def test_draws_follow_the_distribution() -> None:
    draws = [draw(Sampler(1.0), LOGITS, seed=5, position=i).token_id for i in range(20_000)]
    share = np.bincount(draws, minlength=4) / len(draws)
    assert np.abs(share - [0.1, 0.4, 0.2, 0.3]).max() < 0.015


def test_the_draw_depends_on_seed_row_and_position() -> None:
    drawn = {uniform(seed, row, position) for seed in range(4) for row in range(4) for position in range(4)}
    assert len(drawn) == 64
    assert all(0 <= number < 1 for number in drawn)
    assert uniform(1, 2, 3) == uniform(1, 2, 3) == pytest.approx(0.1010, abs=1e-4)  # the same on every machine


def test_logits_without_a_choice_are_refused() -> None:
    with pytest.raises(NoAllowedTokenError, match="no token is allowed"):
        draw(Sampler(), np.full(3, -np.inf))
    with pytest.raises(InvalidLogitsError, match="token 1 is NaN"):
        draw(Sampler(1.0), np.array([0.0, np.nan]))
    assert draw(Sampler(1.0), np.array([0.0, np.inf])).token_id == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("temperature", -1.0), ("temperature", math.nan), ("temperature", math.inf), ("top_k", -1), ("top_k", 1.5)),
        *(("top_p", 0.0), ("top_p", 1.1), ("top_p", math.nan), ("min_p", -0.1), ("min_p", 1.5)),
    ],
)
def test_values_out_of_range_are_named(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        Sampler(**{field: value})  # type: ignore[arg-type]  # one field at a time
