"""Skips the tests of this folder where PyTorch finds no CUDA device, and provides a small model."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from guideway.testing import tiny_model

from . import DEVICE

HERE = Path(__file__).parent


def _has_device() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return DEVICE == "cpu" or bool(torch.cuda.is_available())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    own = [item for item in items if HERE in item.path.parents]
    if own and not _has_device():
        for item in own:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device: run `make test-gpu` on a machine with one"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random llama with a tokenizer."""
    return Path(tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3))


@pytest.fixture(scope="session")
def loaded(folder: Path) -> tuple[Any, Any]:
    """The model of transformers in bfloat16 on the device, and its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), eos_token="</s>", bos_token="<s>", pad_token="</s>"
    )
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to(DEVICE).eval()
    return model, tokenizer
