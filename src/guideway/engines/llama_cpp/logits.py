"""The logits of `llama_decode`, in memory that llama.cpp overwrites with the next call."""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp as llama
import numpy as np

from guideway.engines.base import Logits

__all__ = ["Outputs"]

_address_of = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
    ctypes.cast(llama.llama_get_logits, ctypes.c_void_p).value or 0
)


class Outputs:
    """The logits of a context as an array [rows, width] over llama.cpp's buffer.

    The array object is used again if the address of the buffer and the number of rows have not changed.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._place: tuple[int, int] = (0, 0)
        self._there: Any = np.empty((0, width), dtype=np.float32)

    def lent(self, handle: Any, rows: int) -> Logits:
        """Return the logits of the last call, [`rows`, width]. The array is valid until the next call."""
        place = _address_of(handle), rows
        if place != self._place:
            memory: Any = (ctypes.c_float * (rows * self._width)).from_address(place[0])
            self._there, self._place = np.frombuffer(memory, dtype=np.float32).reshape(rows, self._width), place
        there: Logits = self._there
        return there
