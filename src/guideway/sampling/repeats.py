"""Sampling stages that change logits: penalties and DRY, which depend on earlier tokens, and logit bias.

Each function takes the ids (ascending) and logits (float64, shape [n]) of the allowed tokens, and, except for
`logit_bias`, earlier tokens (int64, shape [T], including the prompt). It returns new logits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guideway.arguments import short_repr
from guideway.sampling.checks import is_finite, is_number

__all__ = [
    "Dry",
    "dry",
    "frequency_penalty",
    "logit_bias",
    "presence_penalty",
    "repetition_penalty",
]

Ids = NDArray[np.intp]
Logits = NDArray[np.float64]
Tokens = NDArray[np.int64]

LONGEST = 64
"""Repetitions are measured up to this length in tokens, which bounds the time."""


@dataclass(frozen=True)
class Dry:
    """Parameters of DRY, "don't repeat yourself" (Weidmann, text-generation-webui, 2024).

    A token that would extend a repetition of n earlier tokens is penalised by
    `multiplier` * `base` ** (n - `allowed_length`), for n >= `allowed_length`. n is measured up to 64.

    Args:
        multiplier: Scale of the penalty.
        base: Growth of the penalty per token, 1 to 16.
        allowed_length: Shortest length of a repetition that is penalised.
        breakers: Token ids that end a repetition.
        window: Number of last tokens in which repetitions are searched for; 0: all.

    Raises:
        ValueError: A parameter is out of range.
        TypeError: A parameter is no number, or `breakers` is not iterable.
    """

    multiplier: float = 0.8
    base: float = 1.75
    allowed_length: int = 2
    breakers: tuple[int, ...] = ()
    window: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.breakers, Iterable):
            raise TypeError(f"dry: breakers must be token ids, got {short_repr(self.breakers)}")
        object.__setattr__(self, "breakers", tuple(self.breakers))
        counts = (self.allowed_length, self.window, *self.breakers)
        for value in (self.multiplier, self.base, *counts):
            if not is_number(value):
                raise TypeError(f"dry: expected a number, got {short_repr(value)}")
        if not (is_finite(self.multiplier) and self.multiplier >= 0 and 1 <= self.base <= 16):
            given = f"{short_repr(self.multiplier)} and {short_repr(self.base)}"
            raise ValueError(f"dry: expected multiplier >= 0 and base in 1..16, got {given}")
        for count in counts:
            if not is_finite(count) or int(count) != count:
                given = short_repr(count)
                raise ValueError(f"dry: allowed_length, window and breakers must be integers, got {given}")
        object.__setattr__(self, "allowed_length", int(self.allowed_length))
        object.__setattr__(self, "window", int(self.window))
        if self.allowed_length < 1 or self.window < 0:
            given = f"{short_repr(self.allowed_length)} and {short_repr(self.window)}"
            raise ValueError(f"dry: expected allowed_length >= 1 and window >= 0, got {given}")


def logit_bias(ids: Ids, logits: Logits, biases: tuple[tuple[int, float], ...]) -> Logits:
    """Add a bias to the logits of tokens; -inf forbids a token."""
    wanted = np.array([token_id for token_id, _ in biases], dtype=np.intp)
    at, there = _places(ids, wanted)
    changed: Logits = logits.copy()
    np.add.at(changed, at, np.array([bias for _, bias in biases])[there])
    return changed


def repetition_penalty(ids: Ids, logits: Logits, tokens: Tokens, penalty: float) -> Logits:
    """Divide positive logits of tokens that occur in `tokens` by `penalty`, and multiply negative ones by it.

    See Keskar et al. 2019.
    """
    at, _ = _places(ids, np.unique(tokens))
    changed: Logits = logits.copy()
    changed[at] = np.where(logits[at] > 0, logits[at] / penalty, logits[at] * penalty)
    return changed


def presence_penalty(ids: Ids, logits: Logits, tokens: Tokens, penalty: float) -> Logits:
    """Subtract `penalty` from the logits of tokens that occur in `tokens`."""
    at, _ = _places(ids, np.unique(tokens))
    changed: Logits = logits.copy()
    changed[at] -= penalty
    return changed


def frequency_penalty(ids: Ids, logits: Logits, tokens: Tokens, penalty: float) -> Logits:
    """Subtract `penalty` from the logit of a token for each of its occurrences in `tokens`."""
    seen, counts = np.unique(tokens, return_counts=True)
    at, there = _places(ids, seen)
    changed: Logits = logits.copy()
    changed[at] -= penalty * counts[there]
    return changed


def dry(ids: Ids, logits: Logits, tokens: Tokens, settings: Dry) -> Logits:
    """Penalise tokens that would extend a repetition; see `Dry`."""
    back = tokens[::-1] if not settings.window else tokens[::-1][: settings.window]  # newest first
    broken = np.isin(back, settings.breakers) if settings.breakers else np.zeros(back.size, dtype=bool)
    limit = min(LONGEST, int(broken.argmax()) if broken.any() else back.size)
    earlier = np.flatnonzero(back[1:] == back[0]) + 1 if limit else np.empty(0, dtype=np.intp)
    earlier = earlier[~broken[earlier - 1]]  # breakers are never penalised
    lengths = np.ones(earlier.size, dtype=np.intp)
    going = np.arange(earlier.size)
    for length in range(1, limit):
        going = going[earlier[going] + length < back.size]
        going = going[back[earlier[going] + length] == back[length]]
        if not going.size:
            break
        lengths[going] = length + 1
    longest: dict[int, int] = {}
    for token_id, length in zip(back[earlier - 1].tolist(), lengths.tolist(), strict=True):
        longest[token_id] = max(length, longest.get(token_id, 0))
    cost = {t: settings.multiplier * settings.base ** (n - settings.allowed_length) for t, n in longest.items()}
    return logit_bias(ids, logits, tuple((t, -cost[t]) for t, n in longest.items() if n >= settings.allowed_length))


def _places(ids: Ids, wanted: NDArray[np.integer]) -> tuple[Ids, Ids]:
    """Return where wanted ids occur in `ids`, which are ascending: their indexes there, and their indexes in `wanted`."""
    if not ids.size:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    at = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
    there = np.flatnonzero(ids[at] == wanted)
    return at[there], there
