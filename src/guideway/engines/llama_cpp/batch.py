"""What one call of `llama_decode` reads: arrays of this process, made once and filled for each call."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llama_cpp as llama
import numpy as np

__all__ = ["Batch", "Place"]

Place = tuple[int, int, int, bool]
"""A token, its position, the number of its sequence, and whether logits are wanted behind it."""


class Batch:
    """Up to `size` tokens. `struct`: as the library takes them."""

    def __init__(self, size: int) -> None:
        self.tokens, self.positions, self.numbers = (np.zeros(size, dtype=np.int32) for _ in range(3))
        self.counts, self.wanted = np.ones(size, dtype=np.int32), np.zeros(size, dtype=np.int8)
        self._pointers = self.numbers.ctypes.data + np.arange(size, dtype=np.uintp) * self.numbers.itemsize
        self.struct: Any = llama.llama_batch(
            n_tokens=0,
            token=_at(self.tokens, llama.llama_token),
            embd=None,
            pos=_at(self.positions, llama.llama_pos),
            n_seq_id=_at(self.counts, ctypes.c_int32),
            seq_id=_at(self._pointers, ctypes.POINTER(llama.llama_seq_id)),
            logits=_at(self.wanted, ctypes.c_int8),
        )

    def fill(self, places: Sequence[Place]) -> int:
        """Put these tokens in, and nothing else; behind how many logits are wanted."""
        for at, (token, position, number, wanted) in enumerate(places):
            self.tokens[at], self.positions[at], self.numbers[at], self.wanted[at] = token, position, number, wanted
        self.struct.n_tokens = len(places)
        return sum(place[3] for place in places)


def _at(array: np.ndarray[Any, np.dtype[Any]], kind: Any) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))
