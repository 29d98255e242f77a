"""Mirostat (Basu et al. 2021): truncation with feedback that keeps the surprise of drawn tokens near a target.

The surprise of a token is -log2 of its probability, in bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guideway.arguments import short_repr
from guideway.sampling.checks import is_finite, is_number
from guideway.sampling.stages import probabilities, top_k

__all__ = ["Mirostat", "count_of"]

Logits = NDArray[np.float64]

ESTIMATED_FROM = 100
"""Version 1 estimates the Zipf exponent from this number of most probable tokens (m in the paper)."""


@dataclass(frozen=True)
class Mirostat:
    """Parameters of Mirostat.

    The state between draws is mu, the largest allowed surprise; its initial value is twice the target. Version 1
    converts mu to a number of tokens by Zipf's law. Version 2 removes tokens whose surprise exceeds mu.

    Args:
        target: Target surprise, in bits (tau).
        rate: Learning rate (eta).
        version: 1 or 2.

    Raises:
        ValueError: A parameter is out of range.
        TypeError: `target` or `rate` is no number.
    """

    target: float = 5.0
    rate: float = 0.1
    version: int = 2

    def __post_init__(self) -> None:
        if not is_number(self.version) or self.version not in (1, 2):
            raise ValueError(f"mirostat: version must be 1 or 2, got {short_repr(self.version)}")
        for value in (self.target, self.rate):
            if not is_number(value):
                raise TypeError(f"mirostat: expected a number, got {short_repr(value)}")
        if not (is_finite(self.target) and is_finite(self.rate) and self.target > 0 and self.rate >= 0):
            given = f"{short_repr(self.target)} and {short_repr(self.rate)}"
            raise ValueError(f"mirostat: expected target > 0 and rate >= 0, got {given}")

    def cut(self, logits: Logits, limit: float) -> Logits:
        """Truncate logits by `limit` (mu). At least one most probable token is always kept."""
        if self.version == 1:
            return top_k(logits, count_of(probabilities(logits), limit))
        bits = -np.log2(np.maximum(probabilities(logits), np.finfo(np.float64).tiny))
        return np.where((bits > limit) & (logits < logits.max()), -np.inf, logits)

    def learned(self, logits: Logits, drawn: int, limit: float) -> float:
        """Return the next mu.

        `logits`: the logits before `cut`. `drawn`: the index of the drawn token in them. `limit`: the current mu.
        """
        surprise = -math.log2(max(float(probabilities(logits)[drawn]), np.finfo(np.float64).tiny))
        return limit - self.rate * (surprise - self.target)


def count_of(share: Logits, limit: float) -> int:
    """Return the number of tokens that version 1 keeps, with the Zipf exponent estimated by least squares.

    `share`: the probabilities. `limit`: mu.
    """
    best = np.sort(share[share > 0])[::-1][:ESTIMATED_FROM]
    if best.size < 2:
        return 1
    places = np.arange(1, best.size)
    steps = np.log((places + 1) / places)
    exponent = float(steps @ np.log(best[:-1] / best[1:]) / (steps @ steps))
    epsilon = exponent - 1
    if exponent <= 0:  # uniform probabilities: Zipf's law does not apply
        return int(share.size)
    if abs(epsilon) < 1e-9:  # the limit of the formula for epsilon -> 0
        ratio = 1 / math.log(share.size) if share.size > 1 else 1.0
    else:
        ratio = epsilon / -math.expm1(-epsilon * math.log(share.size))
    power = (math.log2(max(ratio, 1e-300)) + limit) / exponent
    return int(share.size) if power > 60 else max(1, min(int(share.size), round(2.0**power)))
