"""Masks over the logits of some rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from guideway.engines.follower import Follower
from guideway.errors import EngineError
from guideway.masks import Row
from guideway.masks.torch import masked

__all__ = ["mask"]


def mask(logits: torch.Tensor, places: Sequence[int], rows: Row, followers: Sequence[Follower]) -> None:
    """Mask `logits` [batch, vocabulary] in place: row `places[i]` by `rows[i]`, uint32 [rows, words].

    Where something else left nothing that is legal, the text may end, and the follower keeps the error.
    """
    whole = len(places) == len(logits) and all(place == index for index, place in enumerate(places))
    index = torch.tensor(places, device=logits.device)
    chosen = logits if whole else logits[index]
    made, nothing = masked(chosen, rows, [True] * len(places), in_place=True)
    for row in nothing:
        followers[row].fail(EngineError("nothing is left to draw: another processor forbids all that is legal"))
        made[row, list(followers[row].end_ids)] = 0.0
    if made is not logits:
        logits[index] = made
