"""The integration for llama-cpp-python: a logits processor for the generation loop of this library."""

from __future__ import annotations

from guideway.integrations.llama_cpp.processor import logits_processor

__all__ = ["logits_processor"]
