"""config.json, which says of every model of the Hub what it is. A stranger's file: misfits are `EngineError`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guideway.errors import EngineError

__all__ = ["context_size", "digest_of", "positive", "read_config"]

_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length", "max_sequence_length")


def read_config(model: Path) -> dict[str, Any]:
    """config.json beside the model's file or one folder up; empty where there is none."""
    for file in (model.parent / "config.json", model.parent.parent / "config.json"):
        if file.is_file():
            try:
                config = json.loads(file.read_text("utf-8"))
            except (OSError, ValueError, RecursionError) as error:
                raise EngineError(f"cannot read {file}: {error}") from error
            if not isinstance(config, dict):
                raise EngineError(f"{file} must hold a JSON object")
            text_part = config.get("text_config")  # models of several modalities keep the language model's part there
            return {**config, **text_part} if isinstance(text_part, dict) else config
    return {}


def context_size(config: Mapping[str, Any], given: int | None = None) -> int:
    """How many tokens the model was made for; `given` is what the user says.

    Raises `EngineError` without either, `ValueError` for more than the model was made for.
    """
    known = next((int(config[key]) for key in _CONTEXT_KEYS if positive(config.get(key))), None)
    if given is not None and given < 1:
        raise ValueError(f"context_size must be at least 1, got {given}")
    if given is not None and given > (known or given):
        raise ValueError(f"context_size is {given}, and the model was made for {known} tokens")
    if size := given or known:
        return size
    raise EngineError(
        f"config.json does not say how many tokens the model's context holds ({', '.join(_CONTEXT_KEYS)});"
        " give context_size="
    )


def positive(value: object) -> bool:
    """Whether it is a count: no bool, and of a size that fits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31


def digest_of(*files: Path) -> str:
    """A digest of what is in these files, however large."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
        digest.update(b"%d" % file.stat().st_size)
    return digest.hexdigest()
