"""What llama.cpp would print: kept, and the last complaint shown in the error that follows it."""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp as llama

__all__ = ["listen", "reason"]

_said: list[str] = []


def _log(level: int, text: bytes, data: Any) -> None:
    _said[:] = [*_said[-20:], text.decode("utf-8", "replace").strip()]


_callback = llama.llama_log_callback(_log)  # a name of its own, or it would be freed while llama.cpp calls it


def listen() -> None:
    """Take what llama.cpp says, for this process."""
    llama.llama_log_set(_callback, ctypes.c_void_p(0))


def reason() -> str:
    """Why the last call failed, as far as llama.cpp said it."""
    return next((line for line in reversed(_said) if "error" in line or "fail" in line), "it does not say why")
