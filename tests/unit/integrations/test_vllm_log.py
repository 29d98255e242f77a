"""The log of vLLM says that our backend is active. Without vLLM, stub classes replace its types."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import Any

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


@pytest.mark.parametrize(
    ("config", "loading"),
    [(None, False), (SimpleNamespace(), True), (SimpleNamespace(StructuredOutputsConfig=object), False)],
)
def test_nothing_is_registered_while_the_configuration_is_imported(
    config: Any, loading: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the log would have a warning at each start, although vLLM registers the backend later."""
    from guideway.integrations.vllm.plugin import is_loading

    if config is None:
        monkeypatch.delitem(sys.modules, "vllm.config", raising=False)
    else:
        monkeypatch.setitem(sys.modules, "vllm.config", config)
    assert is_loading() is loading
