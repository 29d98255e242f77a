"""ONNX Runtime, the engine of the default install."""

from __future__ import annotations

from guideway.engines.onnx.model import OnnxEngine

__all__ = ["OnnxEngine"]
