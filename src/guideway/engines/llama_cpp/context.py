"""`Context`: a loaded llama.cpp model and its context, which has the KV cells of all sequences."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import llama_cpp as llama
import numpy as np

from guideway.background import processor_count
from guideway.engines.batching import CallCounts
from guideway.engines.llama_cpp.dividing import LONGEST_PIECE, PAGE, Divider
from guideway.engines.llama_cpp.log import listen, reason
from guideway.engines.llama_cpp.running import Running
from guideway.errors import EngineError, ModelNotFoundError

__all__ = ["Context", "State", "room"]

_BATCH = 512  # maximum number of tokens per call on a GPU and for recurrent models
State = np.ndarray[Any, np.dtype[np.uint8]]
_ONE = np.frombuffer(np.uint32(1).tobytes(), np.uint8)
_EMPTY = np.array([1, 0], np.uint32).tobytes()  # the state of a sequence without tokens: one stream, no cells


def room(cells: int, streams: int) -> int:
    """Return the number of cells of each stream if there are `cells` cells in all; 0 if that is too few."""
    return cells // streams // PAGE * PAGE


class Context:
    """A loaded model and its KV cells.

    The cells are shared by all sequences (`streams` is 1), or each sequence has a stream: `room` cells that no other
    sequence uses. With shared cells, sequences share the cells of common prefixes, but a call computes the attention of
    each token to the cells of all sequences and masks those of others, which takes time.

    Args:
        file: The GGUF file.
        gpu: Whether all layers run on a GPU.
        half: Whether keys and values are float16 instead of float32.
        context: Maximum number of tokens per row; None: the context size of the model.
        kv_cache_tokens: Minimum number of cells; None: 8,192. It is raised to the context size. Recurrent, hybrid
            and sliding-window models ignore it.
        rows: Maximum number of sequences; 1 for recurrent, hybrid and sliding-window models.
        owner: A `llama_cpp.Llama` whose weights are used; None: the file is loaded.

    Attributes:
        counts: The groups of rows that ran so far. Each call of `llama_decode` is one group.
        pass_cells: How many cells are as large as the weights. A forward pass reads all weights, and the cells of its
            rows.
        cells: Number of cells when they are shared. All streams together have at most this number.
        separable: Whether sequences can have streams: on a CPU, for models that are not recurrent, are not hybrid
            and have no sliding windows. The cells of a sequence are moved as a state. The format of states is known
            for these models, and a GPU copies states slowly.
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
        self._owner, self._file, self._half = owner, file, half
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
        cells = self.size if self.recurrent else max(kv_cache_tokens or 8192, self.size)
        # Avoid multiples of 512. The channels of values are this number of cells apart, and a power of two would cause
        # cache conflicts (3 to 6 % of the time of a small model).
        self.cells = cells if cells % 512 else cells + 256
        head = int(llama.llama_model_n_embd(self.model)) // max(1, int(llama.llama_model_n_head(self.model)))
        heads = int(llama.llama_model_n_head_kv(self.model)) * int(llama.llama_model_n_layer(self.model))
        self.cell_bytes = 2 * heads * head * (2 if half else 4)
        self.pass_cells = int(llama.llama_model_size(self.model)) / max(1, self.cell_bytes)
        self._on_cpu = not llama.llama_supports_gpu_offload() or (owner is None and not gpu)
        self.counts = CallCounts()
        self.handle: Any = None
        try:
            self.arrange(1)
        except EngineError:
            self._free_model()
            raise
        empty = bytes(self.state(0))
        self._head = len(empty) - len(_EMPTY)  # number of bytes before the state of the KV cache
        self.separable = self._on_cpu and not self.recurrent and self._head in (0, 8) and empty.endswith(_EMPTY)

    def arrange(self, streams: int) -> None:
        """Create the cells, with this number of streams; 1: shared by all sequences. All tokens are removed.

        Raises `EngineError` if llama.cpp cannot create them. The context is closed then, except for the model.
        """
        if self.handle:
            old, self.handle = self.handle, None
            llama.llama_free(old)  # before the next context is created: memory never holds both
        options = llama.llama_context_default_params()
        self.streams, self.room = streams, self.cells if streams == 1 else room(self.cells, streams)
        options.n_ctx = streams * self.room
        # On a CPU, attention takes less time in more and smaller calls: the tokens of a call attend to equal numbers of
        # cells. With streams, calls end where this number changes (`Divider`).
        paged = self._on_cpu and not self.recurrent
        options.n_batch = options.n_ubatch = (PAGE if streams == 1 else LONGEST_PIECE) if paged else _BATCH
        options.n_seq_max = self.rows if streams == 1 else streams
        options.n_threads = options.n_threads_batch = max(1, processor_count() // 2)
        options.kv_unified = streams == 1
        options.type_k = options.type_v = llama.GGML_TYPE_F16 if self._half else llama.GGML_TYPE_F32
        options.flash_attn_type, options.no_perf = 0, True
        self.handle = llama.llama_init_from_model(self.model, options) or None
        if self.handle is None:
            raise EngineError(
                f"llama.cpp cannot create a context of {options.n_ctx} tokens for {self._file}: {reason()}"
            )
        self.memory = llama.llama_get_memory(self.handle)
        batch = int(llama.llama_n_batch(self.handle))  # at most the number of cells; a larger batch aborts the process
        divider = Divider(streams=streams > 1, pass_cells=self.pass_cells)
        self.running = Running(self.handle, batch, self.vocab_size, self.counts, divider)

    @property
    def numbers(self) -> int:
        """How many sequence numbers there are."""
        return self.rows if self.streams == 1 else self.streams

    def remove(self, number: int, start: int) -> None:
        """Remove the tokens of a sequence from a position on; -1: all of them."""
        if self.handle is not None:
            llama.llama_memory_seq_rm(self.memory, number, start, -1)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of a sequence to another one, which shares its cells.

        Not for streams: there llama.cpp copies whole streams, and aborts the process for a part of one.
        """
        llama.llama_memory_seq_cp(self.memory, source, target, 0, length)

    def share(self, source: int, target: int, length: int) -> None:
        """Let a sequence use the cells of another one for its first `length` tokens. Both have the same tokens there.

        Not for streams.
        """
        llama.llama_memory_seq_rm(self.memory, target, 0, length)
        self.copy(source, target, length)

    def state(self, number: int) -> State:
        """Return the state of a sequence, as bytes. They do not depend on `streams`.

        After a header, llama.cpp writes the number of streams, then for each stream the number of cells of the
        sequence, followed by these cells. All cells are in one stream. The result is what llama.cpp writes for a single
        stream.
        """
        buffer = np.empty(int(llama.llama_state_seq_get_size(self.handle, number)), np.uint8)
        written = int(llama.llama_state_seq_get_data(self.handle, _pointer(buffer), buffer.size, number))
        if self.streams == 1:
            return buffer[:written]
        head = buffer[: self._head].copy()
        whole = buffer[4 * number : written - 4 * (self.streams - 1 - number)]
        whole[: head.size], whole[head.size : head.size + 4] = head, _ONE
        return whole

    def put_state(self, number: int, state: State, length: int) -> None:
        """Set the state of a sequence.

        If it is not a state of `length` tokens, all tokens of the sequence are removed and `EngineError` is raised.
        """
        data = np.ascontiguousarray(state, dtype=np.uint8)
        known = self.streams == 1 or bytes(data[self._head : self._head + 4]) == bytes(_ONE)
        if self.streams > 1 and known:
            data = np.concatenate([data, np.zeros(4 * (self.streams - 1), np.uint8)])
            data[self._head : self._head + 4] = np.frombuffer(np.uint32(self.streams).tobytes(), np.uint8)
        done = known and llama.llama_state_seq_set_data(self.handle, _pointer(data), data.size, number)
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


def _pointer(data: State) -> Any:
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def _loaded(file: Path, *, gpu: bool) -> Any:
    if not os.path.isfile(file):  # unlike `Path.is_file`, False for a path that is too long
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
