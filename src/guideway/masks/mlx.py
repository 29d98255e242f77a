"""Masks on logits of MLX."""

from __future__ import annotations

from typing import Any

from guideway.masks.numpy import Row, unpack

__all__ = ["masked"]


def masked(logits: Any, row: Row) -> Any:
    """The logits, [1, width] of any floating type, with illegal tokens and those beyond the mask at -inf. Lazy."""
    import mlx.core as mx

    legal = mx.array(unpack(row, logits.shape[-1]))
    return mx.where(legal[None], logits, mx.array(float("-inf"), dtype=logits.dtype))
