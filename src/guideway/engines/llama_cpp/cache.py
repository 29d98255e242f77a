"""Sequences of llama.cpp as immutable cache values, with copy on write.

A `CellSequence` has a sequence number in llama.cpp's memory, or its tokens are saved in main memory. After it was
garbage-collected, the `SequencePool` releases the number. A `CachedPrefix` is a `Cache`: the first `length` tokens of a
sequence. Running more tokens after a `CachedPrefix` extends the sequence in place if no other `CachedPrefix` contains
later tokens of this sequence. Otherwise a new sequence is created. It shares the cells of the prefix, or has a copy of
them if sequences have separate streams.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import NamedTuple
from weakref import WeakSet, ref

from guideway.engines.base import check_truncation
from guideway.engines.llama_cpp.context import Context, State
from guideway.errors import EngineError, KVCacheFullError

__all__ = ["CachedPrefix", "CellSequence", "Saved", "SequencePool"]


_ids = count()
_PIECES = 16  # maximum number of segments of a sequence (`CellSequence.pieces`); the later ones are joined


class Saved(NamedTuple):
    """The state of a sequence, copied to main memory. `length`: the number of its tokens."""

    state: State
    length: int


class SequencePool:
    """The sequences that exist (`live`), and which of them has which sequence number (`places`).

    Sequences can be garbage-collected in any thread, also while llama.cpp runs. Therefore the references are weak, and
    `reclaim` releases the cells in a later call.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.live = WeakSet[CellSequence]()
        self.places: dict[int, ref[CellSequence]] = {}
        self.copied = 0  # tokens that were copied because the cells are not shared
        self._last_saved: tuple[CellSequence, int, tuple[int, int], Saved | None] | None = None

    def reclaim(self) -> None:
        """Release the cells and numbers of sequences that were garbage-collected."""
        for number in [number for number, held in self.places.items() if held() is None]:
            self.release(number)

    def release(self, number: int) -> None:
        """Remove the tokens of a sequence number, and release the number."""
        self.context.remove(number, -1)
        del self.places[number]

    def claim(self, sequence: CellSequence, number: int | None = None) -> int:
        """Give a sequence this number, or any free one (None), and return the number.

        Raises `KVCacheFullError` if no number is free.
        """
        if number is None:
            number = next((n for n in range(self.context.numbers) if n not in self.places), None)
        if number is None:
            raise self._full()
        self.places[number] = ref(sequence)
        return number

    def take(self) -> CellSequence:
        """Return a new, empty sequence. Raises `KVCacheFullError` if the maximum number of sequences exists.

        It has a number if the cells are shared. With streams, it gets a number before tokens are run.
        """
        self.reclaim()
        if len(self.live) >= self.context.rows:
            raise self._full()
        sequence = CellSequence(self)
        if self.context.streams == 1:
            sequence.number = self.claim(sequence)
        self.live.add(sequence)
        return sequence

    def saved(self, sequence: CellSequence) -> Saved | None:
        """Return the result of `CellSequence.save`. Several copies of one sequence share it until `forget_saved`."""
        key = sequence, sequence.tip, sequence.pieces[-1]
        if self._last_saved is None or self._last_saved[:3] != key:
            self._last_saved = *key, sequence.save()
        return self._last_saved[3]

    def forget_saved(self) -> None:
        """End the sharing of `saved`. This is needed when a call of the engine has made its copies."""
        self._last_saved = None

    def _full(self) -> KVCacheFullError:
        return KVCacheFullError(
            f"all {self.context.rows} sequences are in use; close sessions, forks or KV caches, or raise rows="
        )


