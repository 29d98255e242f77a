"""The log of vLLM says that our backend is active. Without vLLM, stub classes replace its types."""

from __future__ import annotations

import logging

import pytest

import guideway as gw
from guideway.tokenizers import Tokenizer
from tests.helpers.vllm_stub import backend_module

pytestmark = pytest.mark.engine("torch")


def test_an_active_backend_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    table = gw.Vocabulary([*(bytes([one]) for one in range(256)), b""], eos_ids=[256], special_ids=[256])
    with caplog.at_level(logging.INFO, "vllm.guideway"):
        backend_module().GuidewayBackend(None, Tokenizer.of(table), 257)
    (line,) = [one.getMessage() for one in caplog.records if one.name == "vllm.guideway"]
    assert line.startswith("guideway ")
    assert line.endswith(" enforces the structured outputs of this engine (257 tokens)")
