"""Memory of KV caches: mapped blocks, which are used again when no array refers to them.

The arrays of a batch grow with each token, and the arrays of the previous step are released at about the same time. In
the heaps of an allocator, such arrays leave gaps that the next, larger arrays cannot use. New blocks are several times
slower than used ones, because the operating system clears each page.
"""

from __future__ import annotations

import math
import mmap
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Blocks", "aligned", "arrays_in_block"]

KEPT_BYTES = 16 << 20
"""A `Blocks` may keep this number of bytes of unused blocks, even if it has no used ones."""

PERIOD = 256
"""The limit of a `Blocks` depends on the memory that was used during its last `PERIOD` to `2 * PERIOD` requests."""

_MAPPED = 1 << 16
"""Blocks of fewer bytes are in the heap."""

_HUGE_PAGE = 1 << 21
"""Huge pages of Linux are requested for blocks of at least this size. They are cleared much faster than small pages."""

_ALIGNED = 64
_PRIVATE: dict[str, int] = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}


def new_block(nbytes: int) -> NDArray[np.uint8]:
    """Return `nbytes` of new memory: a separate mapping, or memory of the heap below `_MAPPED` bytes.

    A forked process gets a copy.
    """
    return np.empty(nbytes, np.uint8) if nbytes < _MAPPED else np.frombuffer(_mapped(nbytes), np.uint8)


def _mapped(nbytes: int) -> mmap.mmap:
    """Return a new mapping, of huge pages if it is large and the system has them."""
    memory = mmap.mmap(-1, nbytes, **_PRIVATE)
    if nbytes >= _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # the kernel may be built without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def aligned(nbytes: int) -> int:
    """Return the distance from the start of an array of `nbytes` in a block to the start of the next array."""
    return -(-nbytes // _ALIGNED) * _ALIGNED


def arrays_in_block(
    shapes: Sequence[tuple[int, ...]], dtype: np.dtype[Any], block_of: Callable[[int], NDArray[np.uint8]] = new_block
) -> list[NDArray[Any]]:
    """Return arrays with undefined values, one after another in one block.

    `block_of`: returns a block with at least a number of bytes.
    """
    places = [aligned(math.prod(shape) * dtype.itemsize) for shape in shapes]
    block, begin, arrays = block_of(sum(places)), 0, []
    for shape, place in zip(shapes, places, strict=True):
        arrays.append(np.ndarray(shape, dtype, block, begin))
        begin += place
    return arrays


class Blocks:
    """The memory blocks of one engine.

    A block is given back when the last array in it is deleted, which may happen in any thread. It is then kept for
    other arrays. A call of the model needs memory for its joined inputs and for its outputs, and a step may have
    several calls, so the number of used bytes varies within a step. Blocks of less than `_MAPPED` bytes are not kept.

    The unused blocks may always have `KEPT_BYTES`. While a block is used, they may have more: used and unused blocks
    together may have 1.25 times as many bytes as were used at the same time in the last `PERIOD` to
    `2 * PERIOD` requests. When a block is given back, and before one is used, the unused blocks that were given back
    first are released until the limit is met.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._returned: deque[mmap.mmap] = deque()
        self._unused: list[mmap.mmap] = []
        self._used_bytes = self._unused_bytes = 0
        self._most = self._most_before = 0  # the largest `_used_bytes` of this period, and of the previous one
        self._requests = 0  # of this period

    def arrays(self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype[Any]) -> list[NDArray[Any]]:
        """Return arrays with undefined values. The memory is not used for others as long as one of them exists."""
        return arrays_in_block(shapes, dtype, self._block)

    def _block(self, nbytes: int) -> NDArray[np.uint8]:
        """Return a block with at least `nbytes`: the smallest unused one that is not much larger, or else a new one."""
        if nbytes < _MAPPED:
            return new_block(nbytes)
        size = 1 << (nbytes - 1).bit_length()  # the next arrays have more tokens; unused pages need no memory
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
            self._count()
        block = np.frombuffer(memory, np.uint8)
        weakref.finalize(block, self._give_back, memory).atexit = False  # all views refer to `block`
        return block

    def _count(self) -> None:
        """Count a request for memory. The caller holds the lock."""
        self._requests += 1
        if self._requests == PERIOD:
            self._requests, self._most_before, self._most = 0, self._most, 0
        self._most = max(self._most, self._used_bytes)

    def _give_back(self, memory: mmap.mmap) -> None:
        """Record that a block was given back, and call `_collect` if the lock is free.

        The garbage collector may call it while this thread holds the lock, so it does not wait for the lock. The next
        `_collect` then moves the block.
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
        limit = max(KEPT_BYTES, recent * 5 // 4 - self._used_bytes)
        while self._unused_bytes > limit:
            self._unused_bytes -= len(self._unused.pop(0))
