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
    """Divide by the temperature (> 0): below 1 sharpens, above 1 flattens. The largest becomes 0."""
    return np.asarray((logits - logits.max()) / value)  # the maximum first: a tiny temperature must not overflow


def top_k(logits: Logits, count: int) -> Logits:
    """Keep the `count` (>= 1) most probable tokens."""
    if count >= logits.size:
        return logits
    return _keep(logits, _best(logits, count))


def top_p(logits: Logits, mass: float) -> Logits:
    """Keep the fewest most probable tokens whose probabilities reach `mass` (0 < mass <= 1)."""
    share = probabilities(logits)
    for count in (64, 1024, logits.size):  # the mass lies mostly in few tokens: sorting all of them is rarely needed
        order = _best(logits, min(count, logits.size))
        reached = np.cumsum(share[order])
        if reached[-1] >= mass or order.size == logits.size:
            break
    return _keep(logits, order[: int(np.searchsorted(reached, mass)) + 1])


def min_p(logits: Logits, share: float) -> Logits:
    """Cut tokens less probable than `share` (0 to 1) of the most probable one."""
    if share == 0.0:
        return logits
    return np.where(logits < logits.max() + np.log(share), -np.inf, logits)


def probabilities(logits: Logits) -> Logits:
    """Softmax: float64 [V], which sums to 1."""
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())


def _best(logits: Logits, count: int) -> NDArray[np.intp]:
    """The ids of the `count` largest, largest first, and of equals the lower id first."""
    if count < logits.size:
        edge = np.partition(logits, logits.size - count)[logits.size - count]
        above = np.flatnonzero(logits > edge)
        ids = np.concatenate([above, np.flatnonzero(logits == edge)[: count - above.size]])
    else:
        ids = np.arange(logits.size)
    return ids[np.argsort(-logits[ids], kind="stable")]


def _keep(logits: Logits, ids: NDArray[np.intp]) -> Logits:
    result = np.full_like(logits, -np.inf)
    result[ids] = logits[ids]
    return result
