"""The transformers integration.

processor.py            a logits processor for `generate`
loops.py                detects whether the calling loop of `generate` reads the scores after its processors
continuous_batching.py  constraints in continuous batching
end_tokens.py           the end tokens of the tokenizer and of the generation config
"""

from __future__ import annotations

from guideway.integrations.transformers.continuous_batching import continuous_constraints
from guideway.integrations.transformers.processor import logits_processor

__all__ = ["continuous_constraints", "logits_processor"]
