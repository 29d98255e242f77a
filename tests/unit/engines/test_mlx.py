"""Models of mlx-lm: every supported architecture of the small models advances and rewinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from guideway.errors import EngineError, ModelNotFoundError
from guideway.testing import tiny_model
from tests.helpers.engines import check_engine, model_of

pytestmark = pytest.mark.engine("mlx", "mlx_lm")
ARCHITECTURES = ("llama", "qwen2", "gpt2", "gpt_neox", "gptj", "mamba")  # mlx-lm has no MPT and no Bloom


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sessions(architecture: str, tmp_path: Path) -> None:
    from guideway.engines.mlx import MlxEngine

    folder = tiny_model(architecture, tmp_path)
    engine = MlxEngine(folder)
    assert (engine.vocab_size, engine.context_size) == (320, 4096)
    assert engine.supports_rollback == (architecture != "mamba")
    model = model_of(engine, folder)
    check_engine(model, tmp_path / "session")
    model.close()
    with pytest.raises(EngineError, match="closed"):
        engine.forward([[1]], [None])


def test_wrong_names_are_clear_errors(tmp_path: Path) -> None:
    from guideway.engines.mlx import MlxEngine

    folder = tiny_model("llama", tmp_path / "model")
    with pytest.raises(EngineError, match="got 'toaster'"):
        MlxEngine(folder, device="toaster")
    with pytest.raises(EngineError, match="dtype 'float31'"):
        MlxEngine(folder, dtype="float31")
    with pytest.raises(ModelNotFoundError, match="no MLX model found"):
        MlxEngine(tmp_path / "nothing")
    with pytest.raises(EngineError, match="cannot load"):
        MlxEngine(tiny_model("bloom", tmp_path / "bloom"))
    assert MlxEngine(folder, context_size=9, dtype="float16", device="cpu").context_size == 9
