"""Checks of the parameters of samplers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["is_finite", "is_number"]


def is_number(value: Any) -> bool:
    """Return whether a value is a real number of Python or NumPy."""
    return isinstance(value, (int, float, np.integer, np.floating))


def is_finite(value: Any) -> bool:
    """Return whether a number is finite as a float. An int that is too large for a float is not."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
