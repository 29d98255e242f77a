"""Models and tokenizers by the names that transformers knows."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from guideway.errors import EngineError, NotAvailable

__all__ = ["load", "slides", "tokenizer"]


def load(name: str, dtype: str | None) -> Any:
    """The model of a name or folder. Raises `NotAvailable`, `EngineError` for a type that there is not."""
    kind = getattr(torch, dtype, None) if dtype is not None else None
    if dtype is not None and not isinstance(kind, torch.dtype):
        raise EngineError(f"PyTorch has no type {dtype!r}; known are float32, bfloat16, float16 …")
    try:
        return AutoModelForCausalLM.from_pretrained(name, dtype=kind or "auto")
    except (OSError, ValueError) as error:
        raise NotAvailable(f"transformers cannot load {name!r}: {str(error).splitlines()[0]}") from error


def tokenizer(name: str) -> Any:
    """The tokenizer of a model's name or folder. Raises `NotAvailable`."""
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise NotAvailable(f"transformers has no tokenizer for {name!r}: {str(error).splitlines()[0]}") from error


def slides(config: dict[str, Any]) -> bool:
    """Whether a layer forgets what lies far back, so that a cut cache is not what it was."""
    return any(kind != "full_attention" for kind in config.get("layer_types") or ())
