"""Models of transformers, in PyTorch."""

from __future__ import annotations

from guideway.engines.transformers.continuous import continuous_constraints
from guideway.engines.transformers.loading import tokenizer
from guideway.engines.transformers.model import TransformersEngine
from guideway.engines.transformers.processor import logits_processor

__all__ = ["TransformersEngine", "continuous_constraints", "logits_processor", "tokenizer"]
