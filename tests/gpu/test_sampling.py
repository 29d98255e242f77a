"""Draws from logits on a CUDA device give the tokens of the CPU."""

from __future__ import annotations

import math

import pytest

from tests.unit.sampling.test_device_rows import SAMPLERS, check_batch, check_draws, check_wrong_logits

from . import DEVICE

pytestmark = pytest.mark.engine("torch")


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws(name: str) -> None:
    check_draws(SAMPLERS[name], DEVICE)


@pytest.mark.parametrize("size", [1, 33, 700, 5000, 131_072])
def test_draws_of_a_batch(size: int) -> None:
    check_batch(size, DEVICE)


@pytest.mark.parametrize("wrong", [math.nan, -math.inf])
def test_logits_that_are_all_nan_or_infinite_are_refused(wrong: float) -> None:
    check_wrong_logits(wrong, DEVICE)
