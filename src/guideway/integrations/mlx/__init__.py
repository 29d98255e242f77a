"""The integration for mlx-lm: a logits processor for the generation loops of this library."""

from __future__ import annotations

from guideway.integrations.mlx.processor import logits_processor

__all__ = ["logits_processor"]
