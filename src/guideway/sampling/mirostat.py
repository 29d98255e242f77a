"""Mirostat (Basu et al. 2021): cut so that the surprise of what is drawn stays near a target, by feedback."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guideway.sampling.stages import probabilities, top_k

__all__ = ["Mirostat", "count_of"]

Logits = NDArray[np.float64]

ESTIMATED_FROM = 100
"""Version 1 estimates the exponent of Zipf's law from so many of the most probable tokens (the paper's m)."""


@dataclass(frozen=True)
class Mirostat:
    """`target`: the surprise to keep, in bits (tau). `rate`: how fast it learns (eta). `version`: 1 or 2.

    Between draws one number is remembered, the largest surprise allowed (mu); it begins at twice the target. Version 1
    turns it into a number of tokens by Zipf's law, version 2 cuts tokens that surprise more. Raises `ValueError`.
    """

    target: float = 5.0
    rate: float = 0.1
    version: int = 2

    def __post_init__(self) -> None:
        if self.version not in (1, 2):
            raise ValueError(f"mirostat: version must be 1 or 2, got {self.version}")
        if not (0 < self.target < math.inf and 0 <= self.rate < math.inf):
            raise ValueError(f"mirostat: target must be above 0 and rate 0 or more: {self.target}, {self.rate}")

    def cut(self, logits: Logits, limit: float) -> Logits:
        """The logits, those cut that `limit` (mu) does not allow; the most probable token stays."""
        if self.version == 1:
            return top_k(logits, count_of(probabilities(logits), limit))
        bits = -np.log2(np.maximum(probabilities(logits), np.finfo(np.float64).tiny))
        return np.where((bits > limit) & (logits < logits.max()), -np.inf, logits)

    def learned(self, logits: Logits, drawn: int, limit: float) -> float:
        """The next limit, where `drawn` is the place of the token; its surprise is that before the cut."""
        surprise = -math.log2(max(float(probabilities(logits)[drawn]), np.finfo(np.float64).tiny))
        return limit - self.rate * (surprise - self.target)


def count_of(share: Logits, limit: float) -> int:
    """How many tokens version 1 keeps: the paper's k, by an exponent estimated with least squares."""
    best = np.sort(share[share > 0])[::-1][:ESTIMATED_FROM]
    if best.size < 2:
        return 1
    places = np.arange(1, best.size)
    steps = np.log((places + 1) / places)
    exponent = float(steps @ np.log(best[:-1] / best[1:]) / (steps @ steps))
    epsilon = exponent - 1
    if exponent <= 0:  # all alike: no law to go by
        return int(share.size)
    if abs(epsilon) < 1e-9:  # the limit of the formula
        ratio = 1 / math.log(share.size) if share.size > 1 else 1.0
    else:
        ratio = epsilon / -math.expm1(-epsilon * math.log(share.size))
    power = (math.log2(max(ratio, 1e-300)) + limit) / exponent
    return int(share.size) if power > 60 else max(1, min(int(share.size), round(2.0**power)))
