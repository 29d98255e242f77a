"""The onnxruntime-genai integration, for loops over its `Generator`. The same exports work with "onnx:FOLDER"."""

from __future__ import annotations

from guideway.integrations.onnx_genai.processor import logits_processor

__all__ = ["logits_processor"]
