"""The stages of sampling: each takes logits and gives logits, with -inf for what it cuts.

Logits are float64 [V]; -inf means not allowed. No stage ever cuts the most probable token. Of equal logits the lower
id is kept first, so that the same logits give the same tokens on every engine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["min_p", "probabilities", "temperature", "top_k", "top_p"]

Logits = NDArray[np.float64]


def temperature(logits: Logits, value: float) -> Logits:
    """Divide by the temperature (> 0): below 1 sharpens, above 1 flattens."""
    return np.asarray((logits - logits.max()) / value)  # the maximum first: a tiny temperature must not overflow


def top_k(logits: Logits, count: int) -> Logits:
    """Keep the `count` (>= 1) most probable tokens."""
    if count >= logits.size:
        return logits
    return _keep(logits, np.argsort(-logits, kind="stable")[:count])


def top_p(logits: Logits, mass: float) -> Logits:
    """Keep the fewest most probable tokens whose probabilities reach `mass` (0 < mass <= 1)."""
    order = np.argsort(-logits, kind="stable")
    reached = np.cumsum(probabilities(logits)[order])
    return _keep(logits, order[: int(np.searchsorted(reached, mass * reached[-1])) + 1])


def min_p(logits: Logits, share: float) -> Logits:
    """Cut tokens less probable than `share` (0 to 1) of the most probable one."""
    if share == 0.0:
        return logits
    return np.where(logits < logits.max() + np.log(share), -np.inf, logits)


def probabilities(logits: Logits) -> Logits:
    """Softmax: float64 [V], which sums to 1."""
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())


def _keep(logits: Logits, ids: NDArray[np.intp]) -> Logits:
    result = np.full_like(logits, -np.inf)
    result[ids] = logits[ids]
    return result
