"""Captures llama.cpp's log, so that errors can show its last message."""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp as llama

__all__ = ["listen", "reason"]

_said: list[str] = []


def _log(level: int, text: bytes, data: Any) -> None:
    _said[:] = [*_said[-20:], text.decode("utf-8", "replace").strip()]


_callback = llama.llama_log_callback(_log)  # a global, so that it is not freed while llama.cpp uses it


def listen() -> None:
    """Capture the log of this process."""
    llama.llama_log_set(_callback, ctypes.c_void_p(0))


def reason() -> str:
    """Return the last error message of llama.cpp among its last 21 messages; else a text that there is none."""
    return next((line for line in reversed(_said) if "error" in line or "fail" in line), "llama.cpp gave no reason")
