"""Sampling on a CUDA device draws the tokens of the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from guideway import masks
from guideway.errors import InvalidLogitsError, NoAllowedTokenError
from guideway.sampling import draw
from tests.unit.sampling.test_torch import SAMPLERS

from . import DEVICE

pytestmark = pytest.mark.engine("torch")


@pytest.mark.parametrize("name", SAMPLERS)
def test_tokens_are_those_of_the_cpu(name: str) -> None:
    import torch

    sampler, chance, drawn = SAMPLERS[name], np.random.default_rng(7), set()
    for size, spread in ((33, 2.0), (700, 1.0), (5000, 4.0), (131_072, 3.0)):
        for position in range(12):
            logits = (chance.normal(size=size) * spread).astype(np.float32)
            mask = masks.pack(np.flatnonzero(chance.random(size) < 0.5).tolist() or [0], size)
            more: dict[str, Any] = {
                "tokens": chance.integers(0, 12, 20).tolist(),
                "seed": 3,
                "position": position,
                "memory": 4.0,
            }
            wanted = draw(sampler, logits, mask, **more)
            found = draw(sampler, torch.from_numpy(logits).to(DEVICE), mask, **more)
            assert found.token_id == wanted.token_id
            assert found.memory == pytest.approx(wanted.memory)
            drawn.add(found.token_id)
    assert len(drawn) > 5


@pytest.mark.parametrize("wrong", [math.nan, -math.inf])
def test_what_is_no_logit_is_refused(wrong: float) -> None:
    import torch

    with pytest.raises((InvalidLogitsError, NoAllowedTokenError), match=r"is NaN|no token is allowed"):
        draw(SAMPLERS["plain"], torch.full((40,), wrong, device=DEVICE))
