"""`mask`: applies masks to some rows of a batch of logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from guideway.integrations._common import Follower, no_token_left
from guideway.masks import Row
from guideway.masks.torch import TorchMasks

__all__ = ["mask"]

_apply = TorchMasks(in_place=True)


def mask(logits: torch.Tensor, places: Sequence[int], rows: Row, followers: Sequence[Follower]) -> None:
    """Mask rows of logits in place.

    If no allowed token is left in a row (because of other options of the request), the follower stores the error. On a
    CPU this is detected at once. On other devices, detection would have to wait for the device; there the next step
    detects it, because the sampled token is illegal. After an error, only the end tokens are allowed, even if other
    options of the request forbid them.

    Args:
        logits: The logits, floating point [batch, vocabulary].
        places: For each mask, the number of its row in `logits`.
        rows: The masks, uint32 [len(places), words].
        followers: For each mask, the state of its request.
    """
    whole = len(places) == len(logits) and all(place == index for index, place in enumerate(places))
    index = torch.tensor(places, device=logits.device)
    chosen = logits if whole else logits[index]
    made, nothing = _apply(chosen, rows, [True] * len(places))
    for row in nothing:
        followers[row].fail(no_token_left())
    for row, follower in enumerate(followers):
        if follower.error is not None:
            made[row, list(follower.end_ids or follower.stop_token_ids)] = 0.0
    if made is not logits:
        logits[index] = made
