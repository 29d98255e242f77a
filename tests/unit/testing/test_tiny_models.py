"""The small models of `guideway.testing`: the same seed gives the same bytes, without downloads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guideway.errors import ModelNotFoundError
from guideway.testing import ARCHITECTURES, tiny_model
from guideway.tokenizers import Tokenizer


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_models_follow_from_their_seed(architecture: str, tmp_path: Path) -> None:
    one = tiny_model(architecture, tmp_path / "one", seed=1)
    again, other = (tiny_model(architecture, tmp_path / str(seed), seed=seed) for seed in (1, 2))
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (one / name).read_bytes() == (again / name).read_bytes()
    assert (one / "model.safetensors").read_bytes() != (other / "model.safetensors").read_bytes()
    assert json.loads((one / "config.json").read_text("utf-8"))["model_type"] == architecture


def test_the_tokenizer_opens_with_bos_and_knows_every_byte(tmp_path: Path) -> None:
    tokenizer = Tokenizer.of(tiny_model("llama", tmp_path))
    assert (tokenizer.bos_id, tokenizer.eos_ids, len(tokenizer.vocabulary)) == (0, (1,), 320)
    assert tokenizer.encode("", special=True) == [0]
    text = "a crab, \N{CRAB}, é\n"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode(" crab")) < 5


def test_unknown_architectures_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="known are llama, qwen2"):
        tiny_model("perceptron", tmp_path)
