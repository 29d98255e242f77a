"""KV caches of ONNX Runtime.

`ArrayBatch` and `RowCache` of `engines.kv_cache` hold NumPy arrays [row, head, token, channel]. The arrays of a run are
in a `GrowingBatch`. If all rows of a batch run again, the batch gets the longer arrays, and caches of fewer tokens stay
valid. If only some rows run again, or other rows join them, the batch drops places that no cache needs, and gets places
for the new rows (`rejoin`). The other rows are not copied.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.engines.base import Cache
from guideway.engines.kv_cache import ArrayBatch, ArrayOps, Claim, RowCache, own_rows, padded_batch
from guideway.engines.onnx.blocks import MAPPED, Block, Blocks, copies_in_block
from guideway.engines.onnx.graph import Graph
from guideway.engines.onnx.runtime import value_of

__all__ = [
    "NUMPY",
    "CacheOutputs",
    "GrowingBatch",
    "claimed",
    "gather",
    "grown",
    "rejoin",
    "values_of",
    "without_gaps",
]

_LAYER = 2
"""The number of arrays of a layer: keys and values."""


@dataclass(eq=False)
class GrowingBatch(ArrayBatch):
    """A batch whose arrays a run replaces by longer ones, which also contain the same tokens.

    Attributes:
        blocks: The memory of each array. Empty: the arrays have other memory.
        spare: Unused blocks, which the next run uses.
        made: The arrays of the last run, and an `OrtValue` of ONNX Runtime in the memory of each.
        claims: For each place, the claim of its caches; None: there is none. Empty: no run has made caches.
        is_fixed: Whether a cache has another claim than the one in `claims`, so that no row may be moved or replaced.
        wasted: The work that runs have done without need (`rejoin`), in units of one copied token: for places whose
            rows did not run, and for the indexes before the first token of the longest row.
    """

    blocks: Sequence[Block] = ()
    spare: Sequence[Block] = ()
    made: tuple[tuple[NDArray[Any], ...], Sequence[Any]] = ((), ())
    claims: list[weakref.ref[Claim] | None] = field(default_factory=list)
    is_fixed: bool = False
    wasted: int = 0

    def is_free(self, place: int) -> bool:
        """Return whether no cache needs the keys and values in this place."""
        claim = self.claims[place]
        return claim is None or claim() is None

    def resize(self, rows: int) -> bool:
        """Change the number of places, without copying. Dropped places must be free; new ones have undefined values.

        Returns:
            False if the memory is too small; then nothing is changed.
        """
        count, _, tip, _ = self.arrays[0].shape
        if rows > count and any(
            array.nbytes // count * rows > block.size for array, block in zip(self.arrays, self.blocks, strict=True)
        ):
            return False
        # In this order, each place has a claim, or None, also if an interrupt ends this method.
        self.claims += [None] * (rows - len(self.claims))
        self.arrays = tuple(
            block.array((rows, array.shape[1], tip, array.shape[3]), array.dtype)
            for array, block in zip(self.arrays, self.blocks, strict=True)
        )
        del self.claims[rows:]
        return True

    def move(self, place: int, target: int) -> None:
        """Move the row of a place, which is not free, to a free place."""
        for array in self.arrays:
            array[target] = array[place]
        claim = self.claims[target] = self.claims[place]
        if claim is not None and (held := claim()) is not None:
            held.row = target
        self.claims[place] = None

    def drop(self, free: Sequence[int]) -> None:
        """Remove places, given in ascending order. They must be free. The rows of the last places are moved to them."""
        left, end = list(free), self.rows
        while left:
            end -= 1
            if end == left[-1]:
                left.pop()
            else:
                self.move(end, left.pop(0))
        if free:
            self.resize(end)

    def trim(self, count: int, pool: Blocks) -> bool:
        """Remove the first `count` indexes of the token axis. No cache may have tokens there.

        The keys and values of each layer are copied to the blocks of the previous layer, as in a run (`CacheOutputs`).

        Returns:
            False if the blocks are too small; then nothing is changed.
        """
        spare = self.spare or [pool.block(array.nbytes) for array in self.arrays[:_LAYER]]
        blocks = [*spare, *self.blocks[:-_LAYER]]
        rows, _, tip, _ = self.arrays[0].shape
        sizes = [array.nbytes // tip * (tip - count) for array in self.arrays]
        if any(block.size < size for block, size in zip(blocks, sizes, strict=True)):
            return False
        made = [
            block.array((rows, array.shape[1], tip - count, array.shape[3]), array.dtype)
            for block, array in zip(blocks, self.arrays, strict=True)
        ]
        left = list(zip(made, self.arrays, strict=True))[::-1]
        try:
            _copy_ends(left, count)
        finally:  # an interrupt must not leave arrays of different lengths
            _copy_ends(left, count)
            self.spare, self.blocks, self.arrays = self.blocks[-_LAYER:], blocks, tuple(made)
            for claim in self.claims:
                if claim is not None and (held := claim()) is not None:
                    held.start -= count
        return True


def _copy_ends(left: list[tuple[NDArray[Any], NDArray[Any]]], count: int) -> None:
    """Copy arrays without the first `count` indexes of the token axis.

    `left`: pairs of target and source. A pair is removed when its arrays are copied.
    """
    while left:
        target, source = left[-1]
        target[...] = source[:, :, count:]
        left.pop()


def values_of(batch: ArrayBatch) -> Sequence[Any]:
    """Return the arrays of a batch as values of ONNX Runtime. They are valid as long as the arrays exist."""
    if isinstance(batch, GrowingBatch) and batch.made[0] is batch.arrays:
        return batch.made[1]
    return [value_of(array) for array in batch.arrays]


def grown(past: ArrayBatch | None, arrays: tuple[NDArray[Any], ...]) -> GrowingBatch:
    """Return the batch of new arrays: `past`, if it is a `GrowingBatch`, or a new one. It has no blocks."""
    batch = past if isinstance(past, GrowingBatch) else GrowingBatch(NUMPY, ())
    batch.blocks = batch.spare = ()  # without blocks, no run uses the memory of the arrays
    batch.arrays = arrays
    return batch


@dataclass
class CacheOutputs:
    """The arrays of the cache that a run computes: those of its input with new tokens.

    A run in place needs little more memory than its input. The output of each layer is in the blocks of the previous
    layer's input, which was read before; that of the first layer is in the spare blocks. A layer cannot run before the
    outputs of the previous layer are complete. So if a run fails, each output that is not complete still has its input.

    Attributes:
        arrays: The arrays.
        blocks: The block of each.
        spare: The blocks that are unused after the run.
        past: The batch that the run continues in place, or None.
        values: The arrays as values of ONNX Runtime.
    """

    arrays: tuple[NDArray[Any], ...]
    blocks: Sequence[Block]
    spare: Sequence[Block] = ()
    past: GrowingBatch | None = None
    values: Sequence[Any] = field(init=False)
    _marked: Sequence[int] = ()  # the sizes of the outputs into which `_mark` wrote; empty: it was not called

    def __post_init__(self) -> None:
        self.values = [value_of(array) for array in self.arrays]

    @classmethod
    def of(
        cls, graph: Graph, past: ArrayBatch, rows: int, tokens: int, pool: Blocks, *, in_place: bool
    ) -> CacheOutputs:
        """Return arrays with undefined values for a run of `rows` rows that then have `tokens` tokens.

        `in_place`: whether the run may replace the arrays of `past`. If the blocks of `past` are too small, new ones
        are used.
        """
        kind = graph.cache_type
        shapes = [(rows, heads, tokens, c) for heads, c in graph.sizes]
        sizes = [rows * tokens * nbytes for nbytes in graph.token_bytes]
        if in_place and isinstance(past, GrowingBatch) and past.blocks:
            moved = past.blocks[:-_LAYER]
            # Each output must be longer than the input in its memory, whose last byte `_mark` would otherwise replace.
            cached = past.arrays[0].shape[0] * past.tip
            if all(map(_fits, moved, sizes[_LAYER:], graph.token_bytes, repeat(cached))):
                spare = past.spare or [pool.block(size) for size in sizes[:_LAYER]]
                if all(block.size >= size for block, size in zip(spare, sizes, strict=False)):
                    blocks = [*spare, *moved]
                    arrays = tuple(block.array(shape, kind) for block, shape in zip(blocks, shapes, strict=True))
                    made = cls(arrays, blocks, past.blocks[-_LAYER:], past)
                    made._mark(sizes)
                    return made
        blocks = [pool.block(size) for size in sizes]
        arrays = tuple(block.array(shape, kind) for block, shape in zip(blocks, shapes, strict=True))
        return cls(arrays, blocks, (), past if in_place and isinstance(past, GrowingBatch) else None)

    def _mark(self, sizes: Sequence[int]) -> None:
        """Write `_MARK` into the last byte of each output. Inputs in the same blocks are shorter."""
        self._marked = sizes
        for block, size in zip(self.blocks, sizes, strict=True):
            block.memory[size - 1] = _MARK

    def done(self) -> GrowingBatch:
        """Return the batch of a run that succeeded: `past`, or a new one.

        If an interrupt ends this method, `past` is valid after a call of `failed`.
        """
        batch = grown(self.past, self.arrays)
        batch.made = self.arrays, self.values
        batch.blocks, batch.spare = self.blocks, self.spare
        return batch

    def failed(self) -> None:
        """Restore the arrays of `past` after a run that failed or was interrupted."""
        if self.past is None or self.past.arrays is self.arrays or not self._marked:
            return
        cached = self.past.tip
        self.past.arrays = tuple(
            before if block.memory[size - 1] == _MARK else made[:, :, :cached].copy()
            for before, made, block, size in zip(self.past.arrays, self.arrays, self.blocks, self._marked, strict=True)
        )
        self.past.blocks = self.past.spare = ()
        self.past.made = ((), ())


_MARK = 0xFD
"""The last byte of an output that is not complete. This byte of a float has the sign and bits of the exponent: a
float32 with this value is too large for keys and values, and a float16 is a signalling NaN, which no operation returns.
"""


def _fits(block: Block, size: int, token_bytes: int, cached: int) -> bool:
    """Return whether an output of `size` bytes fits a block, and is longer than the input of `cached` tokens in it."""
    return token_bytes * cached < size <= block.size


def gather(
    graph: Graph, caches: Sequence[Cache | None], blocks: Blocks, new: int, context: int = sys.maxsize
) -> ArrayBatch:
    """Join the arrays of rows. All rows end at the last index of the token axis; shorter rows begin later.

    If the caches are all rows of one batch in order, with all their tokens, this batch is returned, unless the indexes
    before the first token of the longest row would make it exceed the context.

    Args:
        graph: The graph.
        caches: The cache of each row.
        blocks: The memory blocks of the engine, for the joined arrays.
        new: The number of tokens for which the memory has room after the cached ones.
        context: The maximum number of indexes of the token axis.
    """
    rows = [None if cache is None or not cache.length else own_rows(cache, NUMPY) for cache in caches]
    held: list[RowCache[ArrayBatch]] = [row for row in rows if row is not None]
    lengths = [0 if row is None else row.length for row in rows]
    longest = max(lengths)
    whole = padded_batch(held) if len(held) == len(rows) else None
    if whole is not None and (whole.tip + new <= context or whole.tip == longest):
        return whole
    kind = graph.cache_type
    shapes = [(len(rows), heads, longest, c) for heads, c in graph.sizes]
    if not longest:
        return ArrayBatch(NUMPY, tuple(np.empty(shape, kind) for shape in shapes), (0,) * len(rows))
    used = [blocks.block(len(rows) * (longest + new) * nbytes) for nbytes in graph.token_bytes]
    arrays = [block.array(shape, kind) for block, shape in zip(used, shapes, strict=True)]
    for begin, end in _runs(rows):
        first = rows[begin]
        if first is None:
            for array in arrays:
                array[begin:end] = 0
            continue
        stop = first.start + first.length
        # Several rows are copied with the values before the shorter ones, which the attention mask excludes.
        width = min(longest, stop if end - begin > 1 else first.length)
        for array, held_array in zip(arrays, first.batch.arrays, strict=True):
            array[begin:end, :, : longest - width] = 0
            array[begin:end, :, longest - width :] = held_array[
                first.row : first.row + end - begin, :, stop - width : stop
            ]
    return GrowingBatch(NUMPY, tuple(arrays), tuple(longest - length for length in lengths), blocks=used)


_UNUSED_WEIGHT = 2
"""The work of a run for one cached token of a row that does not run, in units of one copied token.

