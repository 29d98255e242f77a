"""The ONNX Runtime engine, part of the default installation.

model.py    `OnnxEngine`
graph.py    the inputs and outputs of an exported model
values.py   types and shapes of single inputs and outputs
files.py    finding and identifying a model's files
runtime.py  ONNX Runtime sessions and their calls
cache.py    KV caches: batches that grow, and new rows in unused places
blocks.py   the memory of KV caches
"""

from __future__ import annotations

from guideway.engines.onnx.model import OnnxEngine

__all__ = ["OnnxEngine"]
