"""Sequences of llama.cpp as values: whoever holds one finds it unchanged, and nothing is copied until that needs it.

A `Sequence` is a number in llama.cpp's memory, given back when nobody holds it. A `Held` is its first `length` tokens.
Running on from a `Held` grows the sequence in place where nobody holds more of it; else the cells are shared with a
new sequence, which then goes its own way.
"""

from __future__ import annotations

from collections import deque
from weakref import ref

from guideway.engines.base import check_truncation
from guideway.engines.llama_cpp.context import Context
from guideway.errors import KVCacheFullError

__all__ = ["Held", "Pool"]


class Pool:
    """The numbers of sequences that are free, and of those that nobody holds any more.

    What is let go may be let go in any thread, also while llama.cpp runs; so its cells are given back before the next
    call, and not there.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.free = list(range(context.rows))[::-1]
        self.dropped = deque[int]()

    def reclaim(self) -> None:
        """Give back the cells of what was let go."""
        while self.dropped:
            number = self.dropped.popleft()
            self.context.remove(number, -1)
            self.free.append(number)

    def take(self) -> Sequence:
        self.reclaim()
        if not self.free:
            raise KVCacheFullError(f"all {self.context.rows} sequences are held: let sessions, forks or kept kv go")
        return Sequence(self, self.free.pop())


class Sequence:
    """`tip`: how many tokens llama.cpp has of it; nobody holds more.

    `held`: who holds some of it, or did; any thread adds to them. `crowd`: at so many it is time to see who is gone.
    """

    def __init__(self, pool: Pool, number: int) -> None:
        self.pool, self.number, self.tip = pool, number, 0
        self.held = deque[ref[Held]]()
        self.crowd = 64

    def longest(self) -> int:
        """How many of its tokens somebody holds. For the one that runs llama.cpp."""
        longest = 0
        for _ in range(len(self.held)):
            one = self.held.popleft()
            if (held := one()) is not None:
                self.held.append(one)
                longest = max(longest, held.length)
        self.crowd = 2 * len(self.held) + 64
        return longest

    def copy(self, length: int | None = None) -> Sequence:
        """Another one that begins with the same tokens; the cells are shared."""
        new = self.pool.take()
        new.tip = self.tip if length is None else length
        self.pool.context.copy(self.number, new.number, new.tip)
        return new

    def __del__(self) -> None:
        self.pool.dropped.append(self.number)


class Held:
    """The first `length` tokens of a sequence."""

    __slots__ = ("__weakref__", "length", "sequence")

    def __init__(self, sequence: Sequence, length: int) -> None:
        self.sequence, self.length = sequence, length
        sequence.held.append(ref(self))

    @property
    def nbytes(self) -> int:
        return self.length * self.sequence.pool.context.cell_bytes

    def truncated(self, length: int) -> Held:
        check_truncation(self, length)
        return Held(self.sequence, length)

    def to_go_on(self) -> Sequence:
        """A sequence of exactly these tokens, to be changed."""
        own = self.sequence
        if self.length == own.tip:  # nobody can hold more: the usual step
            if len(own.held) > own.crowd:
                own.longest()
        elif own.longest() > self.length:
            return own.copy(self.length)
        else:
            own.pool.context.remove(own.number, self.length)
            own.tip = self.length
        return own
