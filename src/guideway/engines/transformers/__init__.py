"""Models of transformers, in PyTorch."""

from __future__ import annotations

from guideway.engines.transformers.loading import tokenizer
from guideway.engines.transformers.model import TransformersEngine

__all__ = ["TransformersEngine", "tokenizer"]
