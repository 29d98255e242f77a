"""One draw: the allowed tokens' logits through the stages of a `Sampler`, and a token at random.

`draw` is the only door. Where it can, it has the kernel do it (`native.py`), and PyTorch where logits are a tensor
(`torch.py`), which give the same tokens; here is what does the rest, and says what each stage means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guideway import masks
from guideway.errors import InvalidLogitsError, NoAllowedTokenError
from guideway.sampling import repeats, stages
from guideway.sampling.native import draw_native
from guideway.sampling.random import XTC_STREAM, number_of, uniform
from guideway.sampling.sampler import KINDS, Sampler, Stage

__all__ = ["Drawn", "draw", "draw_at"]

Logits = NDArray[np.float64]
Ids = NDArray[np.intp]


class Drawn(NamedTuple):
    """The token, and what the sampler remembers for the next draw (mirostat's limit; else None)."""

    token_id: int
    memory: float | None


def draw(
    sampler: Sampler,
    logits: Any,
    mask: NDArray[np.uint32] | None = None,
    *,
    tokens: Sequence[int] = (),
    seed: int = 0,
    row: int = 0,
    position: int = 0,
    attempt: int = 0,
    memory: float | None = None,
) -> Drawn:
    """The token for these logits.

    `logits`: floating [V], -inf for what is not allowed; not changed; an array of NumPy, or a tensor of PyTorch, which
    is drawn from on its device. `mask`: bits of the allowed tokens, uint32
    [ceil(V / 32)]; None: all. `tokens`: what came before, for penalties. `attempt`: 1, 2, … where draws before at this
    position were taken back. The same arguments give the same token.
    Raises `InvalidLogitsError` or `NoAllowedTokenError` where no token is allowed or a logit is NaN.
    """
    return draw_at(sampler, logits, mask, tokens, (seed, row, position), attempt, memory)


def draw_at(
    sampler: Sampler,
    logits: Any,
    mask: NDArray[np.uint32] | None,
    tokens: Sequence[int],
    place: tuple[int, int, int],
    attempt: int,
    memory: float | None,
) -> Drawn:
    """`draw`, with seed, row and position as one."""
    if not isinstance(logits, np.ndarray):
        from guideway.sampling.torch import draw_torch

        return Drawn(*draw_torch(sampler, logits, mask, tokens, place, attempt, memory))
    quick = draw_native(sampler, logits, mask, tokens, place, attempt)
    if quick is not None:
        return Drawn(quick, memory)
    ids: Ids | None = None if mask is None else masks.ids(mask, logits.size)
    allowed = logits if ids is None else logits[ids]
    if not allowed.size:
        raise NoAllowedTokenError("no token is allowed: the mask is empty")
    best = int(allowed.argmax())  # NaN wins an argmax, so one look finds both faults
    top = float(allowed[best])
    if math.isnan(top):
        raise InvalidLogitsError(f"the logit of token {best if ids is None else int(ids[best])} is NaN")
    if top == -math.inf:
        raise NoAllowedTokenError("no token is allowed: every logit is -inf")
    if sampler.bare or top == math.inf:
        return Drawn(best if ids is None else int(ids[best]), memory)
    live = np.flatnonzero(allowed > -np.inf)
    ids = live if ids is None else ids[live]
    left = _staged(sampler, ids, allowed[live].astype(np.float64), tokens, logits.size, place, memory)
    if not sampler.temperature:
        return Drawn(int(ids[int(left.argmax())]), memory)
    number = number_of(*place, attempt)
    if sampler.mirostat is None:
        return Drawn(int(ids[_pick(left, number)]), memory)
    limit = 2 * sampler.mirostat.target if memory is None else memory
    at = _pick(sampler.mirostat.cut(left, limit), number)
    return Drawn(int(ids[at]), sampler.mirostat.learned(left, at, limit))


def _staged(
    sampler: Sampler,
    ids: Ids,
    left: Logits,
    tokens: Sequence[int],
    width: int,
    place: tuple[int, int, int],
    memory: float | None,
) -> Logits:
    """The logits after all stages but mirostat, which cuts where it draws."""
    for stage in sampler.stages:
        kind = KINDS[stage] if isinstance(stage, str) else "own"
        if not isinstance(stage, str):
            left = _own(stage, ids, left, tokens, width)
        elif kind in ("cut", "heat"):
            left = getattr(stages, stage)(left, getattr(sampler, stage))
        elif kind == "bias":
            left = repeats.logit_bias(ids, left, sampler.biases)
        elif kind == "xtc":
            if uniform(*place, XTC_STREAM) < sampler.xtc_probability:
                left = stages.xtc(left, sampler.xtc_threshold)
        elif kind == "dry" and sampler.dry is not None:
            left = repeats.dry(ids, left, np.array(tokens, dtype=np.int64), sampler.dry)
        elif kind == "penalty":
            before = np.array(tokens[-sampler.penalty_window :], dtype=np.int64)
            left = getattr(repeats, stage)(ids, left, before, getattr(sampler, stage))
        if not left.max() > -np.inf:
            raise NoAllowedTokenError(f"no token is allowed: {_name(stage)} cut the last one, or gave NaN")
    return left


def _own(stage: Stage, ids: Ids, left: Logits, tokens: Sequence[int], width: int) -> Logits:
    """A stage of the user's, over the whole vocabulary."""
    full = np.full(width, -np.inf)
    full[ids] = left
    given = np.asarray(stage(tuple(tokens), full), dtype=np.float64)
    if given.shape != (width,):
        raise ValueError(f"{_name(stage)} gave logits of the shape {given.shape}, not ({width},)")
    return np.where(left > -np.inf, given[ids], -np.inf)


def _name(stage: str | Stage) -> str:
    return stage if isinstance(stage, str) else getattr(stage, "__name__", repr(stage))


def _pick(left: Logits, number: float) -> int:
    """The place that a number in [0, 1) falls on, by cumulated softmax weights in the order of ids."""
    reached = np.cumsum(np.exp(left - left.max()))
    drawn = int(np.searchsorted(reached, number * reached[-1], side="right"))
    if drawn == reached.size:  # rounding put the draw on the last edge: the last token that has any share
        drawn = int(np.searchsorted(reached, reached[-1]))
    return drawn
