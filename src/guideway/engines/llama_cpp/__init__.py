"""The llama.cpp engine, on the low-level API of llama-cpp-python.

model.py    `LlamaCppEngine`
context.py  a loaded model and its context
running.py  calls of `llama_decode`
dividing.py which tokens run in one call
batch.py    the input arrays of a decode call
logits.py   the output arrays of a decode call
cache.py    sequences of the KV cache as immutable values
streams.py  which sequences share cells, and which have separate ones
state.py    recurrent states as immutable values
log.py      llama.cpp's log messages
"""

from __future__ import annotations

from guideway.engines.llama_cpp.model import LlamaCppEngine

__all__ = ["LlamaCppEngine"]
