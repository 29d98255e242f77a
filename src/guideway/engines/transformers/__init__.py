"""The transformers engine: PyTorch models of the package transformers.

model.py    `TransformersEngine`
loading.py  loading models and tokenizers
cache.py    transformers' caches as immutable values
batch.py    rows of equal lengths that run together
packed.py   rows of different lengths in one call
logits.py   the logits of the last tokens
"""

from __future__ import annotations

from guideway.engines.transformers.loading import tokenizer
from guideway.engines.transformers.model import TransformersEngine

__all__ = ["TransformersEngine", "tokenizer"]
