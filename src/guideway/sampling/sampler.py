"""`Sampler`: which stages with which values, and the draw itself."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway.errors import EngineError
from guideway.sampling import stages

__all__ = ["Sampler", "uniform"]


@dataclass(frozen=True)
class Sampler:
    """How a token is drawn from logits. Immutable, and without state: the draw depends on its arguments alone.

    Stages in this order: `temperature`, `top_k` (0: off), `top_p` (1: off), `min_p` (0: off). Temperature 0 is greedy:
    the most probable token, the lowest id of equals, and the other stages change nothing.

    Raises `ValueError` for values outside their range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"temperature must be 0 (greedy) or more, got {self.temperature}")
        if self.top_k < 0 or int(self.top_k) != self.top_k:
            raise ValueError(f"top_k must be 0 (off) or a positive integer, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1 (off), got {self.top_p}")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p must be 0 (off) to 1, got {self.min_p}")

    def choose(self, logits: NDArray[Any], *, seed: int = 0, row: int = 0, position: int = 0) -> int:
        """The token for these logits.

        `logits`: floating [V], -inf for what is not allowed; not changed. The same logits, seed, row and position
        give the same token. Raises `EngineError` where no token is allowed or a logit is NaN.
        """
        best = int(logits.argmax())  # NaN wins an argmax, so one look finds both faults
        top = float(logits[best])
        if math.isnan(top):
            raise EngineError(f"the logit of token {best} is NaN")
        if top == -math.inf:
            raise EngineError("no token is allowed: every logit is -inf")
        if self.temperature == 0 or top == math.inf:
            return best
        ids = np.flatnonzero(logits > -np.inf)
        left = stages.temperature(logits[ids].astype(np.float64), self.temperature)
        if self.top_k:
            left = stages.top_k(left, self.top_k)
        if self.top_p < 1:
            left = stages.top_p(left, self.top_p)
        if self.min_p:
            left = stages.min_p(left, self.min_p)
        reached = np.cumsum(np.exp(left))  # the largest of `left` is 0, so this neither overflows nor vanishes
        drawn = int(np.searchsorted(reached, uniform(seed, row, position) * reached[-1], side="right"))
        if drawn == reached.size:  # rounding put the draw on the last edge: the last token that has any share
            drawn = int(np.searchsorted(reached, reached[-1]))
        return int(ids[drawn])


def uniform(seed: int, row: int, position: int) -> float:
    """A number in [0, 1) that depends on its arguments alone: a keyed hash of them.

    A generator without state has nothing to save: after a rewind the same position draws the same number. (NumPy's
    Philox, counted by position, does the same at 14 us a number; this took 3 to 4 on a busy machine.)
    """
    digest = hashlib.blake2b(f"{seed} {row} {position}".encode(), digest_size=8, person=b"guideway draws").digest()
    return (int.from_bytes(digest, "little") >> 11) / (1 << 53)
