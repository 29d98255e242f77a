"""The cache of rows that run together, as the library has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

__all__ = ["Batch"]

_ROOM = 64
"""Tokens of room at least; an eighth of what is held, where that is more."""


class _Roomy(DynamicLayer):  # type: ignore[misc]  # the library has no types
    """Keys and values with room behind them, into which what comes is written. Nothing else may change them but `crop`.

    The library's own layer makes new tensors at each token: behind 100 tokens of 16 rows that was a sixth of a step.
    """

    keys: Any
    values: Any
    rooms: tuple[Any, ...] = (None, None)

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        length = self.get_seq_length()
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        held, more = (self.keys, self.values), (key_states, value_states)
        self.rooms = tuple(_with_room(*each, length) for each in zip(self.rooms, held, more, strict=True))
        self.keys, self.values = (room.narrow(-2, 0, length + key_states.shape[-2]) for room in self.rooms)
        return self.keys, self.values


def _with_room(room: Any, held: Any, more: Any, length: int) -> Any:
    """The room, or a larger one, with what is held and what comes."""
    end = length + more.shape[-2]
    if room is None or room.shape[-2] < end:
        room = more.new_empty((*more.shape[:-2], end + max(_ROOM, end // 8), more.shape[-1]))
        if length:
            room.narrow(-2, 0, length).copy_(held)
    room.narrow(-2, length, more.shape[-2]).copy_(more)
    return room


class Batch(DynamicCache):  # type: ignore[misc]  # the library has no types
    """Rows that run together, as the library has them. `tip`: how many tokens have run."""

    def __init__(self, layers: Iterable[tuple[Any, Any]] = (), length: int = 0) -> None:
        super().__init__()
        self.layer_class_to_replicate = _Roomy
        self.tip = length
        for index, (keys, values) in enumerate(layers):
            self.update(keys, values, index)

    def pairs(self) -> list[tuple[Any, Any]]:
        """Keys and values per layer."""
        return [(layer.keys, layer.values) for layer in self.layers]

    @property
    def row_bytes(self) -> int:
        """Of each row, with its room."""
        return sum(room.nbytes // room.shape[0] for layer in self.layers for room in layer.rooms)

    def go_on(self) -> Batch:
        """Itself, as it was when it last ran: a run that failed may have gone further."""
        for layer in self.layers:
            if (beyond := layer.get_seq_length() - self.tip) > 0:
                layer.crop(-beyond)
        return self
