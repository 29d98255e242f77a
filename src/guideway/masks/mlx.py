"""Masks on MLX logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from guideway.masks.numpy import Row, unpack

__all__ = ["apply_mlx", "masked"]


def apply_mlx(logits: Any, rows: Row) -> Any:
    """Return the logits, with -inf for tokens that the mask does not allow and for tokens beyond the mask.

    Args:
        logits: An MLX array of any floating type, [vocabulary] or [rows, vocabulary].
        rows: The masks, uint32 [words] or [rows, words].

    Returns:
        A new array of the same shape and type; MLX computes it lazily.

    Raises:
        ValueError: The numbers of rows differ.
    """
    import mlx.core as mx

    if (logits.shape[0] if logits.ndim == 2 else None) != (rows.shape[0] if rows.ndim == 2 else None):
        raise ValueError(f"logits of shape {tuple(logits.shape)} need masks of as many rows, got shape {rows.shape}")
    size = logits.shape[-1]
    legal = unpack(rows, size) if rows.ndim == 1 else np.stack([unpack(row, size) for row in rows])
    return mx.where(mx.array(legal), logits, mx.array(float("-inf"), dtype=logits.dtype))


def masked(logits: Any, row: Row) -> Any:
    """Return logits, with -inf for tokens that are not allowed. Computed lazily, like all MLX operations.

    Args:
        logits: Floating, shape [1, width].
        row: uint32, shape [words]. Tokens beyond the mask are not allowed.
    """
    import mlx.core as mx

    legal = mx.array(unpack(row, logits.shape[-1]))
    return mx.where(legal[None], logits, mx.array(float("-inf"), dtype=logits.dtype))
