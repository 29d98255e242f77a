"""Memory of KV caches: blocks for one array each, which are used again when no array refers to them.

The arrays of a batch grow with each token. In the heaps of an allocator, growing arrays leave gaps that the next,
larger arrays cannot use. A newly mapped block is several times slower than one that was used before, because the
operating system clears each page.
"""

from __future__ import annotations

import mmap
import sys
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAPPED", "Block", "Blocks", "copies_in_block"]

KEPT_BYTES = 8 << 20
"""A `Blocks` may keep this number of bytes of unused blocks, even if it has no used ones."""

PERIOD = 16
"""The limit of a `Blocks` depends on the memory that was used during its last `PERIOD` to `2 * PERIOD` runs."""

MAPPED = 1 << 16
"""Blocks of at least this number of bytes are memory mappings (`mmap`); smaller ones are in the heap."""

_HUGE_PAGE = 1 << 21
"""Huge pages of Linux are requested for the part of a block that fills them. They are cleared much faster than small
pages."""

_ALIGNED = 64
_RELEASES = hasattr(mmap, "MADV_DONTNEED")  # whether pages of a mapping can be released
_PRIVATE: dict[str, int] = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}


def _mapped(nbytes: int) -> mmap.mmap:
    """Return a new mapping. A forked process gets a copy."""
    return mmap.mmap(-1, nbytes, **_PRIVATE)


def _request_huge_pages(memory: mmap.mmap, nbytes: int) -> None:
    """Request huge pages for as many whole huge pages as the first `nbytes` have. The system may have none."""
    part = nbytes - nbytes % _HUGE_PAGE
    if part and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # Linux may be built without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE, 0, part)


_SPARE_BYTES = 4 << 20
"""The maximum number of bytes of blocks that `copies_in_block` keeps for the next copies."""

_ROUNDED = 3
"""The number of binary digits after the first one that can be 1 in the size of a new block of copies.

The size is rounded up to such a number. The unused pages of a new mapping need no memory, and the block then fits more
of the next copies.
"""


class _Returned:
    """Blocks of copies that were deleted. The next copies use them, because the pages of a new mapping must be cleared.

    A prefix cache that is full copies a row for each that it evicts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: list[mmap.mmap] = []

    def take(self, nbytes: int) -> mmap.mmap:
        """Return a block of at least `nbytes`: the smallest one that is not much larger, or else a new one.

        The pages after the first `nbytes` have no memory.
        """
        with self._lock:
            fitting = [block for block in self._blocks if nbytes <= len(block) <= 2 * nbytes] if _RELEASES else []
            if fitting:
                found = min(fitting, key=len)
                self._blocks.remove(found)
                end = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
                if end < len(found):
                    found.madvise(mmap.MADV_DONTNEED, end, len(found) - end)
                return found
        step = 1 << (nbytes.bit_length() - 1 - _ROUNDED)
        return _mapped(-(-nbytes // step) * step)

    def give_back(self, block: mmap.mmap) -> None:
        """Keep a block, and release those that were given back first until the limit is met.

        If the lock is not free, the block is released at once. This method does not wait, because the garbage collector
        may call it while this thread holds the lock.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._blocks.append(block)
            while sum(map(len, self._blocks)) > _SPARE_BYTES:
                self._blocks.pop(0)
        finally:
            self._lock.release()


_RETURNED = _Returned()


def copies_in_block(parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return copies of arrays of one type in one block of memory, which no other array uses."""
    places = [-(-part.nbytes // _ALIGNED) * _ALIGNED for part in parts]
    total = sum(places)
    if total < MAPPED:
        block = np.empty(total, np.uint8)
    else:
        memory = _RETURNED.take(total)
        _request_huge_pages(memory, total)
        block = np.frombuffer(memory, np.uint8, total)
        weakref.finalize(block, _RETURNED.give_back, memory).atexit = False  # all copies refer to `block`
    begin, copies = 0, []
    for part, place in zip(parts, places, strict=True):
        made: NDArray[Any] = np.ndarray(part.shape, part.dtype, block, begin)
        made[...] = part
        copies.append(made)
        begin += place
    return copies


class Block:
    """Memory for one array.

    Attributes:
        memory: The bytes. The block is used as long as this object or a view of it exists.
        address: The address of the first byte.
        size: The number of bytes.
    """

    __slots__ = ("address", "memory", "size")

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self.memory = memory
        self.address = int(memory.ctypes.data)
        self.size = memory.size

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array at the beginning of this block."""
        made: NDArray[Any] = np.ndarray(shape, dtype, self.memory)
        return made


class Blocks:
    """The memory blocks of one engine.

    A mapped block is given back when the last array in it is deleted, which may happen in any thread. It is then kept
    for other arrays. The engine calls `count_run` for each run of the model.

    The unused blocks may always have `KEPT_BYTES`. While a block is used, they may have more: used and unused blocks
    together may have as many bytes as were used at the same time in the last `PERIOD` to `2 * PERIOD` runs. When a
    block is given back, before one is used, and for each run, the unused blocks that were given back first are released
    until the limit is met.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._returned: deque[mmap.mmap] = deque()
        self._unused: list[mmap.mmap] = []
        self._used_bytes = self._unused_bytes = 0
        self._most = self._most_before = 0  # the largest `_used_bytes` in this period, and in the previous one
        self._runs = 0  # in this period of `PERIOD` runs

    def block(self, nbytes: int) -> Block:
        """Return a block with at least `nbytes`: the smallest unused one that is not much larger, or else a new one."""
        size = 1 << max(0, nbytes - 1).bit_length()  # the next arrays have more tokens; unused pages need no memory
        if size < MAPPED:
            return Block(np.empty(size, np.uint8))
        with self._lock:
            self._collect()
            fitting = [block for block in self._unused if nbytes <= len(block) <= 2 * size]
            if fitting:
                memory = min(fitting, key=len)
                self._unused.remove(memory)
                self._unused_bytes -= len(memory)
            else:
                memory = _mapped(size)
            self._used_bytes += len(memory)
            self._most = max(self._most, self._used_bytes)
        _request_huge_pages(memory, nbytes)
        view = np.frombuffer(memory, np.uint8)
        weakref.finalize(view, self._give_back, memory).atexit = False  # all arrays of the block refer to `view`
        return Block(view)

    def count_run(self) -> None:
        """Count a run of the model, and release unused blocks above the limit."""
        with self._lock:
            self._runs += 1
            if self._runs == PERIOD:
                self._runs, self._most_before, self._most = 0, self._most, self._used_bytes
            self._collect()

    def _give_back(self, memory: mmap.mmap) -> None:
        """Record that a block was given back, and call `_collect` if the lock is free.

        If the lock is not free, the next call of `_collect` moves the block. This method does not wait, because the
        garbage collector may call it while this thread holds the lock.
        """
        self._returned.append(memory)
        if self._lock.acquire(blocking=False):
            try:
                self._collect()
            finally:
                self._lock.release()

    def _collect(self) -> None:
        """Move blocks that were given back to the unused ones, and release those above the limit.

        The caller holds the lock.
        """
        while self._returned:
            memory = self._returned.popleft()
            self._used_bytes -= len(memory)
            self._unused_bytes += len(memory)
            self._unused.append(memory)
        recent = max(self._most, self._most_before) if self._used_bytes else 0
        limit = max(KEPT_BYTES, recent - self._used_bytes)
        while self._unused_bytes > limit:
            self._unused_bytes -= len(self._unused.pop(0))
