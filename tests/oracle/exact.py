"""Numbers by value, in every spelling: a prefix is viable when some way to go on is found by trying."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .numbers import Bounds
from .reader import Reader

MANTISSA = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
BEGINNING = re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]*)?)?")
ENDINGS = ["", *(f"{n}" for n in range(10)), *(f"{n:02}" for n in range(100)), *(f".{n:02}" for n in range(100))]


@dataclass(frozen=True, slots=True)
class Exact(Reader):
    """Numbers between bounds, whole or not."""

    bounds: Bounds
    whole: bool
    text: str = ""

    @property
    def done(self) -> bool:
        """Whether it is a number that fits."""
        mantissa, _, exponent = self.text.lower().partition("e")
        if not MANTISSA.fullmatch(mantissa) or (
            "e" in self.text.lower() and not re.fullmatch(r"[+-]?[0-9]+", exponent)
        ):
            return False
        return fits(self.bounds, self.whole, mantissa, int(exponent or "0"))

    def step(self, byte: int) -> Exact | None:
        """After one more byte."""
        after = Exact(self.bounds, self.whole, self.text + chr(byte))
        return after if viable(after) else None


def fits(bounds: Bounds, whole: bool, mantissa: str, exponent: int) -> bool:
    """Whether a value is in the bounds."""
    value = Fraction(mantissa) * Fraction(10) ** exponent
    low, high = bounds.low, bounds.high
    if low is not None and (value < low or (bounds.open_low and value == low)):
        return False
    if high is not None and (value > high or (bounds.open_high and value == high)):
        return False
    return not whole or value.denominator == 1


@lru_cache(maxsize=100_000)
def viable(at: Exact) -> bool:
    """Whether it can go on to a number that fits."""
    mantissa, e, exponent = at.text.lower().partition("e")
    if not BEGINNING.fullmatch(mantissa):
        return False
    if e:
        found = re.fullmatch(r"([+-]?)([0-9]*)", exponent)
        if not MANTISSA.fullmatch(mantissa) or not found:
            return False
        sign, digits = found.groups()
        shown = digits.lstrip("0")
        sizes = {n for n in range(40) if str(n).startswith(shown) or not shown} | {
            int(digits + "0" * n or "0") for n in (0, 1)
        }
        signs = {"": (1, -1) if not digits else (1,), "+": (1,), "-": (-1,)}[sign]
        return any(fits(at.bounds, at.whole, mantissa, s * n) for n in sizes for s in signs)
    near = {None if b is None else str(abs(b)) for b in (at.bounds.low, at.bounds.high)}  # the digits of a bound itself
    endings = ENDINGS + [b[len(mantissa.lstrip("-")) :] for b in near if b and b.startswith(mantissa.lstrip("-"))]
    grown = (mantissa + sign + ending for sign in (("",) if mantissa else ("", "-")) for ending in endings)
    return any(fits(at.bounds, at.whole, text, n) for text in grown if MANTISSA.fullmatch(text) for n in range(-9, 10))
