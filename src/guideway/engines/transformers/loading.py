"""Models and tokenizers by the names that transformers knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from transformers import AutoModelForCausalLM, AutoTokenizer

from guideway.errors import EngineError, ModelNotFoundError

__all__ = ["load", "slides", "tokenizer"]

SECONDS = 10.0
"""How long the Hub has to answer before a model counts as one that must be on this machine."""


def load(name: str, dtype: str | None) -> Any:
    """The model of a name or folder. Raises `ModelNotFoundError`, `EngineError` for a type that there is not."""
    kind = getattr(torch, dtype, None) if dtype is not None else None
    if dtype is not None and not isinstance(kind, torch.dtype):
        raise EngineError(f"PyTorch has no type {dtype!r}; known are float32, bfloat16, float16 …")
    offline = _offline(name)
    try:
        return AutoModelForCausalLM.from_pretrained(name, dtype=kind or "auto", local_files_only=offline)
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(f"transformers cannot load {name!r}: {str(error).splitlines()[0]}") from error


def tokenizer(name: str) -> Any:
    """The tokenizer of a model's name or folder. Raises `ModelNotFoundError`."""
    offline = _offline(name)
    try:
        return AutoTokenizer.from_pretrained(name, local_files_only=offline)
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(f"transformers has no tokenizer for {name!r}: {str(error).splitlines()[0]}") from error


def _offline(name: str) -> bool:
    """Whether the Hub cannot be reached. One request tells; those of the library are tried again for half a minute.

    Raises `ModelNotFoundError` for a folder that is not there, which the library calls a wrong name.
    """
    if Path(name).exists():
        return False
    if name.startswith(("/", "./", "../", "~")):
        raise ModelNotFoundError(f"there is no folder {name}")
    try:
        HfApi().model_info(name, timeout=SECONDS)
    except (HfHubHTTPError, HFValidationError):
        return False  # the Hub has answered; the loader says what is wrong
    except Exception:  # of whichever library fetches: no route, no name, too slow
        return True
    return False


def slides(config: dict[str, Any]) -> bool:
    """Whether a layer forgets what lies far back, so that a cut cache is not what it was."""
    return any(kind != "full_attention" for kind in config.get("layer_types") or ())
