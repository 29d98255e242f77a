"""The llama-cpp-python integration: a logits processor for its loop."""

from __future__ import annotations

from guideway.integrations.llama_cpp.processor import logits_processor

__all__ = ["logits_processor"]
