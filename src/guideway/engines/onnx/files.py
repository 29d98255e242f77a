"""The files of an ONNX export: the model file, sizes from config.json, and the digest of the weights.

The files are untrusted: unexpected content raises `EngineError`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from guideway.arguments import shortened
from guideway.engines.config import digest_of, positive
from guideway.errors import EngineError, ModelNotFoundError

__all__ = ["cache_size", "find_model", "fingerprint", "weight_bytes"]


def find_model(path: Path) -> Path:
    """Return the model file in a folder, or the file itself. Raises `ModelNotFoundError`."""
    if os.path.isfile(path):  # unlike `Path.is_file`, False for a path that is too long
        return path
    for candidate in (path / "model.onnx", path / "onnx" / "model.onnx"):
        if os.path.isfile(candidate):
            return candidate
    found = sorted(path.glob("*.onnx")) if os.path.isdir(path) else []
    if len(found) == 1:
        return found[0]
    seen = f"found {', '.join(f.name for f in found)}" if found else "no .onnx file found"
    raise ModelNotFoundError(f"no ONNX model at {shortened(str(path))}: expected model.onnx or onnx/model.onnx; {seen}")


def cache_size(name: str, shape: Sequence[int | str | None], axis: int, config: Mapping[str, Any]) -> int:
    """Return the size of an axis of a cache input: from the graph, or from config.json if the graph leaves it variable.

    `axis`: 1 (heads) or 3 (channels). Raises `EngineError` if neither has the size.
    """
    size: Any = shape[axis]
    found = size if positive(size) else (_config_heads if axis == 1 else _config_channels)(config)
    if not positive(found):
        raise EngineError(
            f"the size of axis {axis} of {name} is unknown: it is neither in the graph ({list(shape)}) nor config.json"
        )
    return int(found)


def weight_bytes(file: Path) -> int:
    """Return the approximate size of the model: the bytes of all files in its folder except .json and .txt files."""
    return sum(f.stat().st_size for f in file.parent.iterdir() if f.is_file() and f.suffix not in {".json", ".txt"})


def fingerprint(file: Path) -> str:
    """Return a digest of the model file and of the files in its folder whose names occur in it, such as weights."""
    graph = file.read_bytes()
    beside = [one for one in sorted(file.parent.iterdir()) if one != file and one.is_file()]
    return digest_of(file, *(one for one in beside if one.name.encode() in graph))


def _config_heads(config: Mapping[str, Any]) -> Any:
    return next((config[k] for k in ("num_key_value_heads", "num_attention_heads", "n_head") if config.get(k)), None)


def _config_channels(config: Mapping[str, Any]) -> Any:
    if config.get("head_dim"):
        return config["head_dim"]
    width = config.get("hidden_size", config.get("n_embd"))
    heads = config.get("num_attention_heads", config.get("n_head"))
    return width // heads if positive(width) and positive(heads) else None
