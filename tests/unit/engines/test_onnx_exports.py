"""Exports by torch's exporter, with `position_ids` and `attention_mask`: logits equal those of transformers.

The exporter leaves the model in training mode, in which dropout changes the reference. Models with dropout (GPT-2,
GPT-J, Bloom) check that it is off.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from guideway.engines.onnx import OnnxEngine
from guideway.testing import ARCHITECTURES, tiny_model
from tests.helpers.engines import check_engine, model_of
from tests.helpers.exports import export_folder

pytestmark = pytest.mark.engine("torch", "transformers", "onnx")

IDS = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46]


@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name != "mamba"])  # it has no KV cache
def test_logits_equal_those_of_transformers(architecture: str, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    folder = export_folder(tiny_model(architecture, tmp_path))
    reference = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        expected = reference(input_ids=torch.tensor([IDS])).logits[0].numpy()
    assert np.abs(expected[3] - expected[4]).max() > 1e-3  # the output depends on the input
    engine = OnnxEngine(folder)
    at_once, _ = engine.forward([IDS], [None])
    assert np.abs(at_once[0] - expected[-1]).max() < 1e-4
    cache = None
    for place, token_id in enumerate(IDS):
        logits, (cache,) = engine.forward([[token_id]], [cache])
        assert np.abs(logits[0] - expected[place]).max() < 1e-4
    check_engine(model_of(engine, folder), tmp_path / "session")
