"""The joined cache of rows that run together, as a transformers `Cache`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from guideway.engines.kv_cache import ArrayOps

__all__ = ["BatchCache"]

_ROOM = 64
"""Minimum spare capacity in tokens. The spare capacity is an eighth of the length if that is more."""


class _Roomy(DynamicLayer):  # type: ignore[misc]  # the library has no types
    """Keys and values with spare capacity. `update` writes new tokens into it; only `crop` may remove tokens.

    The class of the library concatenates tensors for each token, which took a sixth of the time of a call with 16 rows
    of 100 tokens. `rooms`: the buffers of keys and values, spare capacity included.
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
    """Return a buffer with the `length` tokens of `held`, followed by those of `more`.

    If `room`, the buffer that contains `held`, is large enough, it is returned.
    """
    end = length + more.shape[-2]
    if room is None or room.shape[-2] < end:
        room = more.new_empty((*more.shape[:-2], end + max(_ROOM, end // 8), more.shape[-1]))
        if length:
            room.narrow(-2, 0, length).copy_(held)
    room.narrow(-2, length, more.shape[-2]).copy_(more)
    return room


class BatchCache(DynamicCache):  # type: ignore[misc]  # the library has no types
    """The cache of a batch for transformers, which is also a `RowBatch`. `tip`: as in `RowBatch`."""

    def __init__(self, ops: ArrayOps, arrays: Sequence[Any] = (), length: int = 0) -> None:
        super().__init__()
        self.layer_class_to_replicate = _Roomy
        self.ops, self.tip = ops, length
        for index in range(len(arrays) // 2):
            self.update(arrays[2 * index], arrays[2 * index + 1], index)

    @property
    def arrays(self) -> list[Any]:
        """The keys of layer 0, its values, the keys of layer 1, and so on, without the spare capacity."""
        return [part for layer in self.layers for part in (layer.keys, layer.values)]

    @property
    def row_bytes(self) -> int:
        """Size per row, including spare capacity, in bytes."""
        return sum(room.nbytes // room.shape[0] for layer in self.layers for room in layer.rooms)

    def go_on(self) -> BatchCache:
        """Remove tokens that a failed run may have added. Returns this object, for the next run."""
        for layer in self.layers:
            if (beyond := layer.get_seq_length() - self.tip) > 0:
                layer.crop(-beyond)
        return self
