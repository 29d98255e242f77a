"""Single inputs and outputs of an ONNX graph: names, ranks and types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from guideway.errors import EngineError

__all__ = ["FLOATS", "KNOWN_INPUTS", "Value", "check_rank", "integer_type", "listed", "past_names"]

KNOWN_INPUTS = ("input_ids", "attention_mask", "position_ids", "use_cache_branch", "num_logits_to_keep")
_PAST = re.compile(r"past_key_values\.(\d{1,5})\.(key|value)")
FLOATS: dict[str, np.dtype[Any]] = {"tensor(float)": np.dtype(np.float32), "tensor(float16)": np.dtype(np.float16)}
_INTEGERS: dict[str, np.dtype[Any]] = {"tensor(int64)": np.dtype(np.int64), "tensor(int32)": np.dtype(np.int32)}


class Value(Protocol):
    """An input or output, as ONNX Runtime describes it."""

    name: str
    type: str
    shape: Sequence[int | str | None]


def past_names(given: Mapping[str, Value], made: Mapping[str, Value]) -> list[str]:
    """Return the names of the cache inputs in the order of layers.

    Raises `EngineError` if there are none, if one lacks its output, its key or its value, or if a rank is wrong.
    """
    found = sorted((int(m[1]), m[2]) for m in map(_PAST.fullmatch, given) if m)
    if not found:
        raise EngineError(
            f"expected the inputs past_key_values.N.key and past_key_values.N.value (export the model with a KV cache);"
            f" the graph has {listed(given)}"
        )
    names = [f"past_key_values.{layer}.{part}" for layer, part in found]
    for layer, part in found:
        other = "value" if part == "key" else "key"
        if (layer, other) not in found:
            raise EngineError(
                f"the graph has past_key_values.{layer}.{part} but not past_key_values.{layer}.{other}; both are needed"
            )
        past, present = f"past_key_values.{layer}.{part}", f"present.{layer}.{part}"
        if present not in made:
            raise EngineError(f"expected the output {present} for {past}; the graph has {listed(made)}")
        check_rank(given[past], 4, "[row, head, token, channel]")
        check_rank(made[present], 4, "[row, head, token, channel]")
    return names


def check_rank(value: Value, rank: int, meaning: str) -> None:
    """Raise `EngineError` if a value does not have `rank` dimensions. `meaning`: their names, for the message."""
    if len(value.shape) != rank:
        raise EngineError(f"{value.name} must have {rank} dimensions {meaning}, got the shape {list(value.shape)}")


def integer_type(value: Value) -> np.dtype[Any] | None:
    """Return the type of an integer input, or None for `use_cache_branch`, which is boolean.

    Raises `EngineError` for another type or a wrong rank.
    """
    if value.name == "use_cache_branch":
        if value.type != "tensor(bool)":
            raise EngineError(f"use_cache_branch must be bool, got {value.type}")
        return None
    if value.type not in _INTEGERS:
        raise EngineError(f"{value.name} must be int64 or int32, got {value.type}")
    if value.name != "num_logits_to_keep":
        check_rank(value, 2, "[row, token]")
    return _INTEGERS[value.type]


def listed(names: Iterable[str]) -> str:
    """Join at most 12 names for a message."""
    given = list(names)
    return ", ".join(given[:12]) + (f" and {len(given) - 12} more" if len(given) > 12 else "") or "none"