class CellSequence:
    """A sequence of tokens in llama.cpp's memory, or saved in main memory.

    Attributes:
        number: Its sequence number in llama.cpp's memory; -1: it has none.
        saved: Its tokens if it has no number; there may be more than `tip`. None: it has a number, or no tokens.
        tip: Number of its tokens.
        pieces: The tokens in segments: for each segment the index of its first token, and an id. Segments of two
            sequences with the same id have the same keys and values, up to the end of the shorter segment.
        used: The number of the call in which the sequence was used last.
        held: Weak references to the `CachedPrefix` values of this sequence, dead references included. Any thread may
            append.
        crowd: If `held` is longer than this, `to_go_on` removes dead references.
    """

    def __init__(self, pool: SequencePool) -> None:
        self.pool, self.number, self.tip, self.used = pool, -1, 0, 0
        self.pieces = [(0, next(_ids))]
        self.saved: Saved | None = None
        self.held = deque[ref[CachedPrefix]]()
        self.crowd = 64

    @property
    def loaded(self) -> int:
        """The number of cells that loading the saved tokens needs, those after `tip` included; 0: none are saved."""
        return 0 if self.saved is None else self.saved.length

    def longest(self) -> int:
        """Return the length of the longest `CachedPrefix` of this sequence that exists; 0 if there is none.

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
        """Return a new sequence with the first `length` tokens of this one (None: all).

        The cells are shared if the context has no streams and this sequence has a number.
        """
        new, context = self.pool.take(), self.pool.context
        new.tip = self.tip if length is None else length
        new.pieces = self._pieces(new.tip)
        if new.number >= 0 and self.number >= 0:
            context.copy(self.number, new.number, new.tip)
        elif new.tip:
            new.leave()
            new.saved = self.pool.saved(self)
            self.pool.copied += new.tip
        return new

    def cut(self, length: int) -> None:
        """Remove the tokens from index `length` on."""
        if self.number >= 0:
            self.pool.context.remove(self.number, length)
        if length < self.tip:
            self.tip, self.pieces = length, self._pieces(length)

    def _pieces(self, length: int) -> list[tuple[int, int]]:
        """Return the segments of the first `length` tokens, and a new segment for further tokens."""
        kept = [piece for piece in self.pieces if piece[0] < length]
        if len(kept) < _PIECES:
            return [*kept, (length, next(_ids))]
        return [*kept[:-1], (kept[-1][0], next(_ids))]

    def extents(self) -> list[tuple[int, int, int]]:
        """Return for each segment the index of its first token, the index after its last token, and its id."""
        ends = [start for start, _ in self.pieces[1:]]
        return [(start, end, name) for (start, name), end in zip(self.pieces, [*ends, self.tip], strict=True)]

    def common(self, other: CellSequence) -> int:
        """Return how many first tokens are known to have the same keys and values in two sequences."""
        length = 0
        for (_, end, name), (_, stop, known) in zip(self.extents(), other.extents(), strict=False):
            if name != known:
                break
            length = min(end, stop)
            if end != stop:
                break
        return length

    def save(self) -> Saved | None:
        """Return the state of the tokens in main memory; None: there are no tokens."""
        if not self.tip:
            return None
        return self.saved if self.number < 0 else Saved(self.pool.context.state(self.number), self.tip)

    def leave(self) -> None:
        """Save the tokens in main memory, and release the number."""
        if self.number >= 0:
            self.saved = self.save()
            self.pool.release(self.number)
            self.number = -1

    def enter(self, number: int | None = None) -> None:
        """Give the sequence this number, or any free one, and load the saved tokens.

        Raises:
            KVCacheFullError: No number is free.
            EngineError: llama.cpp rejected the saved tokens. The sequence has no number, as before.
        """
        number = self.pool.claim(self, number)
        try:
            if self.saved is not None:
                self.pool.context.put_state(number, *self.saved)
                if self.saved.length > self.tip:
                    self.pool.context.remove(number, self.tip)
        except EngineError:
            self.pool.release(number)
            raise
        self.number, self.saved = number, None


class CachedPrefix:
    """A `Cache`: the first `length` tokens of a sequence."""

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

        If no `CachedPrefix` contains later tokens of `sequence`, these are removed, and the result is `sequence`.
        Otherwise, it is a copy.
        """
        own = self.sequence
        if self.length == own.tip:  # no other `CachedPrefix` can be longer: the common case
            if len(own.held) > own.crowd:
                own.longest()
        elif own.longest() > self.length:
            return own.copy(self.length)
        else:
            own.cut(self.length)
        return own
