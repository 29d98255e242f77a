"""The files of an ONNX export: where the model is, what config.json says, and a digest of the weights.

Every file here is a stranger's: whatever does not fit is an `EngineError` that says what was expected.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from guideway.errors import EngineError, NotAvailable

__all__ = ["cache_size", "context_size", "find_model", "fingerprint", "read_config", "weight_bytes"]

_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length", "max_sequence_length")


def find_model(path: Path) -> Path:
    """The model's file in a folder, or the file itself. Raises `NotAvailable`."""
    if path.is_file():
        return path
    for candidate in (path / "model.onnx", path / "onnx" / "model.onnx"):
        if candidate.is_file():
            return candidate
    found = sorted(path.glob("*.onnx")) if path.is_dir() else []
    if len(found) == 1:
        return found[0]
    seen = f"found {', '.join(f.name for f in found)}" if found else "no .onnx file found"
    raise NotAvailable(f"no ONNX model at {path}: expected model.onnx or onnx/model.onnx; {seen}")


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


def context_size(config: Mapping[str, Any]) -> int:
    """How many tokens the model was made for. Raises `EngineError` where config.json does not say."""
    for key in _CONTEXT_KEYS:
        if _positive(config.get(key)):
            return int(config[key])
    raise EngineError(
        f"config.json does not say how many tokens the model's context holds ({', '.join(_CONTEXT_KEYS)});"
        " give context_size="
    )


def cache_size(name: str, shape: Sequence[int | str | None], axis: int, config: Mapping[str, Any]) -> int:
    """A fixed size of a cache input: from the graph first, from config.json where the graph only names it."""
    size: Any = shape[axis]
    found = size if _positive(size) else (_config_heads if axis == 1 else _config_channels)(config)
    if not _positive(found):
        raise EngineError(f"neither {name} {list(shape)} nor config.json says the size of axis {axis}")
    return int(found)


def weight_bytes(file: Path) -> int:
    """About how large the model is: its file and what lies beside it."""
    return sum(f.stat().st_size for f in file.parent.iterdir() if f.is_file() and f.suffix not in {".json", ".txt"})


def fingerprint(file: Path) -> str:
    """A digest of the model's file and of the files with its weights, which it names."""
    graph = file.read_bytes()
    digest = hashlib.blake2b(graph, digest_size=16)
    for beside in sorted(file.parent.iterdir()):
        if beside != file and beside.is_file() and beside.name.encode() in graph:
            with beside.open("rb") as content:
                while block := content.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def _config_heads(config: Mapping[str, Any]) -> Any:
    return next((config[k] for k in ("num_key_value_heads", "num_attention_heads", "n_head") if config.get(k)), None)


def _config_channels(config: Mapping[str, Any]) -> Any:
    if config.get("head_dim"):
        return config["head_dim"]
    width = config.get("hidden_size", config.get("n_embd"))
    heads = config.get("num_attention_heads", config.get("n_head"))
    return width // heads if _positive(width) and _positive(heads) else None


def _positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31
