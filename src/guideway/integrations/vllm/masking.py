"""Masks over the logits of some rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from guideway.errors import NoAllowedTokenError
from guideway.integrations._common import Follower
from guideway.masks import Row
from guideway.masks.torch import TorchMasks

__all__ = ["mask"]

_apply = TorchMasks(in_place=True)


def mask(logits: torch.Tensor, places: Sequence[int], rows: Row, followers: Sequence[Follower]) -> None:
    """Mask `logits` [batch, vocabulary] in place: row `places[i]` by `rows[i]`, uint32 [rows, words].

    Where something else left nothing that is legal, the text may end, and the follower keeps the error: at once on a
    CPU; elsewhere that would be waiting for the device, and the next step tells by the token that was drawn.
    """
    whole = len(places) == len(logits) and all(place == index for index, place in enumerate(places))
    index = torch.tensor(places, device=logits.device)
    chosen = logits if whole else logits[index]
    made, nothing = _apply(chosen, rows, [True] * len(places))
    for row in nothing:
        followers[row].fail(NoAllowedTokenError("nothing is left to draw: another processor forbids all that is legal"))
        made[row, list(followers[row].end_ids)] = 0.0
    if made is not logits:
        logits[index] = made
