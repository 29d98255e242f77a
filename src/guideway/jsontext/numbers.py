"""Reads numbers of JSON text, and limits their digits."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

__all__ = ["MAX_DIGITS", "TOO_MANY_DIGITS", "WrittenFloat", "bounded", "read_float", "read_int", "written_float"]

MAX_DIGITS = 1000
"""The maximum number of digits of a number in a schema before the decimal point, and also after it."""

TOO_MANY_DIGITS = f"numbers may have at most {MAX_DIGITS} digits before and after the point"
_INFINITE = float("inf")
_TOO_LARGE = 10**MAX_DIGITS


class WrittenFloat(float):
    """A float with the text from which it was read, which a schema uses as the exact number.

    It is shown as any float, and the `json` module writes it as any float; `exact_json` writes its text.

    Args:
        text: The number in JSON.
    """

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]  # the arguments of this `__new__`
        return (self.text,)


def written_float(text: str) -> float:
    """Return a number of JSON text as a float. It is a `WrittenFloat` if the repr of the float is another text."""
    value = float(text)
    return value if repr(value) == text else WrittenFloat(text)


def bounded(number: int | Decimal) -> int | Decimal | None:
    """Return the number, or 0 for any zero; None: it has more digits than `MAX_DIGITS` before or after the point."""
    if not number:
        return 0  # 0e-999999999 would be written with all its zeros
    if isinstance(number, int):
        return number if -_TOO_LARGE < number < _TOO_LARGE else None
    fits = number.adjusted() < MAX_DIGITS and int(number.as_tuple().exponent) >= -MAX_DIGITS
    return number if fits else None


def read_float(text: str) -> float | Decimal:
    """Return a number of JSON text as the nearest float, or as an exact `Decimal` if the float is not useful.

    The float is not useful if it is infinite, or if it is zero although the number is not. If the exponent is beyond
    the limits of `Decimal`, the float is returned, as by `json.loads`.
    """
    value = float(text)
    if value and abs(value) != _INFINITE:
        return value
    try:
        return Decimal(text) or value
    except InvalidOperation:
        return value


def read_int(text: str) -> int | Decimal:
    """Return an integer of JSON text. It becomes a `Decimal` if it has more digits than Python's limit for int."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)
