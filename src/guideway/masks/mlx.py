"""Masks on MLX logits."""

from __future__ import annotations

from typing import Any

from guideway.masks.numpy import Row, unpack

__all__ = ["masked"]


def masked(logits: Any, row: Row) -> Any:
    """Return logits with tokens that are not allowed at -inf. Lazy, like all MLX operations.

    Args:
        logits: Floating, shape [1, width].
        row: uint32, shape [words]. Tokens beyond the mask are not allowed.
    """
    import mlx.core as mx

    legal = mx.array(unpack(row, logits.shape[-1]))
    return mx.where(legal[None], logits, mx.array(float("-inf"), dtype=logits.dtype))
