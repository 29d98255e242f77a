"""Numbers as text, decided by arithmetic: can the digits so far become a number within the bounds?

Texts are those of the generation profile: integers `0|-?[1-9][0-9]{0,18}`, other numbers `-?INT(.[0-9]{1,16})?` with at
most 16 digits before the point, never `-0` in any spelling.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from .reader import Reader

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")
DECIMAL = re.compile(r"(?P<sign>-?)(?P<whole>0|[1-9][0-9]*)?(?P<point>\.(?P<part>[0-9]*))?\Z")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Inclusive or exclusive limits, exactly."""

    low: Fraction | None = None
    high: Fraction | None = None
    open_low: bool = False
    open_high: bool = False

    @property
    def digits(self) -> int:
        """The most digits before a bound's point."""
        return max((len(str(int(abs(b)))) for b in (self.low, self.high) if b is not None), default=1)

    @property
    def places(self) -> int:
        """The most digits after a bound's point."""
        found = 0
        for bound in (self.low, self.high):
            while bound is not None and (bound * 10**found).denominator != 1:
                found += 1
        return found

    def scaled(self, scale: int) -> tuple[int | None, int | None]:
        """The least and greatest whole number N with N / scale within the bounds."""
        low = high = None
        if self.low is not None:
            at = self.low * scale
            low = -((-at.numerator) // at.denominator)
            low += int(self.open_low and low == at)
        if self.high is not None:
            at = self.high * scale
            high = at.numerator // at.denominator
            high -= int(self.open_high and high == at)
        return low, high


@dataclass(frozen=True, slots=True)
class Number(Reader):
    """A number read so far: at most `digits` before the point and `places` after it."""

    bounds: Bounds
    digits: int
    places: int
    text: str = ""

    @classmethod
    def whole(cls, bounds: Bounds) -> Number:
        """An integer: of 19 digits, or as many as its bounds have."""
        return cls(bounds, max(19, bounds.digits), 0)

    @classmethod
    def decimal(cls, bounds: Bounds) -> Number:
        """A decimal number: of 16 digits on either side, or as many as its bounds have and one more place."""
        return cls(bounds, max(16, bounds.digits), max(16, bounds.places + 1))

    @property
    def done(self) -> bool:
        """Whether the number may end here."""
        found = DECIMAL.match(self.text)
        if not found or not found["whole"] or found["point"] == ".":
            return False
        low, high = _reach(self.text, 0, 0, len(found["part"] or ""))
        return low == high and _meets(self, low, high, len(found["part"] or ""))

    def step(self, byte: int) -> Number | None:
        """After one more byte; None where that can no longer be completed."""
        longer = Number(self.bounds, self.digits, self.places, self.text + chr(byte))
        return longer if viable(longer) else None


@lru_cache(maxsize=65536)
def viable(number: Number) -> bool:
    """Whether some completion is within the bounds: tries every count of digits that may still come."""
    text = number.text
    found = DECIMAL.match(text)
    if not found or (found["point"] is not None and (not found["whole"] or not number.places)):
        return False
    whole, part = found["whole"] or "", found["part"] or ""
    if len(whole) > number.digits or len(part) > number.places:
        return False
    if found["point"] is not None or whole == "0":
        more_whole = range(1)
    else:
        more_whole = range(0 if whole else 1, number.digits - len(whole) + 1)
    for more in more_whole:
        for places in range(len(part), number.places + 1):
            if found["point"] is not None and places == 0:
                continue
            for low, high in _intervals(text, more, places):
                if _meets(number, low, high, places):
                    return True
    return False


def _intervals(text: str, more: int, places: int) -> list[tuple[int, int]]:
    """What `text` with `more` whole digits and up to `places` places can be, as whole numbers over 10**places."""
    if text in ("", "-"):
        signs = [1, -1] if not text else [-1]
        first = 10 ** (more - 1) if more > 1 else 0
        reach = (first * 10**places, (10**more) * 10**places - 1)
        found = [reach if sign > 0 else (-reach[1], -reach[0]) for sign in signs]
    else:
        found = [_reach(text, more, places - len(text.partition(".")[2]), places)]
    return [part for low, high in found for part in _without_negative_zero(text, low, high)]


def _without_negative_zero(text: str, low: int, high: int) -> list[tuple[int, int]]:
    """`-0` is not written: after a minus sign the value is below zero."""
    if text.startswith("-") and high >= 0:
        high = -1
    return [(low, high)] if low <= high else []


def _reach(text: str, more_whole: int, more_part: int, places: int) -> tuple[int, int]:
    """The least and greatest value, times 10**places, that more digits can make of a number's text."""
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("-").replace(".", "")
    more = more_whole + more_part
    value = int(digits) * 10**more
    ends = (sign * value, sign * (value + 10**more - 1))
    return min(ends), max(ends)


def _meets(number: Number, low: int, high: int, places: int) -> bool:
    """Whether low..high (over 10**places) has a number within the bounds."""
    if number.text.startswith("-"):
        high = min(high, -1)
    least, greatest = number.bounds.scaled(10**places)
    low = low if least is None else max(low, least)
    high = high if greatest is None else min(high, greatest)
    return low <= high
