"""The onnxruntime-genai integration, for loops over its `Generator`. `onnx:` models can use the same exports."""

from __future__ import annotations

from guideway.integrations.onnx_genai.processor import logits_processor

__all__ = ["logits_processor"]
