"""Constraints inside llama-cpp-python's own loop."""

from __future__ import annotations

from guideway.integrations.llama_cpp.processor import logits_processor

__all__ = ["logits_processor"]
