"""Probabilities of a token under the model and under the mask, and the probability mass that the mask removes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guideway import masks
from guideway.errors import InvalidLogitsError
from guideway.sampling.native import shares_native

__all__ = ["TokenAlternative", "TokenLogprobs", "log_softmax", "report"]


class TokenAlternative(NamedTuple):
    """One of the most probable tokens: its probability under the model, and whether the mask allows it."""

    token_id: int
    probability: float
    allowed: bool


class TokenLogprobs(NamedTuple):
    """Log-probabilities and most probable alternatives for one token of an output.

    Attributes:
        token_id: The token.
        logprob: Natural logarithm of the probability under the model, at temperature 1.
        mask_logprob: The log-probability of the token, normalised over the allowed tokens.
        masked_mass: Total probability of the tokens that are not allowed, under the model.
        forced: Whether it was the only allowed token.
        alternatives: The most probable tokens, allowed or not. The token itself may be among them.
    """

    token_id: int
    logprob: float
    mask_logprob: float
    masked_mass: float
    forced: bool
    alternatives: tuple[TokenAlternative, ...] = ()


def log_softmax(logits: NDArray[Any], temperature: float = 1.0) -> NDArray[np.float64]:
    """Return the log-probabilities of all tokens, float64, shape [V]. The logits are divided by `temperature` first.

    Raises:
        InvalidLogitsError: A logit is NaN or +inf, or all logits are -inf.
    """
    values = logits.astype(np.float64)
    best = int(values.argmax())  # argmax returns the index of a NaN if there is one
    if not np.isfinite(values[best]):
        raise InvalidLogitsError(f"the logit of token {best} must be finite for log-probabilities, got {values[best]}")
    values = (values - values[best]) / temperature
    return np.asarray(values - np.log(np.exp(values).sum()))


def report(
    logits: NDArray[Any], mask: NDArray[np.uint32] | None, token_id: int, *, forced: bool = False, count: int = 0
) -> TokenLogprobs:
    """Return the `TokenLogprobs` of one token. The logits must be finite or -inf, and not all -inf.

    Args:
        logits: Floating, shape [V].
        mask: Bits of the allowed tokens; None allows all.
        token_id: The token.
        forced: Whether it was the only allowed token.
        count: Number of most probable tokens to return, allowed or not.
    """
    logprob, mask_logprob, removed = shares_native(logits, mask, token_id) or _shares(logits, mask, token_id)
    best = np.argsort(-logits, kind="stable")[:count] if count else np.empty(0, dtype=np.intp)
    own = float(logits[token_id])
    allowed = np.ones(best.size, dtype=bool) if mask is None else masks.unpack(mask, logits.size)[best]
    shares = np.exp(logits[best].astype(np.float64) - own + logprob)
    named = tuple(
        TokenAlternative(int(i), float(share), bool(legal))
        for i, share, legal in zip(best, shares, allowed, strict=True)
    )
    return TokenLogprobs(int(token_id), logprob, mask_logprob, removed, forced, named)


def _shares(logits: NDArray[Any], mask: NDArray[np.uint32] | None, token_id: int) -> tuple[float, float, float]:
    """Return `logprob`, `mask_logprob` and `masked_mass` of `TokenLogprobs`."""
    values = logits.astype(np.float64)
    top = float(values.max())
    weights = np.exp(values - top)
    total = float(weights.sum())
    own = float(values[token_id])
    logprob = own - top - math.log(total)
    if mask is None:
        return logprob, logprob, 0.0
    allowed = masks.ids(mask, values.size)
    highest = float(values[allowed].max())
    mask_logprob = own - highest - math.log(float(np.exp(values[allowed] - highest).sum()))
    legal = float(weights[allowed].sum())
    removed = max(0.0, 1.0 - legal / total) if legal * 2 < total else _mass_outside(weights, allowed, total)
    return logprob, mask_logprob, removed


def _mass_outside(weights: NDArray[np.float64], allowed: NDArray[np.intp], total: float) -> float:
    """Return the probability outside the mask as a sum.

    The difference of 1 and the probability inside the mask would have a large relative error if the result is small.
    """
    outside = weights.copy()
    outside[allowed] = 0.0
    return float(outside.sum()) / total
