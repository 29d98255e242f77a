"""Sampling on a CUDA device draws the tokens of the CPU."""

from __future__ import annotations

import math

import pytest

from guideway.errors import InvalidLogitsError, NoAllowedTokenError
from guideway.sampling import draw
from tests.unit.sampling.test_torch import SAMPLERS, check_tokens

from . import DEVICE

pytestmark = pytest.mark.engine("torch")


@pytest.mark.parametrize("name", SAMPLERS)
def test_tokens_are_those_of_the_cpu(name: str) -> None:
    cases = ((33, 2.0, True), (700, 1.0, False), (5000, 4.0, False), (131_072, 3.0, False))
    check_tokens(SAMPLERS[name], cases, DEVICE)


@pytest.mark.parametrize("wrong", [math.nan, -math.inf])
def test_logits_that_are_all_nan_or_infinite_are_refused(wrong: float) -> None:
    import torch

    with pytest.raises((InvalidLogitsError, NoAllowedTokenError), match=r"is NaN|no token is allowed"):
        draw(SAMPLERS["plain"], torch.full((40,), wrong, device=DEVICE))
