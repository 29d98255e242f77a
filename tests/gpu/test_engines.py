"""ONNX Runtime and llama.cpp on a CUDA device: the checks of every engine, and the tokens of the same model on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from guideway.testing import tiny_model
from tests.helpers.engines import check_engine, greedy, model_of
from tests.helpers.exports import export_folder

CLOSE = 2e-2
"""The sums of a GPU have another order."""
LOOSE = 0.1
"""llama.cpp also multiplies in half precision: logits of one prompt, whole and step by step, differed by 0.04."""


@pytest.mark.engine("onnx", "torch", "transformers")
@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_onnx_runtime(architecture: str, tmp_path: Path) -> None:
    import onnxruntime

    from guideway.engines.onnx import OnnxEngine

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("this build of ONNX Runtime has no CUDA: install onnxruntime-gpu")
    folder = export_folder(tiny_model(architecture, tmp_path / "model", seed=3))
    model = model_of(OnnxEngine(folder, device="cuda"), folder)
    check_engine(model, tmp_path / "session", tolerance=CLOSE)
    tokens, logits = greedy(model_of(OnnxEngine(folder), folder))
    found, there = greedy(model)
    assert found == tokens
    assert np.abs(there - logits).max() < CLOSE


@pytest.mark.engine("llama_cpp", "gguf")
@pytest.mark.parametrize("architecture", ["llama", "gpt2", "mamba"])
def test_llama_cpp(architecture: str, tmp_path: Path) -> None:
    import llama_cpp

    from guideway.engines.llama_cpp import LlamaCppEngine
    from tests.helpers.gguf_models import write_gguf

    if not llama_cpp.llama_supports_gpu_offload():
        pytest.skip("this build of llama.cpp has no CUDA: build llama-cpp-python with GGML_CUDA=on")
    folder = tiny_model(architecture, tmp_path, seed=3)
    file = write_gguf(folder, tmp_path / "model.gguf")
    model = model_of(LlamaCppEngine(file, device="gpu"), folder)
    check_engine(model, tmp_path / "session", tolerance=LOOSE, exact=False)
    tokens, logits = greedy(model_of(LlamaCppEngine(file), folder))
    found, there = greedy(model)
    assert found == tokens
    assert np.abs(there - logits).max() < LOOSE
    model.close()
