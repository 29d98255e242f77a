"""Models of mlx-lm, on Apple's GPUs or on any CPU."""

from __future__ import annotations

from guideway.engines.mlx.model import MlxEngine, folder_of
from guideway.engines.mlx.processor import logits_processor

__all__ = ["MlxEngine", "folder_of", "logits_processor"]
