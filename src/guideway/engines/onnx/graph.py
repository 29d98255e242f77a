"""What an ONNX export says about itself: names, ranks and types of its inputs and outputs, and config.json.

Every file here is a stranger's: whatever does not fit is an `EngineError` that says what was expected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from guideway.errors import EngineError, NotAvailable

__all__ = ["Graph", "context_size", "find_model", "read_config", "read_graph"]

_KNOWN_INPUTS = ("input_ids", "attention_mask", "position_ids", "use_cache_branch", "num_logits_to_keep")
_PAST = re.compile(r"past_key_values\.(\d{1,5})\.(key|value)")
_FLOATS: dict[str, np.dtype[Any]] = {"tensor(float)": np.dtype(np.float32), "tensor(float16)": np.dtype(np.float16)}
_INTEGERS: dict[str, np.dtype[Any]] = {"tensor(int64)": np.dtype(np.int64), "tensor(int32)": np.dtype(np.int32)}
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length", "max_sequence_length")


class Value(Protocol):
    """One input or output, as the runtime describes it."""

    name: str
    type: str
    shape: Sequence[int | str | None]


@dataclass(frozen=True)
class Graph:
    """How to call the model. `pasts[i]` is fed what `presents[i]` gave; both are [row, head, token, channel]."""

    integers: Mapping[str, np.dtype[Any]]
    pasts: tuple[str, ...]
    presents: tuple[str, ...]
    heads: tuple[int, ...]
    channels: tuple[int, ...]
    cache_type: np.dtype[Any]
    has_branch: bool


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


def read_graph(inputs: Sequence[Value], outputs: Sequence[Value], config: Mapping[str, Any]) -> Graph:
    """Check names, ranks and types. Raises `EngineError` for the first that does not fit."""
    given = {value.name: value for value in inputs}
    made = {value.name: value for value in outputs}
    if "input_ids" not in given or "logits" not in made:
        raise EngineError(
            f"expected an input input_ids and an output logits; the graph has inputs {_list(given)}"
            f" and outputs {_list(made)}"
        )
    _rank(given["input_ids"], 2, "[row, token]")
    _rank(made["logits"], 3, "[row, token, vocabulary]")
    if made["logits"].type not in _FLOATS:
        raise EngineError(f"logits must be float or float16, got {made['logits'].type}")
    pasts = _past_names(given, made)
    strange = [name for name in given if name not in _KNOWN_INPUTS and name not in pasts]
    if strange:
        raise EngineError(
            f"unknown inputs {_list(strange)}; known are {', '.join(_KNOWN_INPUTS)} and past_key_values.N.key/value"
        )
    integers = {name: _integer_type(given[name]) for name in _KNOWN_INPUTS if name in given}
    kinds = {given[name].type for name in pasts}
    if len(kinds) != 1 or not kinds <= set(_FLOATS):
        raise EngineError(f"past_key_values must all be float or all float16, got {', '.join(sorted(kinds))}")
    return Graph(
        integers={name: kind for name, kind in integers.items() if kind is not None},
        pasts=tuple(pasts),
        presents=tuple(name.replace("past_key_values", "present") for name in pasts),
        heads=tuple(_size(given[name], 1, config, _config_heads) for name in pasts),
        channels=tuple(_size(given[name], 3, config, _config_channels) for name in pasts),
        cache_type=_FLOATS[kinds.pop()],
        has_branch="use_cache_branch" in given,
    )


def _past_names(given: Mapping[str, Value], made: Mapping[str, Value]) -> list[str]:
    found = sorted((int(m[1]), m[2]) for m in map(_PAST.fullmatch, given) if m)
    if not found:
        raise EngineError(
            f"expected the inputs past_key_values.N.key and past_key_values.N.value (an export with KV cache);"
            f" the graph has {_list(given)}"
        )
    names = [f"past_key_values.{layer}.{part}" for layer, part in found]
    for layer, part in found:
        other = "value" if part == "key" else "key"
        if (layer, other) not in found:
            raise EngineError(f"there is past_key_values.{layer}.{part}, and no past_key_values.{layer}.{other}")
        past, present = f"past_key_values.{layer}.{part}", f"present.{layer}.{part}"
        if present not in made:
            raise EngineError(f"expected the output {present} for {past}; the graph has {_list(made)}")
        _rank(given[past], 4, "[row, head, token, channel]")
        _rank(made[present], 4, "[row, head, token, channel]")
    return names


def _rank(value: Value, rank: int, meaning: str) -> None:
    if len(value.shape) != rank:
        raise EngineError(f"{value.name} must have {rank} dimensions {meaning}, got the shape {list(value.shape)}")


def _integer_type(value: Value) -> np.dtype[Any] | None:
    """The type of an integer input; None for the switch, which is the one boolean."""
    if value.name == "use_cache_branch":
        if value.type != "tensor(bool)":
            raise EngineError(f"use_cache_branch must be bool, got {value.type}")
        return None
    if value.type not in _INTEGERS:
        raise EngineError(f"{value.name} must be int64 or int32, got {value.type}")
    if value.name != "num_logits_to_keep":
        _rank(value, 2, "[row, token]")
    return _INTEGERS[value.type]


def _size(value: Value, axis: int, config: Mapping[str, Any], fallback: Any) -> int:
    """A fixed size of a cache input: from the graph first, from config.json where the graph names it only."""
    size: Any = value.shape[axis]
    found = size if _positive(size) else fallback(config)
    if not _positive(found):
        raise EngineError(f"neither {value.name} {list(value.shape)} nor config.json says the size of axis {axis}")
    return int(found)


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


def _list(names: Any) -> str:
    listed = list(names)
    return ", ".join(listed[:12]) + (f" and {len(listed) - 12} more" if len(listed) > 12 else "") or "none"
