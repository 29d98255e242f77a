"""Rows of different lengths in one call: the new tokens of all rows are one packed sequence.

Linear layers run over the packed tokens without padding. `attend` replaces the attention of the model: it computes the
attention of each row over the keys and values of that row, which are in a `Store` at the positions of their tokens.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, DynamicCache
from transformers.cache_utils import DynamicLayer

from guideway.engines.row_store import StoredRow
from guideway.errors import EngineError

__all__ = ["PackedBatch", "packed_attention"]

_SHORT = 32
"""Rows with at most this number of new tokens share one padded attention call. Each other row has a separate call."""
_NAME = "guideway_packed"


class _StoreLayer(DynamicLayer):  # type: ignore[misc]  # the library has no types
    is_initialized = True

    def __init__(self, batch: PackedBatch, index: int) -> None:
        super().__init__()
        self.batch, self.index = batch, index

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        keys, values = self.batch.store.arrays[2 * self.index : 2 * self.index + 2]
        rows, positions = self.batch.rows, self.batch.positions
        keys[rows, :, positions] = key_states[0].transpose(0, 1)
        values[rows, :, positions] = value_states[0].transpose(0, 1)
        return key_states, value_states

    def get_seq_length(self) -> int:
        return 0


class PackedBatch(DynamicCache):  # type: ignore[misc]  # the library has no types
    """The packed new tokens of a call, and the indexes and masks for their attention. `new`: the new ids of each row.

    Attributes:
        ids: The new ids of all rows, [1, token].
        positions: The position of each token in its row, [token].
        last: The index in `ids` of each token whose logits are needed; by default the last token of each row, [row].
    """

    def __init__(self, rows: Sequence[StoredRow], new: Sequence[Sequence[int]], device: Any) -> None:
        super().__init__()
        self.store = rows[0].store
        self.layers = [_StoreLayer(self, index) for index in range(len(self.store.arrays) // 2)]
        first = min(row.row for row in rows)
        starts, ids, places, positions, last = [], list[int](), list[int](), list[int](), list[int]()
        for row, more in zip(rows, new, strict=True):
            starts.append(len(ids))
            ids += more
            places += [row.row] * len(more)
            positions += range(row.tip, row.tip + len(more))
            last.append(len(ids) - 1)
        self.long = [
            (row.row, start, row.tip, len(more))
            for row, start, more in zip(rows, starts, new, strict=True)
            if len(more) > _SHORT
        ]
        """Rows with a separate attention call: (place, first packed token, cached tokens, new tokens)."""
        self.span = first, first + len(rows)  # the places of the rows in the store
        short = [i for i, more in enumerate(new) if len(more) <= _SHORT]
        self.has_short = bool(short)
        width = max((len(new[i]) for i in short), default=0)
        reach = max((rows[i].tip + len(new[i]) for i in short), default=0)
        # For each place of the span and each column, the index of a packed token. Unused columns have the index 0.
        source, ends = [0] * (width * len(rows)), [0] * (width * len(rows))
        target_from, target_to = list[int](), list[int]()
        for i in short:
            for column in range(len(new[i])):
                at = (rows[i].row - first) * width + column
                source[at] = starts[i] + column
                ends[at] = rows[i].tip + column
                target_from.append(at)
                target_to.append(starts[i] + column)
        self.width, self.reach = width, reach
        self.is_plain = width == 1 and len(short) == len(rows) and all(end == reach - 1 for end in ends)
        self.in_order = width == 1 and not self.long and target_from == target_to
        numbers = [ids, places, positions, last, source, target_from, target_to, ends]
        parts = torch.tensor([one for some in numbers for one in some], device=device)  # one copy to the device
        parts = parts.split([len(some) for some in numbers])
        self.ids, (self.rows, self.positions, self.last) = parts[0][None], parts[1:4]
        self.source, self.target_from, self.target_to = parts[4:7]
        until = parts[7].reshape(len(rows), 1, width, 1)
        self.mask: Any = None
        if self.has_short and not self.is_plain:  # an additive mask is faster than a boolean one on CPUs
            hidden = torch.arange(reach, device=device) > until
            self.mask = self.store.arrays[0].new_zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
        self._masks: dict[int, Any] = {}

    def mask_for(self, groups: int) -> Any:
        """Return the mask [row, 1, groups x column, key] for grouped-query attention; None: no mask is needed.

        `groups`: the number of query heads that share a key head.
        """
        if self.mask is None or groups == 1:
            return self.mask
        if groups not in self._masks:
            self._masks[groups] = self.mask.repeat(1, 1, groups, 1)
        return self._masks[groups]


_running = threading.local()
_locks: weakref.WeakKeyDictionary[Any, threading.RLock] = weakref.WeakKeyDictionary()
_locks_lock = threading.Lock()


@contextmanager
def packed_attention(model: Any, batch: PackedBatch) -> Iterator[None]:
    """Within the `with` block, `attend` computes the attention of the model.

    Only one thread at a time can be in this block for a model object.
    """
    with _locks_lock:
        lock = _locks.setdefault(model, threading.RLock())
    with lock:
        config = model.config.get_text_config()
        before = config._attn_implementation
        config._attn_implementation, _running.batch = _NAME, batch
        try:
            yield
        finally:
            config._attn_implementation, _running.batch = before, None


_HARMLESS = frozenset({"dropout", "scaling", "position_ids", "use_cache", "cache_position", "is_causal"})


def attend(module: Any, query: Any, key: Any, value: Any, mask: Any, **more: Any) -> tuple[Any, None]:
    """Compute the attention of packed tokens. Returns an array [1, token, head, channel] and None.

    It has the interface of `AttentionInterface` of transformers. `query`: [1, head, token, channel]. `key` and `value`
    are not used, because `_StoreLayer.update` has written them to the store.

    Raises:
        EngineError: The thread is not in a block of `packed_attention`, or the model passes an unsupported argument.
    """
    batch = getattr(_running, "batch", None)
    if batch is None:
        raise EngineError("this model object runs in Guideway in another thread; call it from one thread at a time")
    if (
        unknown := [
            name for name, one in more.items() if name not in _HARMLESS and one is not None and one is not False
        ]
    ) or (mask is not None):
        raise EngineError(f"the attention of {type(module).__name__} has unsupported arguments: {unknown or 'a mask'}")
    scale, (first, end) = more.get("scaling"), batch.span
    keys, values = batch.store.arrays[2 * module.layer_idx : 2 * module.layer_idx + 2]
    heads, kv_heads = query.shape[1], keys.shape[1]
    groups, channels = heads // kv_heads, values.shape[3]
    packed = query[0].transpose(0, 1)  # [token, head, channel]
    made = None
    if batch.has_short:
        count, width = end - first, batch.width
        asked = packed if batch.in_order else packed[batch.source]
        # Query heads that share a key head are treated as further queries of one head.
        asked = asked.reshape(count, width, kv_heads, groups, -1).permute(0, 2, 3, 1, 4)
        found = scaled_dot_product_attention(
            asked.reshape(count, kv_heads, groups * width, -1),
            keys[first:end, :, : batch.reach],
            values[first:end, :, : batch.reach],
            attn_mask=batch.mask_for(groups),
            scale=scale,
        )
        found = found.reshape(count, kv_heads, groups, width, channels).permute(0, 3, 1, 2, 4)
        found = found.reshape(count * width, heads, channels)
        if batch.in_order:
            return found[None], None
        made = query.new_empty((packed.shape[0], heads, channels))
        made[batch.target_to] = found[batch.target_from]
    if made is None:
        made = query.new_empty((packed.shape[0], heads, channels))
    for row, start, cached, count in batch.long:
        until = cached + count
        allowed = None
        if cached:
            columns = torch.arange(until, device=query.device)
            allowed = columns <= columns[cached:, None]
        made[start : start + count] = scaled_dot_product_attention(
            query[:, :, start : start + count],
            keys[row : row + 1, :, :until],
            values[row : row + 1, :, :until],
            attn_mask=allowed,
            is_causal=not cached,
            scale=scale,
            enable_gqa=groups > 1,
        )[0].transpose(0, 1)
    return made[None], None


AttentionInterface.register(_NAME, attend)
