"""llama.cpp, through the low-level API of llama-cpp-python."""

from __future__ import annotations

from guideway.engines.llama_cpp.model import LlamaCppEngine

__all__ = ["LlamaCppEngine"]
