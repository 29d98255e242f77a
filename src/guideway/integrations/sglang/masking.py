"""Functions for the masks of a batch in SGLang: int32 [rows, ceil(vocabulary / 32)]; a set bit allows the token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

__all__ = ["allocate", "apply", "move", "narrow"]


def allocate(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
    """Return masks with all bits set, on the CPU, where they are filled. `device` is ignored."""
    return torch.full((batch_size, -(-vocab_size // 32)), -1, dtype=torch.int32)


def move(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
    """Copy masks to the device of the logits, with `non_blocking`."""
    return vocab_mask.to(device, non_blocking=True)


def apply(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Set the logits of tokens that are not allowed to -inf, in place. `logits`: shape [rows, vocabulary]."""
    bits = (vocab_mask[:, :, None] >> torch.arange(32, device=vocab_mask.device)) & 1
    logits.masked_fill_(bits.flatten(1)[:, : logits.shape[1]] == 0, float("-inf"))


def narrow(
    vocab_mask: torch.Tensor,
    token_ids: Sequence[int],
    batch_idx: int,
    is_allowed: bool = True,
    reset_vocab_mask: bool = True,
) -> None:
    """Set the bits of tokens in row `batch_idx`, or clear them if `is_allowed` is false.

    With `reset_vocab_mask`, all other bits get the opposite value; without it, they stay.
    """
    row = vocab_mask[batch_idx].numpy().view(np.uint32)  # masks are on the CPU when this is called
    if reset_vocab_mask:
        row[:] = 0 if is_allowed else 0xFFFFFFFF
    for token in token_ids:
        bit = np.uint32(1 << (token & 31))
        row[token >> 5] = row[token >> 5] | bit if is_allowed else row[token >> 5] & ~bit
