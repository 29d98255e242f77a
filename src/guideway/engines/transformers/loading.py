"""Loads models and tokenizers by name or folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from transformers import AutoModelForCausalLM, AutoTokenizer

from guideway.arguments import first_line, short_repr
from guideway.errors import EngineError, GuidewayError, ModelNotFoundError
from guideway.tokenizers import Tokenizer

__all__ = ["load", "slides", "tokenizer"]

SECONDS = 10.0
"""Timeout for the Hugging Face Hub, in seconds. After it, only local files are used."""


def load(name: str, dtype: str | None, options: Mapping[str, Any]) -> Any:
    """Load a model. `options`: further arguments of `from_pretrained`.

    Raises:
        ModelNotFoundError: transformers cannot load the model.
        EngineError: The dtype is unknown.
    """
    kind = getattr(torch, dtype, None) if dtype is not None else None
    if dtype is not None and not isinstance(kind, torch.dtype):
        raise EngineError(f"unknown PyTorch dtype {short_repr(dtype)}; use for example float32, bfloat16 or float16")
    given: dict[str, Any] = {"dtype": kind or "auto", "local_files_only": _offline(name), **options}
    try:
        return AutoModelForCausalLM.from_pretrained(name, **given)
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(f"transformers cannot load {short_repr(name)}: {first_line(error)}") from error


_SHARED = ("revision", "subfolder", "token", "trust_remote_code", "cache_dir", "local_files_only")
"""The options that determine where files are found. They apply to the tokenizer, too."""


def tokenizer(name: str, eos_ids: Iterable[int] = (), options: Mapping[str, Any] | None = None) -> Tokenizer:
    """Return the tokenizer of a model name or folder. Raises `ModelNotFoundError`.

    Args:
        name: The name or folder.
        eos_ids: Ids that end a text, in addition to the EOS token of the tokenizer.
        options: The options of `load`. Those that determine where files are found apply here, too; others are ignored.
    """
    given = {
        "local_files_only": _offline(name),
        **{key: (options or {})[key] for key in _SHARED if key in (options or {})},
    }
    try:
        table = Tokenizer.of(AutoTokenizer.from_pretrained(name, **given))
        known = (one for one in eos_ids if one < len(table.vocabulary))
        return Tokenizer.of(table, eos_ids={*table.eos_ids, *known})
    except GuidewayError:
        raise
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(
            f"transformers found no tokenizer for {short_repr(name)}: {first_line(error)}"
        ) from error


def _offline(name: str) -> bool:
    """Return whether the Hugging Face Hub is unreachable, by one request; False for a local folder, without a request.

    The library itself would retry for half a minute.

    Raises:
        ModelNotFoundError: `name` is a path that does not exist; the library would report an invalid name.
    """
    if os.path.exists(name):  # unlike `Path.exists`, False for a path that is too long
        return False
    if name.startswith(("/", "./", "../", "~")):
        raise ModelNotFoundError(f"folder not found: {name}")
    try:
        HfApi().model_info(name, timeout=SECONDS)
    except (HfHubHTTPError, HFValidationError):
        return False  # the Hub is reachable; the loader reports the error
    except Exception:  # the HTTP library raises various exceptions: no route, no DNS, timeout
        return True
    return False


def slides(config: dict[str, Any]) -> bool:
    """Return whether a layer has another kind than full attention, such as a sliding window.

    The cache of such a layer cannot be truncated.
    """
    return any(kind != "full_attention" for kind in config.get("layer_types") or ())