The run copies the token and computes with it.
"""

_MOST_ROOM = 4
"""A batch whose blocks have more than this many times the needed bytes is copied to smaller ones."""


def rejoin(
    caches: Sequence[Cache | None], new: int, context: int, pool: Blocks
) -> tuple[GrowingBatch, Sequence[int]] | None:
    """Collect these rows in the batch to which most of them belong, and copy as few rows as possible.

    Rows of other batches are written to free places, or to new places after the last one. Free places that remain are
    removed; the rows of the last places are moved to them first.

    Rows of the batch that do not run now keep their places. A run computes for them, too, and for the indexes before
    the first token of the longest row. `GrowingBatch.wasted` is the sum of this work. When it exceeds the work of
    `gather`, which would copy the tokens of all given rows, the indexes are removed (`GrowingBatch.trim`); if there are
    rows that do not run, None is returned.

    Args:
        caches: The cache of each row.
        new: The number of new tokens of each row.
        context: The maximum number of indexes of the token axis.
        pool: The memory blocks of the engine.

    Returns:
        The batch and the place of each row in it; None: the rows must be copied.
    """
    counts: dict[GrowingBatch, int] = {}
    for cache in caches:
        if isinstance(cache, RowCache) and type(cache.batch) is GrowingBatch:
            counts[cache.batch] = counts.get(cache.batch, 0) + 1
    batch = max(counts, key=lambda one: counts[one], default=None)
    if batch is None or batch.is_fixed or not batch.blocks or not batch.claims or batch.tip + new > context:
        return None
    tip, longest = batch.tip, 0
    used: set[int] = set()
    others: list[tuple[int, RowCache[ArrayBatch]]] = []
    claims: list[Claim | None] = []  # of the rows of the batch; moving a row changes its claim
    for index, cache in enumerate(caches):
        if cache is None or not cache.length or cache.length > tip:
            return None
        row = own_rows(cache, NUMPY)
        longest = max(longest, row.length)
        claim = row.claim
        if row.batch is batch and claim.start + row.length == tip and claim.row not in used:
            claims.append(claim)
            used.add(claim.row)
        else:
            claims.append(None)
            others.append((index, row))
    free = [place for place in range(batch.rows) if place not in used and batch.is_free(place)]
    idle = batch.rows - len(used) - len(free)
    rows = len(caches) + idle
    need = rows * (batch.arrays[0].nbytes // batch.rows)
    if batch.blocks[0].size > _MOST_ROOM * max(need, MAPPED):
        return None
    wasted = batch.wasted + _UNUSED_WEIGHT * idle * tip * new + (tip - longest) * len(caches)
    is_wasteful = wasted > len(caches) * longest
    if (is_wasteful and idle) or (rows > batch.rows and not batch.resize(rows)):
        return None
    free += range(len(used) + len(free) + idle, rows)
    batch.drop(free[len(others) :])
    if is_wasteful:
        if not batch.trim(tip - longest, pool):
            return None
        tip, wasted = longest, 0
    places: dict[int, int] = {}
    for (index, row), place in zip(others, free, strict=False):
        places[index] = place
        for array, part in zip(batch.arrays, row.used(), strict=True):
            array[place, :, : tip - row.length] = 0  # NaN would stay NaN although the attention mask excludes it
            array[place, :, tip - row.length :] = part[0]
    batch.wasted = wasted
    return batch, [claim.row if claim is not None else places[index] for index, claim in enumerate(claims)]


def claimed(
    batch: ArrayBatch, places: Sequence[int], end: int, starts: Sequence[int], before: Sequence[Cache | None]
) -> list[Cache]:
    """Return the caches of rows after a run. A row that stayed in its place keeps its claim.

    Args:
        batch: The batch.
        places: The place of each row.
        end: The index after the last token of all rows.
        starts: For each place of the batch, the index of its first token.
        before: The caches before the run.
    """
    claims: list[weakref.ref[Claim] | None] = [None] * batch.rows
    if isinstance(batch, GrowingBatch):
        claims = batch.claims = batch.claims or claims
    made: list[Cache] = []
    for place, cache in zip(places, before, strict=True):
        if isinstance(cache, RowCache) and cache.batch is batch and cache.claim.row == place:
            claim, known = cache.claim, claims[place]
            if (known is None or known() is not claim) and isinstance(batch, GrowingBatch):
                batch.is_fixed = True
        else:
            claim = Claim(place, starts[place])
            claims[place] = weakref.ref(claim)
        made.append(RowCache(batch, place, end - starts[place], starts[place], claim))
    return made


def _runs(rows: Sequence[RowCache[ArrayBatch] | None]) -> list[tuple[int, int]]:
    """Divide rows into ranges whose arrays are copied at once: adjacent rows of a batch that end at the same token."""
    starts = [
        index
        for index, row in enumerate(rows)
        if not index
        or row is None
        or (before := rows[index - 1]) is None
        or row.batch is not before.batch
        or row.row != before.row + 1
        or row.start + row.length != before.start + before.length
    ]
    return list(zip(starts, [*starts[1:], len(rows)], strict=True))


def without_gaps(arrays: tuple[NDArray[Any], ...], cached: int, counts: Sequence[int]) -> tuple[NDArray[Any], ...]:
    """Move cached tokens so that no unused index lies between the cached and the new tokens of a row.

    Args:
        arrays: Keys and values after a run with padding. They may be modified.
        cached: The number of indexes before the new tokens.
        counts: The number of new tokens of each row, which are at the end.
    """
    if not all(array.flags.writeable for array in arrays):
        arrays = tuple(array.copy() for array in arrays)
    gaps = arrays[0].shape[2] - cached - np.array(counts)
    for gap in np.unique(gaps[gaps > 0]).tolist() if cached else ():
        places = np.flatnonzero(gaps == gap)
        for array in arrays:
            array[places, :, gap : cached + gap] = array[places, :, :cached]  # indexing with an array copies the values
    return arrays


NUMPY = ArrayOps(
    concat=lambda parts: np.concatenate(parts) if len(parts) > 1 else np.ascontiguousarray(parts[0]),
    to_numpy=np.array,  # a copy, because the next run may use the memory of the array
    from_numpy=lambda array, _: np.array(array),
    copy=np.array,
    copy_row=copies_in_block,
)
"""The operations of this engine."""
