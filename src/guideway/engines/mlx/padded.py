"""Rows of different lengths in one call: new tokens are padded at the end, and each row has its own position.

The keys and values are in a `Store`. Those of the padding are written to the last index of each row, which no token
uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from guideway.engines.row_store import StoredRow

__all__ = ["PaddedBatch"]


class PaddedBatch:
    """The new tokens of a call, and where they are written. The rows have adjacent places; some may have no new tokens.

    Attributes:
        ids: The new ids with padding, int [row, column]. The rows are in the order of their places in the store.
        layers: A cache for each layer of the model.
        order: For each of the given rows, its index in `ids`.
    """

    def __init__(self, rows: Sequence[StoredRow], new: Sequence[Sequence[int]]) -> None:
        self.store = rows[0].store
        self.first = min(row.row for row in rows)
        self.order = [row.row - self.first for row in rows]
        counts, tips = [0] * len(rows), [0] * len(rows)
        ids: list[list[int]] = [[]] * len(rows)
        width = max(map(len, new))
        for place, row, more in zip(self.order, rows, new, strict=True):
            counts[place], tips[place] = len(more), row.tip
            ids[place] = [*more, *[0] * (width - len(more))]
        self.ids, self.width = mx.array(ids), width
        self.reach = max(tip + count for tip, count in zip(tips, counts, strict=True))
        self.is_even = min(tips) == max(tips) and min(counts) == width
        self.ends = [count - 1 for count in counts] if min(counts) < width else None  # None: no row has padding
        self.tip = tips[0]
        self.offset: Any = self.tip
        if not self.is_even:
            self.offset = mx.array(tips)
            trash = self.store.capacity - 1
            self.rows = mx.arange(self.first, self.first + len(rows))[:, None]
            self.places = mx.array(
                [
                    [tip + column if column < count else trash for column in range(width)]
                    for tip, count in zip(tips, counts, strict=True)
                ]
            )
            until = self.offset[:, None] + mx.arange(width)  # [row, column]
            self.mask = (mx.arange(self.reach) <= until[:, :, None])[:, None]
        self.layers = [_PaddedLayer(self, index) for index in range(len(self.store.arrays) // 2)]

    def write(self, index: int, new: Any) -> Any:
        """Write the new keys or values of a layer to the store.

        Args:
            index: The array of the store: 2n for the keys of layer n, 2n + 1 for its values.
            new: The new keys or values, [row, head, column, channel].

        Returns:
            The keys or values of these rows up to the end of the longest one, [row, head, token, channel]. The mask
            excludes those after the end of a shorter row.
        """
        array, first = self.store.arrays[index], self.first
        end = first + new.shape[0]
        if self.is_even:
            array[first:end, :, self.tip : self.reach] = new
        else:
            array[self.rows, :, self.places] = new.transpose(0, 2, 1, 3)
        return array[first:end, :, : self.reach]

    def last(self, logits: Any) -> Any:
        """Return the logits of the last token of each row, float32 [row, vocabulary], in the order of `ids`."""
        if self.ends is None:
            return logits[:, -1].astype(mx.float32)
        return logits[mx.arange(len(self.ends)), mx.array(self.ends)].astype(mx.float32)


class _PaddedLayer:
    """The cache of one layer, with the methods of `KVCache` of mlx-lm that models and their helpers may call."""

    def __init__(self, batch: PaddedBatch, index: int) -> None:
        self.batch, self.index = batch, index
        self.offset = batch.offset

    def update_and_fetch(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Append keys and values. Returns those of all tokens."""
        batch, index = self.batch, 2 * self.index
        return batch.write(index, keys), batch.write(index + 1, values)

    def make_mask(self, count: int, return_array: bool = False, window_size: int | None = None, **_: Any) -> Any:
        """Return the mask of the attention of `count` new tokens, in a form of mlx-lm: an array, "causal" or None.

        Raises `ValueError` for a sliding window.
        """
        batch = self.batch
        if window_size is not None:
            raise ValueError("a sliding window needs the cache of the library")
        if not batch.is_even:
            return batch.mask
        if count == 1 and not return_array:
            return None
        if not return_array:
            return "causal"
        return mx.arange(batch.reach) <= (batch.tip + mx.arange(count))[:, None]

    def is_trimmable(self) -> bool:
        """Return True, as `KVCache` of mlx-lm does. Guideway does not call it: it truncates `RowCache` values."""
        return True

    def empty(self) -> bool:
        """Return whether the rows have no tokens. It is False, because the new tokens count."""
        return not self.batch.reach
