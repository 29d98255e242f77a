"""GGUF files on llama.cpp: every supported architecture advances and rewinds."""

from __future__ import annotations

from pathlib import Path

import pytest

import guideway as gw
from guideway.engines.base import SHORTEST_PREFIX, shortest_prefix
from guideway.errors import EngineError, ModelNotFoundError
from guideway.testing import tiny_model
from tests.helpers.engines import check_engine, model_of

pytestmark = pytest.mark.engine("llama_cpp", "gguf")
ARCHITECTURES = ("llama", "qwen2", "gpt2", "gpt_neox", "mpt", "bloom", "mamba")  # llama.cpp does not support GPT-J


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sessions(architecture: str, tmp_path: Path) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine
    from tests.helpers.gguf_models import write_gguf

    folder = tiny_model(architecture, tmp_path)
    engine = LlamaCppEngine(write_gguf(folder, tmp_path / "model.gguf"))
    assert (engine.vocab_size, engine.context_size) == (320, 4096)
    assert engine.supports_rollback == (architecture != "mamba")
    assert shortest_prefix(engine) == (SHORTEST_PREFIX if architecture == "mamba" else 256)
    model = model_of(engine, tmp_path / "model.gguf")
    # The table of GELU that llama.cpp looks up is of half precision; where sums take another order, it steps.
    tolerance = 1e-3 if architecture in ("llama", "qwen2", "mamba") else 2e-2
    check_engine(model, tmp_path / "session", tolerance=tolerance)
    kept = model.session()
    kept.feed("crab")
    kept.logits()
    model.close()
    model.close()
    with pytest.raises(EngineError, match="closed"):
        kept.kv_cache().cache  # noqa: B018  # the look alone is the test


def test_sequences_and_cells_run_out_by_name(tmp_path: Path) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine
    from tests.helpers.gguf_models import write_gguf

    folder = tiny_model("llama", tmp_path, context=64)
    engine = LlamaCppEngine(write_gguf(folder, tmp_path / "model.gguf"), kv_cache_tokens=256, rows=6)
    model = model_of(engine, tmp_path / "model.gguf")
    sessions = [model.session() for _ in range(8)]
    for index, session in enumerate(sessions):
        session.feed([index + 9] * 50)
    for session in sessions[:5]:
        session.logits()
    with pytest.raises(EngineError, match=r"no free cells|sequences are in use"):
        sessions[5].logits()
    del sessions[5:]
    before = [session.logits() for session in sessions]
    assert all((a == b.logits()).all() for a, b in zip(before, sessions, strict=True))
    del sessions
    fresh = model.session()
    fresh.feed([9] * 50)
    assert abs(fresh.logits() - before[0]).max() < 1e-4


def test_wrong_names_are_clear_errors(tmp_path: Path) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine

    with pytest.raises(ModelNotFoundError, match="model file not found"):
        LlamaCppEngine(tmp_path / "none.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF nonsense")
    with pytest.raises(EngineError, match="cannot load"):
        LlamaCppEngine(tmp_path / "bad.gguf")
    with pytest.raises(EngineError, match="got 'toaster'"):
        LlamaCppEngine(tmp_path / "bad.gguf", device="toaster")
    with pytest.raises(EngineError, match="'float32' or 'float16'"):
        LlamaCppEngine(tmp_path / "bad.gguf", dtype="int3")
    with pytest.raises(ValueError, match="rows"):
        LlamaCppEngine(tmp_path / "bad.gguf", rows=0)


def test_load_model_object(tmp_path: Path) -> None:
    from llama_cpp import Llama

    from tests.helpers.gguf_models import write_gguf

    file = write_gguf(tiny_model("llama", tmp_path), tmp_path / "model.gguf")
    loaded = Llama(str(file), n_ctx=64, verbose=False)
    constraint = gw.Regex("[a-z ]{5,20}")
    with gw.load(f"gguf:{file}") as named, gw.load(loaded, context_size=200) as model:
        assert (model.name, model.context_size) == ("model.gguf", 200)
        assert model.tokenizer.vocabulary.fingerprint == named.tokenizer.vocabulary.fingerprint
        assert gw.generate(model, "I feel ", constraint) == gw.generate(named, "I feel ", constraint)
        assert model.engine.fingerprint == named.engine.fingerprint
    again = gw.load(loaded, tokenizer=file)  # the first engine did not free the weights
    assert gw.generate(again, "I feel ", constraint)
    assert loaded.n_tokens == 0
    again.close()
    loaded.close()
    with pytest.raises(EngineError, match="closed"):
        gw.load(loaded, tokenizer=file)


def test_load_passes_options_of_the_kv_cache(tmp_path: Path) -> None:
    from tests.helpers.gguf_models import write_gguf

    name = f"gguf:{write_gguf(tiny_model('llama', tmp_path), tmp_path / 'model.gguf')}"
    with gw.load(name, rows=4, kv_unified=True, kv_cache_tokens=512) as model:
        assert gw.generate(model, "I feel ", gw.Regex("[a-z ]{5,20}"))
    with pytest.raises(ValueError, match="rows"):
        gw.load(name, rows=0)
    with pytest.raises(TypeError, match="device_map= does not apply"):
        gw.load(name, device_map="auto")
