"""The integration for onnxruntime-genai: a logits processor for loops over the `Generator` of this library."""

from __future__ import annotations

from guideway.integrations.onnx_genai.processor import logits_processor

__all__ = ["logits_processor"]
