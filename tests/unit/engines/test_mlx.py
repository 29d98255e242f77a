"""Models of mlx-lm: every supported architecture of the small models advances and rewinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import guideway as gw
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


def test_load_model_object(tmp_path: Path) -> None:
    from mlx_lm.utils import load_model

    folder = tiny_model("llama", tmp_path)
    loaded = load_model(folder)[0]
    constraint = gw.Regex("[a-z ]{5,20}")
    with gw.load(f"mlx:{folder}") as named, gw.load(loaded, tokenizer=folder, context_size=200) as model:
        assert (model.name, model.context_size) == ("llama", 200)
        assert gw.generate(model, "I feel ", constraint) == gw.generate(named, "I feel ", constraint)
        assert len(model.engine.fingerprint) == 32
        assert gw.load(loaded, tokenizer=folder).engine.fingerprint == model.engine.fingerprint
    with pytest.raises(TypeError, match="needs tokenizer="):
        gw.load(loaded)


def test_prompts_run_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt that is longer than one call gives the logits of token after token."""
    from guideway.engines.mlx import MlxEngine, model as module

    engine = MlxEngine(tiny_model("llama", tmp_path))
    ids = [[5 + i % 7 for i in range(70)], [9] * 64, [11, 12]]
    whole, _ = engine.forward(ids, [None] * 3)
    monkeypatch.setattr(module, "_PREFILL", 16)
    parts, caches = engine.forward(ids, [None] * 3)
    assert np.abs(parts - whole).max() < 1e-4
    assert [cache.length for cache in caches] == [70, 64, 2]
    cache = None
    for token_id in ids[2]:
        logits, (cache,) = engine.forward([[token_id]], [cache])
    assert np.abs(parts[2] - logits[0]).max() < 1e-4


def test_a_row_of_one_token_between_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from guideway.engines.mlx import MlxEngine, model as of_mlx

    engine = MlxEngine(tiny_model("llama", tmp_path))
    assert engine.pads_rows
    rows = [[5, 6, 7, 8] * 3, [9], [3, 4] * 5, [1, 2], [7]]
    expected = [engine.forward([row], [None])[0][0] for row in rows]
    later = [engine.forward([[*row, 8]], [None])[0][0] for row in rows]
    monkeypatch.setattr(of_mlx, "by_padding", lambda counts, _: [list(range(len(counts)))])  # all rows in one call
    found, caches = engine.forward(rows, [None] * len(rows))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert [cache.length for cache in caches] == list(map(len, rows))
    found, _ = engine.forward([[8]] * len(rows), caches)
    np.testing.assert_allclose(found, later, atol=1e-4)
