"""Creates sessions of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnxruntime

from guideway.background import processor_count
from guideway.engines.onnx.files import weight_bytes
from guideway.errors import EngineError

__all__ = ["open_session"]

_SMALL_MODEL_BYTES = 64 << 20
"""Below this size of the model in bytes, one thread is faster than several."""


def open_session(file: Path, device: str, threads: int | None) -> Any:
    """Load a graph.

    `threads`: as in `OnnxEngine`. Raises `EngineError` if it cannot be loaded or the device is not available.
    """
    provider = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}.get(device, device)
    if provider not in (known := onnxruntime.get_available_providers()):
        raise EngineError(f"ONNX Runtime has no device {device!r} here; available providers: {', '.join(known)}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or (1 if weight_bytes(file) < _SMALL_MODEL_BYTES else processor_count())
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, not printed
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=[provider])
    except Exception as error:  # the exception classes of ONNX Runtime have no common base class but this
        raise EngineError(f"ONNX Runtime cannot load {file}: {error}") from error
