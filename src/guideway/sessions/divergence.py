"""`Divergence`: where a token budget changed a text."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Divergence"]


class Divergence(NamedTuple):
    """The first position at which the mask without the token budget would have given a different token.

    The same logits and the same random number are used for both masks.

    Attributes:
        position: The number of tokens in the session before this position.
        token_id: The token that the mask without the budget would have given.
    """

    position: int
    token_id: int
