"""Checks of arguments."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["integer"]


def integer(name: str, value: Any, least: int | None = None) -> int:
    """Return an argument as an int. Values with `__index__`, such as NumPy integers, are accepted.

    Args:
        name: Name of the argument, for messages.
        value: The argument.
        least: Minimum value; None: there is no minimum.

    Raises:
        TypeError: The value is not an integer.
        ValueError: The value is below `least`.
    """
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if least is not None and found < least:
        bound = f"be at least {least}" if least else "not be negative"
        raise ValueError(f"{name} must {bound}, got {found}")
    return found
