"""Reads config.json of models. The file is untrusted: unexpected content raises `EngineError`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guideway.errors import EngineError, GuidewayError
from guideway.jsontext.decoder import loads

__all__ = ["context_size", "digest_of", "positive", "read_config"]

_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length", "max_sequence_length")


def read_config(model: Path) -> dict[str, Any]:
    """Return the content of config.json in the folder of the model file or in the folder above; {} if there is none.

    The settings of `text_config` (multimodal models) replace those of the same name.

    Raises:
        EngineError: The file cannot be read, or is not a JSON object.
    """
    for file in (model.parent / "config.json", model.parent.parent / "config.json"):
        if file.is_file():
            try:
                config = loads(file.read_text("utf-8"))
            except (OSError, ValueError, GuidewayError) as error:
                raise EngineError(f"cannot read {file}: {error}") from error
            if not isinstance(config, dict):
                raise EngineError(f"{file} must contain a JSON object, got {type(config).__name__}")
            text_part = config.get("text_config")  # multimodal models keep the language model's settings there
            return {**config, **text_part} if isinstance(text_part, dict) else config
    return {}


def context_size(config: Mapping[str, Any], given: int | None = None) -> int:
    """Return the number of tokens of the context.

    Args:
        config: The content of config.json.
        given: The size that the user requested; None: the size in config.json.

    Raises:
        EngineError: `given` is None, and config.json does not have the size.
        ValueError: `given` is not positive, or greater than the size in config.json.
    """
    known = next((int(config[key]) for key in _CONTEXT_KEYS if positive(config.get(key))), None)
    if given is not None and given < 1:
        raise ValueError(f"context_size must be at least 1, got {given}")
    if given is not None and given > (known or given):
        raise ValueError(f"context_size must be at most {known}, the context of the model, got {given}")
    if size := given or known:
        return size
    raise EngineError(
        f"config.json does not define the context size (expected one of {', '.join(_CONTEXT_KEYS)}); pass context_size="
    )


def positive(value: object) -> bool:
    """Return whether a value is a positive int below 2**31, and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31


def digest_of(*files: Path) -> str:
    """Return a digest of the content of files."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
        digest.update(b"%d" % file.stat().st_size)
    return digest.hexdigest()
