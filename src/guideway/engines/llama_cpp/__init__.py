"""llama.cpp, through llama-cpp-python: our loop over its low-level API, constraints in its own loop."""

from __future__ import annotations

from guideway.engines.llama_cpp.model import LlamaCppEngine
from guideway.engines.llama_cpp.processor import logits_processor

__all__ = ["LlamaCppEngine", "logits_processor"]
