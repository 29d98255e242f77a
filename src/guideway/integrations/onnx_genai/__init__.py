"""onnxruntime-genai: constraints in loops over its `Generator`. Its exports run under our own loop too, as `onnx:`."""

from __future__ import annotations

from guideway.integrations.onnx_genai.processor import logits_processor

__all__ = ["logits_processor"]
