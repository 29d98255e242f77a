"""Stages that truncate, and temperature. Each function takes logits and returns new logits.

Logits are float64, shape [n], for the allowed tokens by ascending id; removed tokens have -inf. Of equal logits the
lower id is kept first, so equal logits give equal tokens on every engine. Only `typical_p` and `xtc` can remove the
most probable token.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "min_p",
    "probabilities",
    "tail_free",
    "temperature",
    "top_a",
    "top_k",
    "top_n_sigma",
    "top_p",
    "typical_p",
    "xtc",
]

Logits = NDArray[np.float64]


def temperature(logits: Logits, value: float) -> Logits:
    """Divide by the temperature (> 0). The largest logit becomes 0."""
    return np.asarray((logits - logits.max()) / value)  # subtracting the maximum first avoids overflow


def top_k(logits: Logits, count: int) -> Logits:
    """Keep the `count` (>= 1) most probable tokens (Fan, Lewis, Dauphin 2018)."""
    if count >= logits.size:
        return logits
    return _keep(logits, _best(logits, count))


def top_p(logits: Logits, mass: float) -> Logits:
    """Keep the fewest most probable tokens whose probabilities reach `mass` in (0, 1] (Holtzman et al. 2020)."""
    share = probabilities(logits)
    for count in (64, 1024, logits.size):  # a few tokens usually reach `mass`, so a full sort is rarely needed
        order = _best(logits, min(count, logits.size))
        reached = np.cumsum(share[order])
        if reached[-1] >= mass or order.size == logits.size:
            break
    return _keep(logits, order[: int(np.searchsorted(reached, mass)) + 1])


def min_p(logits: Logits, share: float) -> Logits:
    """Remove tokens with a probability below `share` in [0, 1] of the largest one (Nguyen et al. 2024)."""
    if share == 0.0:
        return logits
    return np.where(logits < logits.max() + np.log(share), -np.inf, logits)


def typical_p(logits: Logits, mass: float) -> Logits:
    """Keep the tokens whose surprise is nearest to the entropy, until their total probability reaches `mass` in (0, 1).

    Locally typical sampling (Meister et al. 2023). It can remove the most probable token.
    """
    share = probabilities(logits)
    surprise = -np.log(share, out=np.full(share.shape, -np.inf), where=share > 0)
    entropy = float(share @ np.where(share > 0, surprise, 0.0))
    distance = np.where(share > 0, np.abs(surprise - entropy), np.inf)
    order = np.argsort(distance, kind="stable")
    return _keep(logits, order[: int(np.searchsorted(np.cumsum(share[order]), mass)) + 1])


def top_a(logits: Logits, factor: float) -> Logits:
    """Remove tokens with p < `factor` * (largest p) squared, `factor` in (0, 1] (BlinkDL, RWKV-LM, 2022)."""
    share = probabilities(logits)
    return np.where(share < factor * share.max() ** 2, -np.inf, logits)


def tail_free(logits: Logits, mass: float) -> Logits:
    """Remove the tail where the curve of sorted probabilities flattens (Phénix and Egan 2019).

    The absolute second differences of the sorted probabilities are normalised and summed up to `mass` in (0, 1). The
    tokens after that are removed, and always the last one. With fewer than three tokens, or if the sorted probabilities
    are on a straight line, nothing is removed.
    """
    live = np.flatnonzero(logits > -np.inf)
    if live.size < 3:
        return logits
    order = live[np.argsort(-logits[live], kind="stable")]
    bend = np.abs(np.diff(probabilities(logits)[order], n=2))
    total = bend.sum()
    if total <= 0:  # a straight line: no tail
        return logits
    within = np.cumsum(bend / total) <= mass
    return _keep(logits, order[: 1 + int(np.count_nonzero(within))])


def top_n_sigma(logits: Logits, count: float) -> Logits:
    """Keep logits within `count` (> 0) standard deviations of the largest (Tang et al. 2024)."""
    live = logits[logits > -np.inf]
    return np.where(logits < live.max() - count * live.std(), -np.inf, logits)


def xtc(logits: Logits, threshold: float) -> Logits:
    """Exclude top choices: of the tokens with p >= `threshold` in (0, 0.5], keep only the least probable.

    With fewer than two such tokens nothing is removed (Weidmann, text-generation-webui, 2024). Of equal tokens the
    lower id counts as more probable.
    """
    share = probabilities(logits)
    above = np.flatnonzero(share >= threshold)
    if above.size < 2:
        return logits
    order = above[np.argsort(-share[above], kind="stable")]
    cut: Logits = logits.copy()
    cut[order[:-1]] = -np.inf
    return cut


def probabilities(logits: Logits) -> Logits:
    """Return the softmax, float64, shape [n]."""
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())


def _best(logits: Logits, count: int) -> NDArray[np.intp]:
    """Return the indexes of the `count` largest logits, the largest first; of equal logits the lower index first."""
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
