"""The end tokens of generation_config.json, in `hf:` models and in processors."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import guideway as gw
from guideway.testing import tiny_model

pytestmark = pytest.mark.engine("torch", "transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tiny_model("llama", tmp_path_factory.mktemp("chat"))
    (made / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 20, 99_999], "bos_token_id": 0}))
    return made


def test_loaded_models_have_all_end_tokens(folder: Path) -> None:
    model = gw.load(f"hf:{folder}")
    assert model.tokenizer.eos_ids == (1, 20)
    found = model.complete("a", gw.Regex("[a-z]{0,9}"), max_tokens=12, logprobs=0)
    assert found.tokens[-1] in (1, 20)


def test_the_tokenizer_of_a_user_is_not_changed(folder: Path) -> None:
    mine = gw.tokenizers.Tokenizer.of(folder, eos_ids=[1])
    assert gw.load(f"hf:{folder}", tokenizer=mine).tokenizer.eos_ids == (1,)


def allowed(processor: Any) -> set[int]:
    import torch

    ids = torch.tensor([[5, 6]])
    return set(torch.isfinite(processor(ids, torch.zeros(1, 320))[0]).nonzero().flatten().tolist())


def test_a_processor_allows_all_end_tokens(folder: Path) -> None:
    from transformers import AutoTokenizer

    from guideway.integrations.transformers import logits_processor

    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert {1, 20} <= allowed(logits_processor(gw.Regex("[a-z]*"), tokenizer))
    assert allowed(logits_processor(gw.Regex("[a-z]*"), tokenizer, eos_ids=1)) & {1, 20} == {1}
    assert allowed(logits_processor(gw.Regex("[a-z]*"), tokenizer, eos_ids=[1, 21])) & {1, 20, 21} == {1, 21}
    without_files = gw.tokenizers.Tokenizer.of(tokenizer)
    assert allowed(logits_processor(gw.Regex("[a-z]*"), without_files)) & {1, 20} == {1}


def test_continuous_batching_uses_the_generation_config_of_the_manager(folder: Path) -> None:
    from transformers import AutoTokenizer

    from guideway.integrations.transformers.end_tokens import with_end_tokens

    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert with_end_tokens(tokenizer, SimpleNamespace(eos_token_id=[1, 30])).eos_ids == (1, 30)
    assert with_end_tokens(tokenizer, SimpleNamespace(eos_token_id=None)).eos_ids == (1,)
