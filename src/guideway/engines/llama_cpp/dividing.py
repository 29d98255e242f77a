"""Divides the new tokens of rows into calls of `llama_decode`.

llama.cpp lets all tokens of a call attend to the same number of cells, a multiple of `PAGE`: those that the longest
sequence of the call has at the end of the call. The cells that a token does not need cost as much time as the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from guideway.engines.llama_cpp.batch import Begun, Piece

__all__ = ["LONGEST_PIECE", "MAX_JOINT_TOKENS", "PAGE", "Divider"]

PAGE = 256
"""llama.cpp rounds the number of cells that a call reads up to a multiple of this."""
_SHORT = 64
"""A piece that ends at a multiple of `PAGE` has at least this number of tokens."""
LONGEST_PIECE = PAGE + _SHORT
"""The maximum number of tokens of a piece."""
_TAIL = 16
"""The last of several pieces of a row has at least this number of tokens, to count as a prompt (`PROMPT_TOKENS`)."""
MAX_JOINT_TOKENS = 32
"""With streams, rows with at most this number of new tokens run together. The costs of rows with more are those of prompts."""


class Divider:
    """Divides the new tokens of rows into calls.

    Args:
        streams: Whether each sequence has a stream. Otherwise, all tokens attend to the cells of all sequences.
        pass_cells: See `Context`. It is the cost, in cells, of a further forward pass within a call.
    """

    def __init__(self, *, streams: bool, pass_cells: float) -> None:
        self._streams, self._pass_cells = streams, pass_cells

    def order(self, sequences: Sequence[Begun], counts: Sequence[int] | None = None) -> list[int] | None:
        """Return the order of sequences in a call; None: the order does not matter, or is the given one.

        llama.cpp runs streams in one forward pass if their numbers are consecutive and the call has them in this order.
        Streams with few tokens and streams with more are in different groups, each with a separate forward pass, if
        this reads less. The group with the highest numbers comes first, so that llama.cpp does not join it with the
        next one.

        `counts`: the number of new tokens of each sequence; None: one.
        """
        if not self._streams:
            return None
        numbers = [sequence.number for sequence in sequences]
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        pages = [-(-(one.tip + (counts[i] if counts else 1)) // PAGE) for i, one in enumerate(sequences)]
        if min(pages) != max(pages):
            groups = self._grouped([(1, pages[i]) for i in order])
            found: list[int] = []
            end = len(order)
            for size, _ in reversed(groups):
                found += order[end - size : end]
                end -= size
            order = found
        return None if order == list(range(len(order))) else order

    def _grouped(self, rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Join adjacent groups while that reduces the cost.

        A group: the number of its rows, and the number of cells that each of them reads, divided by `PAGE`.
        """
        groups = rows[:1]
        for size, pages in rows[1:]:
            if pages == groups[-1][1]:
                groups[-1] = groups[-1][0] + size, pages
            else:
                groups.append((size, pages))
        most = self._pass_cells / PAGE
        while len(groups) > 1:
            extra, at = min(
                (abs(pages - more) * (size if pages < more else other), i)
                for i, ((size, pages), (other, more)) in enumerate(pairwise(groups))
            )
            if extra > most:
                break
            (size, pages), (other, more) = groups[at : at + 2]
            groups[at : at + 2] = [(size + other, max(pages, more))]
        return groups

    def separate(self, rows: Sequence[Sequence[int]]) -> int:
        """Return the number of rows that run in calls without other rows: with streams, those with long prompts."""
        return sum(len(row) > MAX_JOINT_TOKENS for row in rows) if self._streams else 0

    def calls(self, sequences: Sequence[Begun], rows: Sequence[Sequence[int]], size: int) -> list[list[Piece]]:
        """Return the pieces of each call of at most `size` tokens."""
        if not self._streams:
            return _packed(((index, 0, len(row)) for index, row in enumerate(rows)), size)
        few = [index for index, row in enumerate(rows) if len(row) <= MAX_JOINT_TOKENS]
        calls: list[list[Piece]] = []
        for index, row in enumerate(rows):
            if len(row) > MAX_JOINT_TOKENS:
                calls += _paged(index, sequences[index].tip, len(row), size)
        order = self.order([sequences[index] for index in few], [len(rows[index]) for index in few]) if few else []
        chosen = few if order is None else [few[at] for at in order]
        return calls + _packed(((index, 0, len(rows[index])) for index in chosen), size)


def _packed(rows: Iterable[Piece], size: int) -> list[list[Piece]]:
    """Divide rows, one after the other, into calls of `size` tokens."""
    calls: list[list[Piece]] = []
    room = 0
    for index, begin, end in rows:
        while begin < end:
            if not room:
                calls.append([])
                room = size
            count = min(room, end - begin)
            calls[-1].append((index, begin, begin + count))
            begin, room = begin + count, room - count
    return calls


def _paged(index: int, tip: int, count: int, size: int) -> list[list[Piece]]:
    """Divide a row with `tip` earlier tokens into calls that end, if possible, where the number of cells changes."""
    calls: list[list[Piece]] = []
    begin = 0
    while begin < count:
        end = begin + PAGE - (tip + begin) % PAGE
        if end - begin < _SHORT:
            end += PAGE
        if end >= count:
            end = count
        elif count - end < _TAIL:
            end = count - _TAIL
        end = min(end, begin + size)
        calls.append([(index, begin, end)])
        begin = end
    return calls
