"""One draw: applies the stages of a `Sampler` to the logits of the allowed tokens, and draws a token.

`draw` uses the kernel if it supports the stages (`native.py`). The NumPy code in this module is the reference, with
which tests compare the tokens of the kernel.
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
from guideway.sampling.device_rows import DeviceRow, on_cpu
from guideway.sampling.native import draw_native
from guideway.sampling.random import XTC_STREAM, number_of, uniform
from guideway.sampling.sampler import KINDS, Sampler, Stage

__all__ = ["Drawn", "draw", "draw_at"]

Logits = NDArray[np.float64]
Ids = NDArray[np.intp]


class Drawn(NamedTuple):
    """A drawn token.

    Attributes:
        token_id: The token.
        memory: State for the next draw: mu of Mirostat. For other samplers, the `memory` that was given.
    """

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
    """Draw a token. Equal arguments give equal tokens.

    Args:
        sampler: The sampler.
        logits: Floating, shape [V]; -inf for tokens that are not allowed. Not modified. A NumPy array, or a PyTorch
            tensor, which is copied to the CPU.
        mask: Bits of the allowed tokens, uint32, shape [ceil(V / 32)]; None allows all.
        tokens: The tokens so far, for penalties.
        seed: Random seed.
        row: Number of the sequence. The random number depends on seed, row, position and attempt.
        position: Position in the sequence.
        attempt: Number of earlier draws at this position that were rejected.
        memory: `Drawn.memory` of the previous draw; None: there was none.

    Raises:
        InvalidLogitsError: The logit of an allowed token is NaN.
        NoAllowedTokenError: No token is allowed, or the stages removed all tokens.
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
    """Draw a token as `draw` does. `place`: (seed, row, position). Raises the errors of `draw`."""
    if not isinstance(logits, np.ndarray):
        logits = logits.array() if isinstance(logits, DeviceRow) else on_cpu(logits)
    quick = draw_native(sampler, logits, mask, tokens, place, attempt)
    if quick is not None:
        return Drawn(quick, memory)
    ids: Ids | None = None if mask is None else masks.ids(mask, logits.size)
    allowed = logits if ids is None else logits[ids]
    if not allowed.size:
        raise NoAllowedTokenError("no token is allowed: the mask is empty")
    best = int(allowed.argmax())  # argmax returns the index of a NaN if there is one, so one call finds both errors
    top = float(allowed[best])
    if math.isnan(top):
        raise InvalidLogitsError(f"the logit of token {best if ids is None else int(ids[best])} is NaN")
    if top == -math.inf:
        raise NoAllowedTokenError("no token is allowed: every logit is -inf")
    if sampler.bare or top == math.inf:
        return Drawn(best if ids is None else int(ids[best]), memory)
    live = np.flatnonzero(allowed > -np.inf)
    ids = live if ids is None else ids[live]
    left = _staged(sampler, ids, allowed[live].astype(np.float64), tokens, logits.size, place)
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
) -> Logits:
    """Return the logits after all stages except Mirostat, which truncates during the draw.

    `ids`, `left`: the ids of the tokens that are not excluded, and their logits. `width`: the size of the vocabulary.
    """
    for stage in sampler.stages:
        kind = KINDS[stage] if isinstance(stage, str) else "own"
        if not isinstance(stage, str):
            left = _own(stage, ids, left, tokens, width)
        elif kind in ("cut", "temperature"):
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
            raise NoAllowedTokenError(
                f"no token is allowed: the stage {_name(stage)} removed the last one, or returned NaN"
            )
    return left


def _own(stage: Stage, ids: Ids, left: Logits, tokens: Sequence[int], width: int) -> Logits:
    """Apply a user-defined stage, which gets the logits of the whole vocabulary. Returns the new logits of `ids`."""
    full = np.full(width, -np.inf)
    full[ids] = left
    given = np.asarray(stage(tuple(tokens), full), dtype=np.float64)
    if given.shape != (width,):
        raise ValueError(f"the stage {_name(stage)} must return logits of shape ({width},), got {given.shape}")
    return np.where(left > -np.inf, given[ids], -np.inf)


def _name(stage: str | Stage) -> str:
    return stage if isinstance(stage, str) else getattr(stage, "__name__", repr(stage))


def _pick(left: Logits, number: float) -> int:
    """Return the first index at which the cumulative softmax, in order of ids, exceeds `number` in [0, 1)."""
    reached = np.cumsum(np.exp(left - left.max()))
    drawn = int(np.searchsorted(reached, number * reached[-1], side="right"))
    if drawn == reached.size:  # a rounding error: take the last token with a non-zero probability
        drawn = int(np.searchsorted(reached, reached[-1]))
    return drawn
