"""Decides whether sequences share cells or have separate streams (the arrangement), and which stream each of them has.

With shared cells each token attends to the cells of all sequences, also of those that do not run. With streams it
attends only to those of the same sequence, but a common prefix is copied for each sequence. With streams, there are at
most as many cells as without, and sequences that do not run are saved in main memory if their cells are needed.

`Arranger` adds up the estimated cost of the calls of the engine, and subtracts what they would cost with the other
arrangement. It changes the arrangement when the difference exceeds the cost of the change, and when a call does not
fit the present one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from guideway.engines.llama_cpp.cache import CellSequence, SequencePool
from guideway.engines.llama_cpp.context import room
from guideway.engines.llama_cpp.dividing import MAX_JOINT_TOKENS
from guideway.errors import EngineError, KVCacheFullError

__all__ = ["Arranger"]

# Costs, in units of the time in which one drawn token attends to one cell that is shared by several rows. They were
# measured with 6 layers of width 192 in float32 on a CPU; a unit was 0.4 µs.
_PENALTY = 2  # of a cell of a stream for a drawn token: its keys are multiplied with one query only
_PROMPT = 0.65  # of any cell for a token of a prompt
_COPY = 5  # of a token that is copied to another stream
_MOVE = 40  # of a token that is moved to another arrangement
_CREATE = 16  # of a cell that is created
_PAD = 256  # llama.cpp reads a multiple of this number of cells
_SPARE = 32  # cells that each row has for further tokens in a new arrangement


class Arranger:
    """Gives sequence numbers to the sequences of a call.

    Args:
        pool: The sequences.
        unified: Whether the cells are always shared.
    """

    def __init__(self, pool: SequencePool, *, unified: bool) -> None:
        self._pool, self._fixed = pool, unified or not pool.context.separable
        self._excess = 0.0  # what the present arrangement cost more than the other one; at least 0
        self._saved_cost = 0.0  # what streams have saved since they were created
        self._rate = 0.0  # the change of `_excess` for each drawn token of the last call
        self._calls = 0

    def place(self, sequences: Sequence[CellSequence], counts: Sequence[int]) -> None:
        """Give a number to each sequence of a call, with memory for new tokens.

        With streams the numbers are consecutive. Other sequences may lose their numbers.

        Args:
            sequences: The sequences.
            counts: The number of new tokens of each.

        Raises:
            KVCacheFullError: There is no memory for the sequences.
            EngineError: llama.cpp failed. The tokens of all sequences are kept.
        """
        pool = self._pool
        pool.reclaim()
        self._rate = 0.0
        if pool.context.streams > 1 or (not self._fixed and len(pool.live) > 1):
            self._choose(sequences, counts)
        if pool.context.streams > 1:
            self._adjoin(sequences, counts)
            return
        for sequence in sequences:
            if sequence.number < 0:
                self._load(sequence)

    def ran(self, tokens: int) -> None:
        """Add the estimated cost difference of `tokens` drawn tokens of the last call to the sums."""
        self._add(tokens * self._rate)

    def _add(self, cost: float) -> None:
        """Add to the sums what calls cost more than with the other arrangement."""
        self._excess = max(0.0, self._excess + cost)
        self._saved_cost -= cost

    def _choose(self, sequences: Sequence[CellSequence], counts: Sequence[int]) -> None:
        """Change the arrangement if another one is cheaper, or if the call needs it."""
        pool, context, new = self._pool, self._pool.context, sum(counts)
        live = list(pool.live)
        total = sum(one.tip for one in live)
        idle = total - sum(one.tip for one in sequences)
        if idle > context.cells:
            idle = _trimmed(set(live) - set(sequences))
        pairs = list(zip(sequences, counts, strict=True))
        need = max(max(one.tip + count, one.loaded) for one, count in pairs)
        used, sign = _used(live), 1 if context.streams == 1 else -1
        cells = sum(-(-(one.tip + count) // _PAD) for one, count in pairs) * _PAD / len(pairs)
        self._rate = sign * (new + used - _PENALTY * cells)
        copied, pool.copied = pool.copied, 0
        self._excess += _COPY * copied
        prompts = [(one.tip, count) for one, count in pairs if count > MAX_JOINT_TOKENS]
        # On average, half of the new tokens have cells, and a stream is read up to the middle of a page.
        gain = sum(count * (used + new / 2 - tip - (count + _PAD) / 2) for tip, count in prompts)
        drawn = new - sum(count for _, count in prompts)
        self._add(sign * _PROMPT * gain + self._rate * drawn)
        cost = _CREATE * context.cells + _MOVE * total
        best = self._streams(len(sequences), need) if idle <= context.cells else 1
        if context.streams == 1:
            if self._excess > cost and best > 1:
                self._arrange(best, sequences)
        elif self._excess > cost or idle > context.cells:
            self._arrange(1, sequences)
        elif len(sequences) > context.streams or need > context.room:
            # New streams are created only if the present ones have saved more than this costs; else the cells are
            # shared.
            self._arrange(best if self._saved_cost > cost else 1, sequences)

    def _streams(self, count: int, need: int) -> int:
        """Return the number of streams for `count` rows of at most `need` tokens; 1: they must share the cells."""
        context = self._pool.context
        rows = [max(2, 1 << (count - 1).bit_length()), count]
        fits = [n for n in rows if 1 < n <= context.rows and room(context.cells, n) >= need + _SPARE]
        if not fits:
            return 1
        streams = fits[0]
        while 2 * streams <= context.rows and room(context.cells, 2 * streams) >= 4 * need:
            streams *= 2  # more sequences keep their numbers
        return streams

    def _arrange(self, streams: int, first: Sequence[CellSequence]) -> None:
        """Change the arrangement. Without streams, sequences are given numbers, those of `first` first."""
        pool = self._pool
        live = list(pool.live)
        for one in live:
            one.saved, one.number = one.save(), -1
        pool.places.clear()
        self._excess = self._saved_cost = self._rate = 0.0
        try:
            pool.context.arrange(streams)
        except EngineError:
            self._fixed = True
            if streams == 1:
                raise
            pool.context.arrange(1)
        if pool.context.streams == 1:
            called = set(first)
            for one in [*first, *(other for other in live if other not in called)]:
                try:
                    self._load(one)
                except EngineError:
                    continue  # `place` raises the error if the sequence is needed

    def _adjoin(self, sequences: Sequence[CellSequence], counts: Sequence[int]) -> None:
        """Move the sequences to adjacent streams. Those that are moved are in the order of their lengths.

        `counts`: the number of new tokens of each.
        """
        self._calls += 1
        for sequence in sequences:
            sequence.used = self._calls
        numbers = [one.number for one in sequences]
        if min(numbers) >= 0 and max(numbers) - min(numbers) == len(numbers) - 1:
            return
        owners = {one.number: one for one in self._pool.live if one.number >= 0}
        self._pool.reclaim()  # from here on, each number that is in use has an owner
        window, called = self._window(sequences, owners), set(sequences)
        for number in window:
            if number in owners and owners[number] not in called:
                _trimmed([owners[number]])
                owners[number].leave()
        needs = {one: one.tip + count for one, count in zip(sequences, counts, strict=True)}
        outside = sorted((one for one in sequences if one.number not in window), key=needs.__getitem__)
        for one in outside:
            one.leave()
        free = [number for number in window if number not in self._pool.places]
        for one, number in zip(outside, free, strict=True):
            one.enter(number)

    def _window(self, sequences: Sequence[CellSequence], owners: dict[int, CellSequence]) -> range:
        """Return the adjacent numbers for which the fewest tokens must be moved.

        Tokens of other sequences count less the longer these were not used.
        """
        count, called = len(sequences), set(sequences)
        placed = sum(one.tip for one in sequences if one.number >= 0)
        found, least = range(0), float("inf")
        for start in range(self._pool.context.streams - count + 1):
            window = range(start, start + count)
            here = [owners[number] for number in window if number in owners]
            cost = float(placed - sum(one.tip for one in here if one in called))
            cost += sum((one.tip + 1) / (self._calls - one.used + 1) for one in here if one not in called)
            if cost < least:
                found, least = window, cost
        return found

    def _load(self, sequence: CellSequence) -> None:
        """Give a sequence a number in the shared cells, and load its saved tokens.

        It then shares cells with the sequence with which it has the most first tokens in common
        (`CellSequence.common`).

        Raises:
            KVCacheFullError: No number is free, or all sequences together have more tokens than there are cells.
            EngineError: llama.cpp rejected the saved tokens.
        """
        pool = self._pool
        try:
            sequence.enter()
        except EngineError as error:
            if isinstance(error, KVCacheFullError) or sum(one.tip for one in pool.live) <= pool.context.cells:
                raise
            text = f"the KV cache has no free cells for a row of {sequence.tip} tokens; raise kv_cache_tokens="
            raise KVCacheFullError(text) from error
        others = [one for one in pool.live if one.number >= 0 and one is not sequence]
        length, number = max(((one.common(sequence), one.number) for one in others), default=(0, 0))
        if length:
            pool.context.share(number, sequence.number, length)


def _trimmed(sequences: Iterable[CellSequence]) -> int:
    """Remove from each sequence the tokens that no `CachedPrefix` contains. Returns the number of tokens left."""
    total = 0
    for one in sequences:
        one.cut(min(one.tip, one.longest()))
        total += one.tip
    return total


def _used(sequences: Iterable[CellSequence]) -> int:
    """Return the number of cells of sequences if these share the cells of known prefixes."""
    ends: dict[int, int] = {}
    starts: dict[int, int] = {}
    for one in sequences:
        for start, end, name in one.extents():
            starts[name] = start
            ends[name] = max(end, ends.get(name, 0))
    return sum(ends.values()) - sum(starts.values())
