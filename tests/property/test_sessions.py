"""Any sequence of operations leaves a session equal to a new one: logits, text, constraint, samples."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from guideway.engines.base import StepEngine
from guideway.testing import ToyEngine, tiny_model

from .session_machine import TOKENS, Sessions


@pytest.mark.parametrize("supports_rollback", [True, False], ids=["supports_rollback", "recurrent"])
def test_session_state_machine(supports_rollback: bool) -> None:
    class OverToy(Sessions):
        def engine(self) -> StepEngine:
            return ToyEngine(len(TOKENS) + 1, context_size=60, supports_rollback=supports_rollback)

    run_state_machine_as_test(OverToy, settings=settings(max_examples=60, stateful_step_count=30))


@cache
def real(library: str, architecture: str) -> StepEngine:
    folder = tiny_model(architecture, Path(tempfile.mkdtemp()), context=60)
    if library == "onnx":
        from guideway.engines.onnx import OnnxEngine

        from ..helpers.exports import export_folder

        export_folder(folder)
        return OnnxEngine(folder)
    if library == "transformers":
        from guideway.engines.transformers import TransformersEngine

        return TransformersEngine(folder)
    if library == "mlx":
        from guideway.engines.mlx import MlxEngine

        return MlxEngine(folder)
    from guideway.engines.llama_cpp import LlamaCppEngine

    from ..helpers.gguf_models import write_gguf

    return LlamaCppEngine(write_gguf(folder, folder / "model.gguf"))


NEEDS = {
    "onnx": ("torch", "transformers", "onnx"),
    "transformers": ("torch", "transformers"),
    "mlx": ("mlx", "mlx_lm"),
    "llama_cpp": ("llama_cpp", "gguf"),
}
CASES = [(library, kind) for library in NEEDS for kind in ("llama", "mamba") if (library, kind) != ("onnx", "mamba")]


@pytest.mark.parametrize(
    ("library", "architecture"),
    [pytest.param(*case, marks=pytest.mark.engine(*NEEDS[case[0]])) for case in CASES],
)
def test_on_real_engines(library: str, architecture: str) -> None:
    class OverReal(Sessions):
        tolerance = 1e-3

        def engine(self) -> StepEngine:
            return real(library, architecture)

    run_state_machine_as_test(OverReal, settings=settings(max_examples=8, stateful_step_count=25))
