"""Exact and bounded numbers of JSON text."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

__all__ = ["MAX_DIGITS", "TOO_MANY_DIGITS", "bounded", "read_float", "read_int"]

MAX_DIGITS = 1000
"""Maximum number of digits of a number in a schema, before and after the decimal point."""

TOO_MANY_DIGITS = f"numbers may have at most {MAX_DIGITS} digits before and after the point"
_INFINITE = float("inf")


def bounded(number: int | Decimal) -> int | Decimal | None:
    """Return the number, or None if it has too many digits."""
    if not number:
        return 0  # 0e-999999999 would be written with all its zeros
    if isinstance(number, int):
        return number if number.bit_length() <= MAX_DIGITS * 3 else None
    fits = number.adjusted() < MAX_DIGITS and int(number.as_tuple().exponent) >= -MAX_DIGITS
    return number if fits else None


def read_float(text: str) -> float | Decimal:
    """Return the nearest float.

    Returns a `Decimal` if the float would be infinite, or zero for a non-zero number. Numbers whose exponent is too
    large for `Decimal` are infinite or zero, as in `json.loads`.
    """
    value = float(text)
    if value and abs(value) != _INFINITE:
        return value
    try:
        return Decimal(text) or value
    except InvalidOperation:
        return value


def read_int(text: str) -> int | Decimal:
    """Return the int, or a `Decimal` if it has more digits than Python's limit for int."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)
