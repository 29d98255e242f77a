"""The inputs and outputs of an ONNX export, with checks of names, ranks and types.

The file is untrusted: unexpected content raises `EngineError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.engines.onnx.files import cache_size
from guideway.engines.onnx.values import FLOATS, KNOWN_INPUTS, Value, check_rank, integer_type, listed, past_names
from guideway.errors import EngineError

__all__ = ["Graph", "check_probe", "read_graph"]


@dataclass(frozen=True)
class Graph:
    """The inputs and outputs of a model.

    Attributes:
        integers: The types of the integer inputs that the model has, by name.
        pasts: The names of the cache inputs, [row, head, token, channel].
        presents: The names of the cache outputs. `presents[i]` of one call is `pasts[i]` of the next.
        heads: The number of heads of each cache input.
        channels: The number of channels of each cache input.
        cache_type: The type of all cache inputs.
        has_branch: Whether the model has the input `use_cache_branch`.
    """

    integers: Mapping[str, np.dtype[Any]]
    pasts: tuple[str, ...]
    presents: tuple[str, ...]
    heads: tuple[int, ...]
    channels: tuple[int, ...]
    cache_type: np.dtype[Any]
    has_branch: bool

    @cached_property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """The numbers of heads and of channels of each cache input."""
        return tuple(zip(self.heads, self.channels, strict=True))

    @cached_property
    def token_bytes(self) -> tuple[int, ...]:
        """The bytes of one token of a row in each cache input."""
        return tuple(heads * channels * self.cache_type.itemsize for heads, channels in self.sizes)

    @property
    def takes_padding(self) -> bool:
        """Whether the inputs can describe rows of different lengths."""
        return "attention_mask" in self.integers and "position_ids" in self.integers

    def padded_feeds(
        self, ids: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64], cached: int, keep: int = 1
    ) -> dict[str, NDArray[Any]]:
        """Return all inputs except the cache, for rows of different lengths.

        Args:
            ids: The new ids, [rows, new]. Padding is at the start of each row.
            starts: The index of the first cached token of each row on the token axis, [rows].
            lengths: The numbers of new tokens, [rows].
            cached: The length of the token axis of the cache. The cached tokens of each row are at its end.
            keep: As for `feeds`.
        """
        feeds = self.feeds(ids, cached, keep)
        new, kinds = ids.shape[1], self.integers
        places = np.arange(cached + new)
        seen = (places >= starts[:, None]) & ((places < cached) | (places >= cached + new - lengths[:, None]))
        feeds["attention_mask"] = seen.astype(kinds["attention_mask"])
        positions = np.arange(new) - (new - lengths)[:, None] + (cached - starts)[:, None]
        feeds["position_ids"] = np.maximum(positions, 0).astype(kinds["position_ids"])
        return feeds

    def feeds(self, ids: NDArray[np.int64], cached: int, keep: int = 1) -> dict[str, NDArray[Any]]:
        """Return all inputs except the cache, for ids of shape [rows, new] after `cached` tokens.

        `keep`: the number of last tokens whose logits are needed, for a model with the input `num_logits_to_keep`.
        """
        (count, new), kinds = ids.shape, self.integers
        feeds: dict[str, NDArray[Any]] = {"input_ids": ids.astype(kinds["input_ids"], copy=False)}
        if "attention_mask" in kinds:
            feeds["attention_mask"] = np.ones((count, cached + new), dtype=kinds["attention_mask"])
        if "position_ids" in kinds:
            feeds["position_ids"] = positions = np.empty((count, new), dtype=kinds["position_ids"])
            positions[...] = cached if new == 1 else np.arange(cached, cached + new)
        if "num_logits_to_keep" in kinds:
            feeds["num_logits_to_keep"] = np.array(keep, dtype=kinds["num_logits_to_keep"])
        if self.has_branch:
            feeds["use_cache_branch"] = np.array([cached > 0])
        return feeds


def read_graph(inputs: Sequence[Value], outputs: Sequence[Value], config: Mapping[str, Any]) -> Graph:
    """Return the `Graph` of a model's inputs and outputs. Raises `EngineError` for unexpected names, ranks or types.

    `config`: the content of config.json, for sizes that the graph leaves variable.
    """
    given = {value.name: value for value in inputs}
    made = {value.name: value for value in outputs}
    if "input_ids" not in given or "logits" not in made:
        raise EngineError(
            f"the graph needs an input input_ids and an output logits; it has the inputs {listed(given)}"
            f" and the outputs {listed(made)}"
        )
    check_rank(given["input_ids"], 2, "[row, token]")
    check_rank(made["logits"], 3, "[row, token, vocabulary]")
    if made["logits"].type not in FLOATS:
        raise EngineError(f"logits must be float or float16, got {made['logits'].type}")
    pasts = past_names(given, made)
    strange = [name for name in given if name not in KNOWN_INPUTS and name not in pasts]
    if strange:
        raise EngineError(
            f"unknown inputs {listed(strange)}; supported: {', '.join(KNOWN_INPUTS)} and past_key_values.N.key/value"
        )
    integers = {name: integer_type(given[name]) for name in KNOWN_INPUTS if name in given}
    kinds = {given[name].type for name in pasts}
    if len(kinds) != 1 or not kinds <= set(FLOATS):
        raise EngineError(f"past_key_values must all be float or all float16, got {', '.join(sorted(kinds))}")
    return Graph(
        integers={name: kind for name, kind in integers.items() if kind is not None},
        pasts=tuple(pasts),
        presents=tuple(name.replace("past_key_values", "present") for name in pasts),
        heads=tuple(cache_size(name, given[name].shape, 1, config) for name in pasts),
        channels=tuple(cache_size(name, given[name].shape, 3, config) for name in pasts),
        cache_type=FLOATS[kinds.pop()],
        has_branch="use_cache_branch" in given,
    )


def check_probe(graph: Graph, logits: NDArray[np.float32], arrays: Sequence[NDArray[Any]]) -> int:
    """Check the outputs of a run with one token. Returns the width of the logits.

    Raises `EngineError` if the shape or the type of an array of the cache differs from the graph, or if the logits do
    not have two dimensions or are empty.
    """
    for name, array, heads, channels in zip(graph.presents, arrays, graph.heads, graph.channels, strict=True):
        if array.shape != (1, heads, 1, channels) or array.dtype != graph.cache_type:
            raise EngineError(
                f"{name} must be {graph.cache_type} [1, {heads}, 1, {channels}] after one token,"
                f" got {array.dtype} {list(array.shape)}"
            )
    if logits.ndim != 2 or not logits.size:
        raise EngineError(f"logits must be [row, token, vocabulary], got {list(logits.shape)} for the last token")
    return int(logits.shape[1])
