"""Stand-ins for the types of vLLM that the backend is derived from, for machines without vLLM."""

from __future__ import annotations

import enum
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import guideway.integrations

__all__ = ["backend_module"]


class _Backend:
    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        self.vllm_config, self.tokenizer, self.vocab_size = vllm_config, tokenizer, vocab_size


class _Grammar:
    pass


class Kind(enum.Enum):
    """The kinds of constraints, as vLLM names them."""

    JSON = enum.auto()
    JSON_OBJECT = enum.auto()
    REGEX = enum.auto()
    GRAMMAR = enum.auto()
    CHOICE = enum.auto()
    STRUCTURAL_TAG = enum.auto()


def backend_module() -> Any:
    """Import `guideway.integrations.vllm.backend`, on stand-ins if vLLM is not installed."""
    try:
        return importlib.import_module("guideway.integrations.vllm.backend")
    except ModuleNotFoundError:
        pass
    types = ModuleType("vllm.v1.structured_output.backend_types")
    types.StructuredOutputBackend = _Backend  # type: ignore[attr-defined]  # a module made here
    types.StructuredOutputGrammar = _Grammar  # type: ignore[attr-defined]  # as above
    types.StructuredOutputOptions = Kind  # type: ignore[attr-defined]  # as above
    package = ModuleType("guideway.integrations.vllm")  # without the plugin, which needs vLLM
    package.__path__ = [str(Path(guideway.integrations.__file__ or "").parent / "vllm")]
    names = ("vllm", "vllm.v1", "vllm.v1.structured_output", types.__name__, package.__name__)
    before = {name: sys.modules.get(name) for name in names}
    for name in names[:3]:
        sys.modules[name] = ModuleType(name)
    sys.modules[types.__name__], sys.modules[package.__name__] = types, package
    try:
        return importlib.import_module("guideway.integrations.vllm.backend")
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
