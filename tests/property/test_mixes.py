"""Every result of a batch equals the result of the same request run alone (a sample; `tests.campaigns.mixes` runs more)."""

from __future__ import annotations

from pathlib import Path

import pytest

import guideway as gw
from guideway.generation import Model
from guideway.testing import tiny_model
from tests.campaigns.mixes import Mixes


def _all_equal(model: Model, count: int) -> None:
    mixes = Mixes(model)
    found = [mixes.check(seed) for seed in range(count)]
    assert sum(results for results, _ in found) > 3 * count
    assert sum(ties for _, ties in found) <= 1


def test_onnx() -> None:
    with gw.load("tiny") as model:
        _all_equal(model, 4)


@pytest.mark.engine("torch", "transformers")
@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_transformers(architecture: str, tmp_path: Path) -> None:
    import torch

    torch.set_num_threads(1)
    with gw.load(f"hf:{tiny_model(architecture, tmp_path)}") as model:
        _all_equal(model, 8)
