"""Sequences of llama.cpp as immutable cache values, with copy on write.

A `CellSequence` owns a sequence number in llama.cpp's memory. After it was garbage-collected, the pool releases the
number. A `CachedPrefix` is a cache value: the first `length` tokens of a sequence. Running more tokens after a
`CachedPrefix` extends the sequence in place if no other `CachedPrefix` contains later tokens of this sequence.
Otherwise a new sequence is created that shares the cells of the prefix.
"""

from __future__ import annotations

from collections import deque
from weakref import ref

from guideway.engines.base import check_truncation
from guideway.engines.llama_cpp.context import Context
from guideway.errors import KVCacheFullError

__all__ = ["CachedPrefix", "SequencePool"]


class SequencePool:
    """The free sequence numbers (`free`), and the numbers whose cells must be released (`dropped`).

    Sequences can be garbage-collected in any thread, also while llama.cpp runs. Therefore `CellSequence.__del__` only
    adds their numbers to `dropped`, and `reclaim` releases the cells in a later call.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.free = list(range(context.rows))[::-1]
        self.dropped = deque[int]()

    def reclaim(self) -> None:
        """Release the cells of sequences that were garbage-collected."""
        while self.dropped:
            number = self.dropped.popleft()
            self.context.remove(number, -1)
            self.free.append(number)

    def take(self) -> CellSequence:
        """Return a new, empty sequence. Raises `KVCacheFullError` if all sequence numbers are in use."""
        self.reclaim()
        if not self.free:
            raise KVCacheFullError(
                f"all {self.context.rows} sequences are in use; close sessions, forks or KV caches, or raise rows="
            )
        return CellSequence(self, self.free.pop())


class CellSequence:
    """A sequence in llama.cpp's memory.

    Attributes:
        tip: Number of its tokens in llama.cpp's memory.
        held: Weak references to the cache values of this sequence, dead references included. Any thread may append.
        crowd: If `held` is longer than this, `to_go_on` removes dead references.
    """

    def __init__(self, pool: SequencePool, number: int) -> None:
        self.pool, self.number, self.tip = pool, number, 0
        self.held = deque[ref[CachedPrefix]]()
        self.crowd = 64

    def longest(self) -> int:
        """Return the length of the longest cache value of this sequence that exists; 0 if there is none.

        Dead references are removed from `held`. Call it only in the thread that runs llama.cpp.
        """
        longest = 0
        for _ in range(len(self.held)):
            one = self.held.popleft()
            if (held := one()) is not None:
                self.held.append(one)
                longest = max(longest, held.length)
        self.crowd = 2 * len(self.held) + 64
        return longest

    def copy(self, length: int | None = None) -> CellSequence:
        """Return a new sequence with the first `length` tokens of this one (None: all). The cells are shared."""
        new = self.pool.take()
        new.tip = self.tip if length is None else length
        self.pool.context.copy(self.number, new.number, new.tip)
        return new

    def __del__(self) -> None:
        self.pool.dropped.append(self.number)


class CachedPrefix:
    """A cache value: the first `length` tokens of a sequence."""

    __slots__ = ("__weakref__", "length", "sequence")

    def __init__(self, sequence: CellSequence, length: int) -> None:
        self.sequence, self.length = sequence, length
        sequence.held.append(ref(self))

    @property
    def nbytes(self) -> int:
        return self.length * self.sequence.pool.context.cell_bytes

    def truncated(self, length: int) -> CachedPrefix:
        check_truncation(self, length)
        return CachedPrefix(self.sequence, length)

    def to_go_on(self) -> CellSequence:
        """Return a sequence of exactly these tokens that may be extended.

        It is `sequence`, from which later tokens are removed that no cache value contains, or a copy.
        """
        own = self.sequence
        if self.length == own.tip:  # no other cache value can be longer: the common case
            if len(own.held) > own.crowd:
                own.longest()
        elif own.longest() > self.length:
            return own.copy(self.length)
        else:
            own.pool.context.remove(own.number, self.length)
            own.tip = self.length
        return own
