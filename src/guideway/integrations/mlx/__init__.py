"""The mlx-lm integration: a logits processor for its loops."""

from __future__ import annotations

from guideway.integrations.mlx.processor import logits_processor

__all__ = ["logits_processor"]
