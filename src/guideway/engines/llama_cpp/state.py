"""The state of a recurrent model as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["State"]


@dataclass(frozen=True, eq=False)
class State:
    """The state of a recurrent model, taken out of llama.cpp."""

    data: np.ndarray[Any, np.dtype[np.uint8]]
    length: int

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)

    def truncated(self, length: int) -> State:
        raise ValueError("the state of a recurrent model cannot be truncated")
