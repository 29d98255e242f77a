"""The draw on PyTorch logits, on their device: the stages of `stages.py` and `repeats.py` for tensors.

Logits have the shape [V], with -inf for tokens that are not allowed. They are float64, on MPS float32. Penalties are
computed on the CPU, for the affected tokens only. The drawn token id is copied from the device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from guideway import masks
from guideway.errors import InvalidLogitsError, NoAllowedTokenError
from guideway.sampling import repeats
from guideway.sampling.mirostat import count_of
from guideway.sampling.random import XTC_STREAM, number_of, uniform
from guideway.sampling.sampler import KINDS, Sampler, Stage

__all__ = ["draw_torch"]

_NEVER = -math.inf
_TINY = float(np.finfo(np.float64).tiny)


def draw_torch(
    sampler: Sampler,
    logits: torch.Tensor,
    mask: NDArray[np.uint32] | None,
    tokens: Sequence[int],
    place: tuple[int, int, int],
    attempt: int,
    memory: float | None,
) -> tuple[int, float | None]:
    """Draw a token as `chain.draw_at` does. Returns the token and the `memory` of `Drawn`."""
    left = logits.detach().to(torch.float32 if logits.device.type == "mps" else torch.float64)
    if mask is not None:
        allowed = torch.from_numpy(masks.unpack(mask, left.numel())).to(left.device)
        left = left.masked_fill(~allowed, _NEVER)
    top = _largest(left, "the mask is empty, or every logit is -inf")
    if sampler.bare or top == math.inf:
        return _first(left == top), memory
    for stage in sampler.stages:
        left = _staged(sampler, stage, left, tokens, place)
        _largest(left, f"the stage {_name(stage)} removed the last one, or returned NaN")
    if not sampler.temperature:
        return _first(left == left.max()), memory
    number = number_of(*place, attempt)
    if sampler.mirostat is None:
        return _pick(left, number), memory
    limit = 2 * sampler.mirostat.target if memory is None else memory
    share = _shares(left)
    drawn = _pick(_surprising(left, share, sampler.mirostat.version, limit), number)
    surprise = -math.log2(max(float(share[drawn]), _TINY))
    return drawn, limit - sampler.mirostat.rate * (surprise - sampler.mirostat.target)


def _staged(
    sampler: Sampler, stage: str | Stage, left: torch.Tensor, tokens: Sequence[int], place: tuple[int, int, int]
) -> torch.Tensor:
    if not isinstance(stage, str):
        given = np.array(stage(tuple(tokens), left.cpu().numpy().astype(np.float64)), dtype=np.float64)
        if given.shape != tuple(left.shape):
            raise ValueError(
                f"the stage {_name(stage)} must return logits of shape {tuple(left.shape)}, got {given.shape}"
            )
        return torch.where(left > _NEVER, torch.from_numpy(given).to(left), _NEVER)
    kind = KINDS[stage]
    if kind in ("cut", "temperature"):
        return _CUTTING[stage](left, getattr(sampler, stage))
    if kind == "xtc":
        return _xtc(left, sampler.xtc_threshold) if uniform(*place, XTC_STREAM) < sampler.xtc_probability else left
    if kind == "mirostat":
        return left
    return _changed(sampler, stage, kind, left, tokens)


def _changed(sampler: Sampler, stage: str, kind: str, left: torch.Tensor, tokens: Sequence[int]) -> torch.Tensor:
    """Apply a stage that changes few logits: copy these logits to the CPU, change them with NumPy, and copy them back."""
    if kind == "bias":
        touched = np.array([token_id for token_id, _ in sampler.biases], dtype=np.intp)
    else:
        touched = np.unique(np.array(tokens, dtype=np.intp))
    touched = touched[touched < left.numel()]
    at = torch.from_numpy(touched).to(left.device)
    there = left[at].cpu().numpy().astype(np.float64)
    if kind == "bias":
        there = repeats.logit_bias(touched, there, sampler.biases)
    elif kind == "dry" and sampler.dry is not None:
        there = repeats.dry(touched, there, np.array(tokens, dtype=np.int64), sampler.dry)
    elif kind == "penalty":
        before = np.array(tokens[-sampler.penalty_window :], dtype=np.int64)
        there = getattr(repeats, stage)(touched, there, before, getattr(sampler, stage))
    return left.index_copy(0, at, torch.from_numpy(there).to(left))


def _largest(left: torch.Tensor, why: str) -> float:
    """Return the largest logit. Raises `NoAllowedTokenError` if all are -inf, `InvalidLogitsError` if one is NaN.

    `why`: the reason of the first error, for its message.
    """
    top = float(left.max()) if left.numel() else _NEVER
    if math.isnan(top):
        raise InvalidLogitsError(f"the logit of token {_first(left.isnan())} is NaN")
    if top == _NEVER:
        raise NoAllowedTokenError(f"no token is allowed: {why}")
    return top


def _first(found: torch.Tensor) -> int:
    return int(found.nonzero()[0])


def _pick(left: torch.Tensor, number: float) -> int:
    reached = torch.exp(left - left.max()).cumsum(0)
    drawn = int(torch.searchsorted(reached, number * float(reached[-1]), right=True))
    return drawn if drawn < left.numel() else int(torch.searchsorted(reached, float(reached[-1])))


def _shares(left: torch.Tensor) -> torch.Tensor:
    return torch.softmax(left, 0)


def _keep(left: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return torch.full_like(left, _NEVER).index_copy(0, ids, left[ids])


def _ranked(key: torch.Tensor) -> torch.Tensor:
    """Return the indexes of the values in descending order of the values; of equal values the lower index first."""
    return torch.sort(key, descending=True, stable=True).indices


def _reaching(share: torch.Tensor, mass: float) -> int:
    """Return the smallest number of first items whose sum is at least `mass`."""
    return int(torch.searchsorted(share.cumsum(0), mass)) + 1


def _temperature(left: torch.Tensor, value: float) -> torch.Tensor:
    return (left - left.max()) / value


def _top_k(left: torch.Tensor, count: int) -> torch.Tensor:
    return left if count >= left.numel() else _keep(left, _ranked(left)[:count])


def _top_p(left: torch.Tensor, mass: float) -> torch.Tensor:
    order = _ranked(left)
    return _keep(left, order[: _reaching(_shares(left)[order], mass)])


def _min_p(left: torch.Tensor, share: float) -> torch.Tensor:
    return left.masked_fill(left < left.max() + math.log(share), _NEVER)


def _typical_p(left: torch.Tensor, mass: float) -> torch.Tensor:
    share = _shares(left)
    surprise = -share.log()
    entropy = torch.where(share > 0, share * surprise, 0.0).sum()
    order = _ranked(torch.where(share > 0, -(surprise - entropy).abs(), _NEVER))
    return _keep(left, order[: _reaching(share[order], mass)])


def _top_a(left: torch.Tensor, factor: float) -> torch.Tensor:
    share = _shares(left)
    return left.masked_fill(share < factor * share.max() ** 2, _NEVER)


def _tail_free(left: torch.Tensor, mass: float) -> torch.Tensor:
    order = _ranked(left)[: int((left > _NEVER).sum())]
    if order.numel() < 3:
        return left
    bend = torch.diff(_shares(left)[order], n=2).abs()
    total = bend.sum()
    if total <= 0:
        return left
    return _keep(left, order[: 1 + int(((bend / total).cumsum(0) <= mass).sum())])


def _top_n_sigma(left: torch.Tensor, count: float) -> torch.Tensor:
    live = left[left > _NEVER]
    return left.masked_fill(left < live.max() - count * live.std(correction=0), _NEVER)


def _xtc(left: torch.Tensor, threshold: float) -> torch.Tensor:
    share = _shares(left)
    above = (share >= threshold).nonzero().flatten()
    if above.numel() < 2:
        return left
    return left.index_fill(0, above[_ranked(share[above])[:-1]], _NEVER)


def _surprising(left: torch.Tensor, share: torch.Tensor, version: int, limit: float) -> torch.Tensor:
    """Remove tokens as `Mirostat.cut` (`mirostat.py`) does.

    Version 1 keeps a number of most probable tokens that follows from `limit`. Version 2 removes tokens whose surprisal
    (-log2 of the probability) exceeds `limit`.
    """
    if version == 1:
        return _top_k(left, count_of(share[left > _NEVER].cpu().numpy().astype(np.float64), limit))
    bits = -share.clamp_min(_TINY).log2()
    return left.masked_fill((bits > limit) & (left < left.max()), _NEVER)


def _name(stage: str | Stage) -> str:
    return stage if isinstance(stage, str) else getattr(stage, "__name__", repr(stage))


_CUTTING = {
    "temperature": _temperature,
    "top_k": _top_k,
    "top_p": _top_p,
    "min_p": _min_p,
    "typical_p": _typical_p,
    "top_a": _top_a,
    "tail_free": _tail_free,
    "top_n_sigma": _top_n_sigma,
}
