"""Numbers of the grammar by value: a prefix is viable if a decimal that begins with it is in a cell.

The numbers with a given prefix are an interval at each power of ten. A cell contains every n-th number of such an
interval, so a few of them decide whether there is any. Beyond some exponent in either direction the result is constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import gcd, lcm

from guideway.grammar import nodes as ir

from .reader import Reader

SYNTAX = re.compile(r"(-?)(?:(0|[1-9][0-9]*)(?:(\.)([0-9]*))?)?(?:([eE])([+-]?)([0-9]*))?")
TEN, NONE = Fraction(10), frozenset[Fraction]()


@dataclass(frozen=True, slots=True)
class ByValue(Reader):
    """A number of some cells, but for some values, read so far."""

    number: ir.Number
    used: frozenset[Fraction] = NONE
    text: str = ""

    @property
    def done(self) -> bool:
        """Whether it is a number that fits."""
        value = self.value() if self.text[-1:].isdigit() else None
        return value is not None and any(not self.lacks(cell, value) for cell in self.cells())

    def value(self) -> Fraction | None:
        """The value of the text, if it is a number; one large exponent represents all larger ones."""
        found = SYNTAX.fullmatch(self.text)
        if not found or not found[2]:
            return None
        power = int(found[7] or 0) * (-1 if found[6] == "-" else 1)
        return mantissa(found) * TEN ** max(-self.far, min(power, self.far))

    @property
    def far(self) -> int:
        """A power of ten above all bounds, divisors and used values, for any digits before it."""
        return reach(self.number, self.used) + len(self.text)

    def step(self, byte: int) -> ByValue | None:
        """After one more byte."""
        after = replace(self, text=self.text + chr(byte))
        return after if viable(after) else None

    def cells(self) -> Iterator[ir.Cell]:
        """Those whose numbers may be written with the signs that were read."""
        plain = self.number.spelling == "plain"
        for cell in self.number.cells:
            whole = any(d == d.to_integral_value() for d in cell.multiple_of)
            if not plain or not ("e" in self.text.lower() or ("." in self.text and whole)):
                yield cell

    def lacks(self, cell: ir.Cell, value: Fraction) -> bool:
        """Whether the cell does not have a value."""
        return next(members(cell, (value, value), self.used), None) is None

    def values(self, most: int) -> list[Fraction]:
        """As many values as that, or all."""
        found: list[Fraction] = []
        for cell in self.number.cells:
            some = members(cell, (None, None), self.used | set(found), most)
            found += islice(some, most - len(found))
        return found


def mantissa(found: re.Match[str]) -> Fraction:
    """Returns the value of the part before the exponent."""
    return Fraction(f"{found[1]}{found[2]}.{found[4] or 0}")


@lru_cache(maxsize=10_000)
def reach(number: ir.Number, used: frozenset[Fraction]) -> int:
    """More digits than anything here has, and more factors of two and five."""
    numbers = [*used, *(Fraction(b) for c in number.cells for b in (c.low, c.high) if b is not None)]
    numbers += [Fraction(d) for c in number.cells for d in (*c.multiple_of, *c.not_multiple_of)]
    sizes = (n.numerator.bit_length() + len(str(n.denominator)) for n in numbers)
    return 6 + 2 * max(sizes, default=1)


@lru_cache(maxsize=200_000)
def viable(at: ByValue) -> bool:
    """Whether the text can be extended to a number that fits."""
    found = SYNTAX.fullmatch(at.text)
    if not found or (found[5] and (found[2] is None or found[4] == "")):
        return False
    if found[5]:
        return any(not at.lacks(cell, v) for cell in at.cells() for v in powers(at, found))
    signs = (-1,) if found[1] else (1,) if found[2] else (1, -1)
    return any(_begins(at, cell, sign, found) for cell in at.cells() for sign in signs)


def powers(at: ByValue, found: re.Match[str]) -> Iterator[Fraction]:
    """The values that a mantissa and the beginning of an exponent can become."""
    shown = found[7].lstrip("0")
    sizes = [n for n in range(at.far) if str(n).startswith(shown)] + [at.far]
    signs = {"": (1,) if found[7] else (1, -1), "+": (1,), "-": (-1,)}[found[6]]
    yield from (mantissa(found) * TEN ** (sign * n) for n in sizes for sign in signs)


def _begins(at: ByValue, cell: ir.Cell, sign: int, found: re.Match[str]) -> bool:
    """Whether a cell has a number of a sign that begins with the digits read."""
    digits, places = int((found[2] or "0") + (found[4] or "")), len(found[4] or "")
    if digits == 0 and not at.lacks(cell, Fraction(0)):
        return True
    if at.number.spelling == "any":
        return _anywhere(cell, at.used, sign, digits, at.far)
    dots = not any(d == d.to_integral_value() for d in cell.multiple_of)
    return any(_holds(cell, at.used, sign, ends) for ends in _plainly(found, digits, places, dots, at.far))


@lru_cache(maxsize=200_000)
def _anywhere(cell: ir.Cell, used: frozenset[Fraction], sign: int, digits: int, far: int) -> bool:
    """Whether a cell contains a number with these digits, for any position of the point."""
    if digits == 0:
        return _holds(cell, used, sign, (Fraction(0), None))
    low, high = sizes(cell, used)
    powers = range(low - len(str(digits)), high + 1)  # at the end the intervals are as long as any pattern
    return any(_holds(cell, used, sign, (digits * TEN**j, (digits + 1) * TEN**j)) for j in powers)


@lru_cache(maxsize=10_000)
def sizes(cell: ir.Cell, used: frozenset[Fraction]) -> tuple[int, int]:
    """How many digits the numbers have that matter: below and above it is as at the ends."""
    at = ends_of(cell)
    numbers = [*used, *(b for b in (at.low, at.high) if b), *at.multiple_of, *at.not_multiple_of]
    found = [len(str(abs(n.numerator))) - len(str(n.denominator)) for n in numbers if n] or [0]
    together = sum(len(str(n.numerator)) + len(str(n.denominator)) for n in (*at.multiple_of, *at.not_multiple_of))
    return min(found) - 2, max(found) + 2 + together + len(used)


def _plainly(
    found: re.Match[str], digits: int, places: int, dots: bool, far: int
) -> Iterable[tuple[Fraction, Fraction | None]]:
    """Magnitudes that begin so without an exponent: [low, high), but for zero."""
    if found[3]:
        return [(digits * TEN**-places, (digits + 1) * TEN**-places)]
    if found[2] is None:
        return [(Fraction(0), None)]
    if digits == 0:
        return [(Fraction(0), Fraction(1))] if dots else []
    return [(digits * TEN**j, (digits + 1) * TEN**j) for j in range(far)]


def _holds(cell: ir.Cell, used: frozenset[Fraction], sign: int, magnitudes: tuple[Fraction, Fraction | None]) -> bool:
    """Whether a cell has a number of these magnitudes."""
    low, high = magnitudes
    inside = replace_ends(cell, (low, high) if sign > 0 else (None if high is None else -high, -low), sign)
    return next(members(inside, (None, None), used), None) is not None


@dataclass(frozen=True, slots=True)
class Ends:
    """A cell with fractions for bounds."""

    low: Fraction | None
    high: Fraction | None
    open_low: bool
    open_high: bool
    multiple_of: tuple[Fraction, ...]
    not_multiple_of: tuple[Fraction, ...]


@lru_cache(maxsize=10_000)
def ends_of(cell: ir.Cell) -> Ends:
    """The same with fractions."""
    low, high = (None if b is None else Fraction(b) for b in (cell.low, cell.high))
    steps, others = (tuple(map(Fraction, some)) for some in (cell.multiple_of, cell.not_multiple_of))
    return Ends(low, high, cell.open_low, cell.open_high, steps, others)


def replace_ends(cell: ir.Cell, ends: tuple[Fraction | None, Fraction | None], sign: int) -> Ends:
    """What a cell has of an interval that is closed towards zero (but without zero) and open away from it."""
    made, (low, high) = ends_of(cell), ends
    open_low, open_high = (low == 0, True) if sign > 0 else (True, high == 0)
    if low is not None and (made.low is None or (low, open_low) > (made.low, made.open_low)):
        made = replace(made, low=low, open_low=open_low)
    if high is not None and (made.high is None or (high, not open_high) < (made.high, not made.open_high)):
        made = replace(made, high=high, open_high=open_high)
    return made


def members(
    cell: ir.Cell | Ends,
    within: tuple[Fraction | None, Fraction | None],
    used: frozenset[Fraction] | set[Fraction],
    most: int = 1,
) -> Iterator[Fraction]:
    """Values of a cell within closed bounds that are not used; of very many only some, at least `most`."""
    at = cell if isinstance(cell, Ends) else ends_of(cell)
    low, high = within
    if low is not None and (at.low is None or low > at.low):
        at = replace(at, low=low, open_low=False)
    if high is not None and (at.high is None or high < at.high):
        at = replace(at, high=high, open_high=False)
    if at.low is not None and at.high is not None and at.low > at.high:
        return
    for value in _candidates(at, len(used) + most):
        inside = (at.low is None or at.low < value or (at.low == value and not at.open_low)) and (
            at.high is None or value < at.high or (value == at.high and not at.open_high)
        )
        divided = all((value / d).denominator == 1 for d in at.multiple_of)
        if inside and divided and value not in used and all((value / d).denominator != 1 for d in at.not_multiple_of):
            yield value


def _candidates(at: Ends, most: int) -> Iterator[Fraction]:
    """Values that tell whether there are as many as `most`: a period of the divisors' pattern for each."""
    low, high = at.low, at.high
    step = _common(at.multiple_of)
    if step is None and low is not None and low == high:
        yield low
        return
    if step is None:  # decimals are dense: a step that no divisor's pattern falls in with
        room = Fraction(1) if low is None or high is None else high - low
        step = room / TEN ** (6 + most)
        if any((step / d).denominator == 1 for d in at.not_multiple_of):
            step /= TEN**12
    period = 1
    for other in at.not_multiple_of:
        period = lcm(period, (other / step).numerator)
    count = min(period, 10_000) * (most + 1) + 8
    if low is None and high is not None:
        first = -(-high // step)
        yield from (step * (first - n) for n in range(count + 1))
        return
    first = 0 if low is None else low // step
    for n in range(count + 1):
        value = step * (first + n)
        if high is not None and value > high:
            return
        yield value


@lru_cache(maxsize=1000)
def _common(steps: tuple[Fraction, ...]) -> Fraction | None:
    """The least common multiple."""
    made: Fraction | None = None
    for step in steps:
        if made is None:
            made = step
        else:
            made = Fraction(lcm(made.numerator, step.numerator), gcd(made.denominator, step.denominator))
    return made
