"""Counted work of Python code: the same number on every machine, unlike time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def lines(call: Callable[[], object]) -> int:
    """The lines of Python that a call executes. Work inside C code, for example in `re`, counts as one line."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
