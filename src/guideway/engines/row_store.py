"""KV caches of rows with different lengths in shared arrays, for engines that run them in one call.

A `Store` has an array [row, head, token, channel] for the keys and one for the values of each layer. The token at
position p of a row is at index p of the token axis. A row is extended in place; `RowCache` values with fewer tokens
stay valid. A place is an index of the row axis.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from guideway.engines.kv_cache import ArrayOps, RowCache

__all__ = ["Store", "StoredRow", "arranged", "stored"]

_ROOM = 64
"""Minimum spare capacity in tokens. The spare capacity is an eighth of the length if that is more."""


class Store:
    """Keys and values of several rows: tensors [row, head, token, channel], written at the positions of tokens."""

    def __init__(self, ops: ArrayOps, arrays: list[Any]) -> None:
        self.ops = ops
        self.arrays = arrays
        self.owners: list[weakref.ref[StoredRow] | None] = [None] * arrays[0].shape[0]

    @property
    def capacity(self) -> int:
        """The number of tokens for which each row has memory."""
        return int(self.arrays[0].shape[2])

    def owner(self, row: int) -> StoredRow | None:
        """Return the `StoredRow` at this place; None: the place is unused."""
        reference = self.owners[row]
        return None if reference is None else reference()

    def own(self, row: int, owner: StoredRow | None) -> None:
        """Assign a place to a row, whose `store` and `row` are set; None: the place becomes unused."""
        self.owners[row] = None if owner is None else weakref.ref(owner)
        if owner is not None:
            owner.store, owner.row = self, row

    def resize(self, rows: int, capacity: int) -> None:
        """Replace the tensors by larger ones, with `rows` places of `capacity` tokens."""
        kept, held = len(self.owners), self.capacity
        for index, old in enumerate(self.arrays):
            new = self.ops.zeros((rows, old.shape[1], capacity, old.shape[3]), old)
            new[:kept, :, :held] = old
            self.arrays[index] = new
        self.owners += [None] * (rows - kept)

    def write(self, row: int, parts: Sequence[Any], length: int) -> None:
        """Copy the first `length` tokens of tensors [1, head, token, channel] to a place."""
        for array, part in zip(self.arrays, parts, strict=True):
            array[row, :, :length] = part[0, :, :length]

    def swap(self, one: int, other: int) -> None:
        """Exchange the rows at two places; `other` may be unused."""
        first, second = self.owner(one), self.owner(other)
        length = 0 if second is None else second.tip
        kept = [self.ops.copy(array[other : other + 1, :, :length]) for array in self.arrays] if length else []
        if first is not None:
            self.write(other, first.arrays, first.tip)
        if length:
            self.write(one, kept, length)
        self.own(one, second)
        self.own(other, first)


class StoredRow:
    """One row of a store. It is a `RowBatch` with one row. It may be moved to another place or store with its tokens.

    Attributes:
        store: The store.
        row: The place in the store.
        tip: Number of tokens that have run successfully.
    """

    __slots__ = ("__weakref__", "row", "store", "tip")

    def __init__(self, store: Store, row: int, tip: int) -> None:
        self.tip = tip
        self.store, self.row = store, row
        store.own(row, self)

    @property
    def ops(self) -> ArrayOps:
        return self.store.ops

    @property
    def arrays(self) -> list[Any]:
        return [array[self.row : self.row + 1] for array in self.store.arrays]

    @property
    def row_bytes(self) -> int:
        """Size of the row, including spare capacity, in bytes."""
        return sum(array.nbytes // array.shape[0] for array in self.store.arrays)


def stored(ops: ArrayOps, arrays: Sequence[Any], length: int) -> StoredRow:
    """Return the row of a new store with one place, from tensors [1, head, token, channel] with `length` tokens."""
    return StoredRow(Store(ops, list(arrays)), 0, length)


def arranged(
    caches: Sequence[RowCache[StoredRow] | None], counts: Sequence[int], like: StoredRow, spare: int = 0
) -> list[StoredRow]:
    """Return a row for each cache, all in adjacent places of one store, with room for `counts` new tokens.

    If the row of a cache has no tokens after those of the cache, and is in the chosen store (`_store_for`), the row
    itself is returned, to be extended in place. It is returned once; other caches are copied to new rows.

    Args:
        caches: The cache of each row; None: the row has no tokens.
        counts: The number of new tokens of each row.
        like: A row of the same model.
        spare: The number of further tokens for which the engine needs memory after each row.
    """
    claimed: dict[StoredRow, None] = {}
    for cache in caches:
        if cache is not None and cache.length and cache.batch.tip == cache.length:
            claimed.setdefault(cache.batch)
    need = spare + max((0 if c is None else c.length) + n for c, n in zip(caches, counts, strict=True))
    store = _store_for(list(claimed), len(caches), need, like)
    here = [row for row in claimed if row.store is store]
    places = _adjacent(store, here, len(caches))
    free = [place for place in places if (owner := store.owner(place)) is None or owner not in claimed]
    made: list[StoredRow] = []
    left = set(here)
    for cache in caches:
        if cache is not None and cache.batch in left and cache.length == cache.batch.tip:
            left.discard(cache.batch)
            made.append(cache.batch)
            continue
        place = free.pop()
        _evict(store, place)
        length = 0 if cache is None else cache.length
        if cache is not None and length:
            store.write(place, cache.batch.arrays, length)
        made.append(StoredRow(store, place, length))
    return made


def _store_for(claimed: list[StoredRow], count: int, need: int, like: StoredRow) -> Store:
    """Return a store with at least `count` places, each for at least `need` tokens.

    It is the store that holds most of the rows that can be extended in place (`claimed`), enlarged if needed. A new
    store is made if there are none, or if at most half of the places of that store would be used.
    """
    held: dict[Store, int] = {}
    for row in claimed:
        held[row.store] = held.get(row.store, 0) + 1
    store = max(held, key=lambda one: held[one], default=None)
    capacity = need + max(_ROOM, need // 8)
    if store is not None and 2 * max(count, _alive(store)) <= len(store.owners):
        store = None  # at least half of its places are unused
    if store is None:
        shapes = [(count, array.shape[1], capacity, array.shape[3]) for array in like.arrays]
        return Store(like.ops, [like.ops.zeros(shape, array) for shape, array in zip(shapes, like.arrays, strict=True)])
    if store.capacity < need or len(store.owners) < count:
        store.resize(max(count, len(store.owners)), capacity if store.capacity < need else store.capacity)
    return store


def _alive(store: Store) -> int:
    return sum(store.owner(row) is not None for row in range(len(store.owners)))


def _adjacent(store: Store, rows: list[StoredRow], count: int) -> range:
    """Move rows within the store so that all are in a range of `count` places. Returns this range."""
    taken = sorted(row.row for row in rows)
    start = min(taken[0], len(store.owners) - count) if taken else 0
    places = range(start, start + count)
    if taken and taken[-1] not in places:
        places = range(count)
    outside = [row for row in rows if row.row not in places]
    inside = {row.row for row in rows}
    gaps = [place for place in places if place not in inside]
    gaps.sort(key=lambda place: store.owner(place) is not None)  # unused places first
    for row, place in zip(outside, gaps, strict=False):
        store.swap(row.row, place)
    return places


def _evict(store: Store, place: int) -> None:
    """Move the row at this place, if there is one, to a new store without spare capacity."""
    owner = store.owner(place)
    if owner is not None:
        parts = [owner.ops.copy(part[:, :, : owner.tip]) for part in owner.arrays]
        store.own(place, None)
        Store(owner.ops, parts).own(0, owner)
