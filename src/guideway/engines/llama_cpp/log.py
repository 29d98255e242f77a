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
    """Capture llama.cpp's log messages in this process from now on."""
    llama.llama_log_set(_callback, ctypes.c_void_p(0))


def reason() -> str:
    """Return the last log message that contains "error" or "fail".

    Only the last 21 messages are searched. If none of them does: "llama.cpp gave no reason".
    """
    return next((line for line in reversed(_said) if "error" in line or "fail" in line), "llama.cpp gave no reason")
