"""A model and a context of llama.cpp."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import llama_cpp as llama
import numpy as np

from guideway.engines.llama_cpp.log import listen, reason
from guideway.engines.llama_cpp.running import Running
from guideway.errors import EngineError, ModelNotFoundError

__all__ = ["Context"]

BATCH = 512  # maximum number of tokens per call


class Context:
    """A loaded model and its KV cells.

    Args:
        file: The GGUF file.
        gpu: Whether all layers run on a GPU.
        half: Whether keys and values are float16 instead of float32.
        context: Maximum number of tokens per row; None: the context size of the model.
        kv_cache_tokens: Minimum number of cells; None: 8,192. It is raised to the context size. Recurrent models ignore
            it.
        rows: Maximum number of sequences; 1 for recurrent models.
        owner: A `llama_cpp.Llama` whose weights are used; None: the file is loaded.
    """

    def __init__(
        self,
        file: Path,
        *,
        gpu: bool,
        half: bool,
        context: int | None,
        kv_cache_tokens: int | None,
        rows: int,
        owner: Any = None,
    ) -> None:
        self._owner = owner
        if owner is None:
            self.model: Any = _loaded(file, gpu=gpu)
        else:
            listen()
            self.model = owner._model.model
            if not self.model:
                raise EngineError("the Llama object is closed; load the model again")
        kinds = (llama.llama_model_is_recurrent, llama.llama_model_is_hybrid, llama.llama_model_n_swa)
        self.recurrent = any(kind(self.model) for kind in kinds)
        known = int(llama.llama_model_n_ctx_train(self.model))
        self.size = context or known
        if 0 < known < self.size:
            self._free_model()
            raise ValueError(f"context_size must be at most {known}, the context of the model, got {context}")
        self.vocab_size = int(llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model)))
        self.rows = 1 if self.recurrent else min(rows, int(llama.llama_max_parallel_sequences()))
        options = llama.llama_context_default_params()
        cells = self.size if self.recurrent else max(kv_cache_tokens or 8192, self.size)
        # Avoid multiples of 512. The channels of values are this number of cells apart, and a power of two would cause
        # cache conflicts (3 to 6 % of the time of a small model).
        options.n_ctx = cells if cells % 512 else cells + 256
        options.n_batch = options.n_ubatch = BATCH
        options.n_seq_max = self.rows
        options.n_threads = options.n_threads_batch = max(1, (os.cpu_count() or 2) // 2)  # default of llama-cpp-python
        options.kv_unified = True  # sequences share the cells of common prefixes
        options.type_k = options.type_v = llama.GGML_TYPE_F16 if half else llama.GGML_TYPE_F32
        options.flash_attn_type, options.no_perf = 0, True
        self.handle: Any = llama.llama_init_from_model(self.model, options)
        if not self.handle:
            self._free_model()
            raise EngineError(f"llama.cpp cannot create a context of {options.n_ctx} tokens for {file}: {reason()}")
        self.memory = llama.llama_get_memory(self.handle)
        head = int(llama.llama_model_n_embd(self.model)) // max(1, int(llama.llama_model_n_head(self.model)))
        heads = int(llama.llama_model_n_head_kv(self.model)) * int(llama.llama_model_n_layer(self.model))
        self.cell_bytes = 2 * heads * head * (2 if half else 4)
        batch = int(llama.llama_n_batch(self.handle))  # at most the number of cells; a larger batch aborts the process
        self.running = Running(self.handle, batch, self.vocab_size)

    def remove(self, number: int, start: int) -> None:
        """Remove the tokens of a sequence from a position on; -1: all of them."""
        if self.handle is not None:
            llama.llama_memory_seq_rm(self.memory, number, start, -1)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of a sequence to another one. The cells are shared."""
        llama.llama_memory_seq_cp(self.memory, source, target, 0, length)

    def state(self, number: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the state of a sequence, as bytes."""
        buffer = (ctypes.c_uint8 * (size := llama.llama_state_seq_get_size(self.handle, number)))()
        written = llama.llama_state_seq_get_data(self.handle, buffer, size, number)
        return np.array(np.frombuffer(buffer, dtype=np.uint8, count=written))

    def put_state(self, number: int, state: np.ndarray[Any, np.dtype[Any]], length: int) -> None:
        """Set the state of a sequence.

        If it is not a state of `length` tokens, all tokens of the sequence are removed and `EngineError` is raised.
        """
        data = np.array(state, dtype=np.uint8)
        buffer = (ctypes.c_uint8 * data.size).from_buffer_copy(data.tobytes())
        done = llama.llama_state_seq_set_data(self.handle, buffer, data.size, number)
        if not done or llama.llama_memory_seq_pos_max(self.memory, number) != length - 1:
            self.remove(number, -1)
            raise EngineError(f"llama.cpp rejected the state of {length} tokens: it does not match the model")

    def close(self) -> None:
        handle, self.handle = self.handle, None
        if handle:
            llama.llama_free(handle)
            self._free_model()

    def _free_model(self) -> None:
        if self._owner is None:
            llama.llama_model_free(self.model)
        self._owner = None


def _loaded(file: Path, *, gpu: bool) -> Any:
    if not file.is_file():
        raise ModelNotFoundError(f"model file not found: {file}")
    listen()
    llama.llama_backend_init()
    if gpu and not llama.llama_supports_gpu_offload():
        raise EngineError("this build of llama.cpp has no GPU support; use device='cpu'")
    params = llama.llama_model_default_params()
    params.n_gpu_layers = 999 if gpu else 0
    model = llama.llama_model_load_from_file(str(file).encode(), params)
    if not model:
        raise EngineError(f"llama.cpp cannot load {file}: {reason()}")
    return model
