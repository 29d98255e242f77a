"""The input arrays of `llama_decode`, allocated once and filled for each call."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import llama_cpp as llama

__all__ = ["Begun", "DecodeBatch", "Piece", "laid_out"]

Columns = tuple[list[int], list[int], list[int], list[int]]
"""For each token: its id, its position, its sequence number, and whether its logits are needed (0 or 1)."""

Piece = tuple[int, int, int]
"""A part of the new tokens of one row: the index of the row, the first token, and the token after the last."""


class Begun(Protocol):
    """A sequence in llama.cpp's memory: its number, and how many of its tokens have run."""

    number: int
    tip: int


class DecodeBatch:
    """Input of up to `size` tokens. `struct` is the `llama_batch` of the library."""

    def __init__(self, size: int) -> None:
        arrays: list[Any] = [(kind * size)() for kind in (*[ctypes.c_int32] * 4, ctypes.c_int8)]
        self._tokens, self._positions, self._numbers, self._counts, self._wanted = arrays
        self._counts[:] = [1] * size
        self._size = size
        self._alone = -1  # number of the sequence in the previous call if that had a single token, else -1
        pointer = ctypes.POINTER(llama.llama_seq_id)
        start, step = ctypes.addressof(self._numbers), ctypes.sizeof(llama.llama_seq_id)
        self._pointers = (pointer * size)(
            *(ctypes.cast(ctypes.c_void_p(start + step * at), pointer) for at in range(size))
        )
        self.struct: Any = llama.llama_batch(
            n_tokens=0,
            token=_at(self._tokens),
            embd=None,
            pos=_at(self._positions),
            n_seq_id=_at(self._counts),
            seq_id=_at(self._pointers),
            logits=_at(self._wanted),
        )

    def fill(self, columns: Columns) -> None:
        """Fill in at most `size` tokens."""
        tokens, positions, numbers, wanted = columns
        count, self._alone = len(tokens), -1
        self.struct.n_tokens = count
        self._tokens[:count], self._positions[:count] = tokens, positions
        self._numbers[:count], self._wanted[:count] = numbers, wanted

    def put(self, sequences: Sequence[Begun], rows: Sequence[Sequence[int]]) -> None:
        """Fill in one token per sequence. Logits are needed for each."""
        count, first = len(sequences), sequences[0]
        if count == 1:  # assigning to slices takes five times as long
            if self._alone != first.number:
                self._alone = first.number
                self.struct.n_tokens, self._numbers[0], self._wanted[0] = 1, first.number, 1
            self._tokens[0], self._positions[0] = rows[0][0], first.tip
            return
        self._alone = -1
        self.struct.n_tokens = count
        self._numbers[:count], self._wanted[:count] = [sequence.number for sequence in sequences], [1] * count
        self._tokens[:count], self._positions[:count] = [row[0] for row in rows], [one.tip for one in sequences]


def laid_out(
    sequences: Sequence[Begun], rows: Sequence[Sequence[int]], pieces: Iterable[Piece], *, every: bool = False
) -> Columns:
    """Return the `Columns` of pieces of the new tokens of sequences, one piece after another.

    Logits are needed after the last new token of each sequence or, if `every`, after each token.
    """
    tokens: list[int] = []
    positions: list[int] = []
    numbers: list[int] = []
    wanted: list[int] = []
    for index, begin, end in pieces:
        sequence, ids, count = sequences[index], rows[index], end - begin
        tokens += ids if count == len(ids) else ids[begin:end]
        positions += range(sequence.tip + begin, sequence.tip + end)
        numbers += [sequence.number] * count
        wanted += [int(every)] * (count - 1)
        wanted.append(int(every or end == len(ids)))
    return tokens, positions, numbers, wanted


def _at(array: Any) -> Any:
    return ctypes.cast(array, ctypes.POINTER(array._type_))
