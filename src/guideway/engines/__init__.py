"""Engines run models. `base` defines the protocol. Each engine's library is imported only in its own package.

base.py       `StepEngine`: the protocol; `Cache`
kv_cache.py   caches as immutable values: rows of a batch, states of recurrent models
row_store.py  rows of different lengths in shared arrays
batching.py   divides rows into groups that run together, and counts them
config.py     the configuration files of models
onnx/         ONNX Runtime
transformers/ transformers on PyTorch
llama_cpp/    llama.cpp
mlx/          mlx-lm
"""

from __future__ import annotations

from guideway.engines.base import Cache, StepEngine

__all__ = ["Cache", "StepEngine"]
