"""Resident memory of a process, and measurements in separate processes."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from pathlib import Path

PAGE = 4096


def resident() -> float:
    """Returns the resident memory of this process in MB, after free memory is returned to the system."""
    gc.collect()
    with suppress(OSError, AttributeError):  # other C libraries lack this function
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    status = Path("/proc/self/statm")
    if not status.exists():
        raise SystemExit("resident memory is read from /proc: Linux only")
    return int(status.read_text().split()[1]) * PAGE / 1e6
