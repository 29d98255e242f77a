"""Creates sessions of ONNX Runtime, and runs them on `OrtValue` objects that are kept from call to call."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import _pybind_state as bound

from guideway.arguments import short_repr
from guideway.background import processor_count
from guideway.caching import cached
from guideway.engines.onnx.files import weight_bytes
from guideway.errors import EngineError

__all__ = ["Calls", "open_session", "value_of"]

_SMALL_MODEL_BYTES = 64 << 20
"""Below this size of the model in bytes, one thread is faster than several."""

_LOADING = threading.Lock()
"""Held while CUDA is loaded. If two threads redirected `sys.stdout` at once, it could stay redirected."""


def open_session(file: Path, device: str, threads: int | None) -> Any:
    """Load a graph.

    `threads`: as in `OnnxEngine`. Raises `EngineError` if it cannot be loaded or the device is not available.
    ONNX Runtime would run the graph on the CPU if the libraries of the device were missing or a call failed there;
    here both are errors.
    """
    provider = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}.get(device, device)
    if provider not in (known := onnxruntime.get_available_providers()):
        raise EngineError(
            f"ONNX Runtime has no device {short_repr(device)} here; available providers: {', '.join(known)}"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or (1 if weight_bytes(file) < _SMALL_MODEL_BYTES else processor_count())
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, not printed
    if provider == "CUDAExecutionProvider":
        _load_cuda_libraries()
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=[provider])
    except Exception as error:  # the exception classes of ONNX Runtime have no common base class but this
        raise EngineError(f"ONNX Runtime cannot load {file}: {error}") from error
    if provider not in session.get_providers():
        raise EngineError(
            f"ONNX Runtime cannot use the device {device!r}: no such device, or its driver or libraries cannot be loaded. "
            "For CUDA, install NVIDIA's driver, and the libraries with: pip install 'onnxruntime-gpu[cuda,cudnn]'"
        )
    session.disable_fallback()
    return session


def _load_cuda_libraries() -> None:
    """Load CUDA and cuDNN from the packages nvidia-*, where the dynamic linker does not search."""
    if (load := getattr(onnxruntime, "preload_dlls", None)) is not None:  # since 1.21
        with _LOADING, contextlib.redirect_stdout(sys.stderr):  # it prints which libraries it does not find
            load()


@cached(1)
def _cpu() -> Any:
    """Return the device of main memory, as `Calls` needs it. ONNX Runtime has no public function for it."""
    try:
        return onnxruntime.OrtDevice.make("cpu", 0)._get_c_device()
    except AttributeError as error:
        raise EngineError(
            f"onnxruntime {onnxruntime.__version__} is not supported: {error}; use 1.17 to 1.31"
        ) from error


def value_of(array: NDArray[Any]) -> Any:
    """Return a value of ONNX Runtime in the memory of a contiguous array, which must exist as long as the value."""
    return bound.OrtValue.ortvalue_from_numpy(array, _cpu())


class Calls:
    """Calls of a session with given names of inputs and outputs. All values are in main memory.

    A call gets its values as `OrtValueVector` objects. It copies nothing and binds no names, and the values of the
    outputs are inputs of the next call. This takes less time than `IOBinding`, and, if the arrays are large, less than
    `run`, which copies the outputs. Calls with `OrtValueVector` are not part of the public interface of ONNX Runtime;
    versions 1.17 and 1.31 were tested.

    Args:
        session: The session.
        inputs: The names of the inputs.
        outputs: The names of the outputs. The first one gets new memory in each call.
    """

    def __init__(self, session: Any, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._session, self._inputs, self._outputs = session, list(inputs), list(outputs)
        self._devices = [_cpu()] * len(outputs)
        self._options = onnxruntime.RunOptions()
        binding = session.io_binding()
        binding.bind_output(outputs[0])
        self._absent = binding.get_outputs_as_ortvaluevector()[0]  # a value without memory: the call allocates it

    def __call__(self, arrays: Sequence[NDArray[Any]], values: Sequence[Any], made: Sequence[Any]) -> NDArray[Any]:
        """Run the session, and return the first output.

        Args:
            arrays: The first inputs.
            values: The other inputs.
            made: Values for all outputs but the first.
        """
        given, found = bound.OrtValueVector(), bound.OrtValueVector()
        for array in arrays:
            given.push_back(value_of(array))
        for value in values:
            given.push_back(value)
        found.push_back(self._absent)
        for value in made:
            found.push_back(value)
        self._session.run_with_ortvaluevector(self._options, self._inputs, given, self._outputs, found, self._devices)
        first: NDArray[Any] = found[0].numpy()
        return first
