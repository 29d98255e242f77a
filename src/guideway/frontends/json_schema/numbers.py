"""Lowers assertions about numbers to regular languages and number nodes.

The language of the decimal numbers within bounds is exact: bounds are decimals, and a comparison with a bound follows its
digits. Texts have no leading zeros, no exponent and no `-0`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from math import ceil, floor, gcd, lcm
from typing import Any

from guideway.caching import cached
from guideway.frontends.json_schema.assertions import NumberAssertions
from guideway.frontends.json_schema.style import Style
from guideway.grammar.automata.minimize import minimal_automaton
from guideway.grammar.nodes import Cell, Number
from guideway.grammar.program import constant, recently_shared, shared
from guideway.grammar.regular import (
    EMPTY,
    NEVER,
    Complement,
    Literals,
    Ranges,
    Regular,
    both,
    cat,
    chars,
    either,
    literal,
    optional,
    repeat,
)
from guideway.jsontext.encoder import write_number

__all__ = [
    "INTEGER_DIGITS",
    "MAX_DIVISOR",
    "NUMBER_DIGITS",
    "Bounds",
    "any_number",
    "integers",
    "multiples",
    "number",
    "numbers",
]

INTEGER_DIGITS = 19
"""The maximum number of digits of a generated integer, unless its bounds need more."""

NUMBER_DIGITS = 16
"""The maximum number of digits of a generated number before and after the point, unless its bounds need more."""

MAX_DIVISOR = 2000
"""The maximum number of states of the automaton of a divisor. Multiples of other numbers are a `Number` node."""

_DIGIT = chars("09")
_NON_ZERO = chars("19")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a number. None means unbounded."""

    low: Decimal | None = None
    high: Decimal | None = None
    open_low: bool = False
    open_high: bool = False

    def flipped(self) -> Bounds:
        """The bounds of the negated numbers."""
        return Bounds(_negated(self.high), _negated(self.low), self.open_high, self.open_low)

    def digits(self) -> tuple[int, int]:
        """The maximum number of digits of a bound before the point, and after it."""
        found = [_split(bound.copy_abs()) for bound in (self.low, self.high) if bound is not None]
        return max((len(whole) for whole, _ in found), default=1), max((len(part) for _, part in found), default=0)


def _negated(bound: Decimal | None) -> Decimal | None:
    return None if bound is None else bound.copy_negate()


def _split(value: Decimal) -> tuple[str, str]:
    """The digits before the point, and those after it without trailing zeros."""
    whole, _, part = format(value, "f").partition(".")
    return whole, part.rstrip("0")


def integers(bounds: Bounds, most_digits: int = INTEGER_DIGITS) -> Regular:
    """The integers within the bounds. Unless the bounds need more, they have at most this number of digits."""
    low, high = bounds.low, bounds.high
    if low is not None:
        rounded = low.to_integral_value(ROUND_CEILING)
        low = Decimal(int(rounded) + (bounds.open_low and rounded == low))
    if high is not None:
        rounded = high.to_integral_value(ROUND_FLOOR)
        high = Decimal(int(rounded) - (bounds.open_high and rounded == high))
    return _signed(Bounds(low, high), most_digits, 0)


def numbers(bounds: Bounds, most_digits: int = NUMBER_DIGITS, most_part_digits: int = NUMBER_DIGITS) -> Regular:
    """The decimal numbers within the bounds. The limits are those before and after the point."""
    part = bounds.digits()[1]
    # one more digit, so that there is a number between adjacent bounds
    return _signed(bounds, most_digits, max(most_part_digits, part + 1) if part or most_part_digits else 0)


def multiples(
    bounds: Bounds, divisors: tuple[int | Decimal, ...], most_digits: int, most_part_digits: int
) -> Regular | None:
    """The common multiples of some numbers within the bounds, with no more digits after the point than they need.

    The limits of digits are extended if the bounds or the least multiple need more. None if the automaton that divides
    would have too many states.
    """
    step = Fraction(divisors[0])
    for divisor in map(Fraction, divisors[1:]):
        step = Fraction(lcm(step.numerator, divisor.numerator), gcd(step.denominator, divisor.denominator))
    part_digits, scaled = 0, step
    while scaled.denominator > 1:
        part_digits, scaled = part_digits + 1, scaled * 10
        if part_digits > MAX_DIVISOR:
            return None
    whole = scaled.numerator
    if whole * (part_digits + 1) > MAX_DIVISOR:
        return None
    low = high = None
    if bounds.low is not None:
        least = Fraction(bounds.low) / step
        low = _shifted((ceil(least) + (bounds.open_low and least.denominator == 1)) * whole, part_digits)
    if bounds.high is not None:
        most = Fraction(bounds.high) / step
        high = _shifted((floor(most) - (bounds.open_high and most.denominator == 1)) * whole, part_digits)
    inner = Bounds(low, high)
    most_digits = max(most_digits, len(str(ceil(step))))
    found = _signed(inner, most_digits, max(min(part_digits, most_part_digits), inner.digits()[1]))
    return found if whole == 1 or found is NEVER else both(found, _divisible(whole, part_digits))


def _shifted(value: int, digits: int) -> Decimal:
    """The value divided by a power of ten, exactly."""
    return Decimal(f"{value}E-{digits}")


@cached(64)
def _divisible(divisor: int, part_digits: int) -> Regular:
    """The texts of digits, with at most this number of digits after a point, that are multiples of a number.

    The number is the divisor divided by 10 ** `part_digits`. A state is the remainder of the digits so far, and their
    number after the point.
    """
    numbers_: dict[tuple[int, int], int] = {}
    rows: list[dict[int, list[Ranges]]] = []
    accepting: list[bool] = []

    def state(remainder: int, after: int) -> int:
        key = remainder, after
        if key not in numbers_:
            numbers_[key] = len(rows)
            rows.append({})
            accepting.append(after >= 0 and not remainder * 10 ** (part_digits - max(after, 0)) % divisor)
            todo.append(key)
        return numbers_[key]

    todo: list[tuple[int, int]] = []
    start = state(0, -2)  # -2: before the first digit; -1: after the point
    while todo:
        remainder, after = todo.pop()
        row = rows[numbers_[remainder, after]]
        if after == -2:
            row.setdefault(start, []).append(((45, 45),))
        for digit in range(10):
            if after == part_digits and part_digits:
                break
            following = 1 if after == -1 else max(after, 0) + (after > 0)
            row.setdefault(state((remainder * 10 + digit) % divisor, following), []).append(((48 + digit, 48 + digit),))
        if after == 0 and part_digits:
            row.setdefault(state(remainder, -1), []).append(((46, 46),))
    return recently_shared(minimal_automaton(rows, accepting))


def _signed(bounds: Bounds, most_whole: int, most_part: int) -> Regular:
    whole, _ = bounds.digits()
    most_whole = max(most_whole, whole)
    below = _magnitudes(bounds.flipped(), most_whole, most_part, zero=False)
    above = _magnitudes(bounds, most_whole, most_part, zero=True)
    parts = [above] if above is not NEVER else []
    parts += [cat("-", below)] if below is not NEVER else []
    return either(parts)


def _magnitudes(bounds: Bounds, most_whole: int, most_part: int, zero: bool) -> Regular:
    """The unsigned numbers within the bounds, with or without 0."""
    size = _Sizes(most_whole, most_part)
    low, high, open_low = bounds.low, bounds.high, bounds.open_low
    if low is None or low < 0 or (low == 0 and not zero):
        low, open_low = Decimal(0), not zero
    if high is None:
        return size.above(low, open_low)
    if high < low or (high == low and (open_low or bounds.open_high)):
        return NEVER
    if low == 0 and not open_low:
        return size.below(high, bounds.open_high)
    return both(size.above(low, open_low), size.below(high, bounds.open_high))


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Texts `WHOLE` or `WHOLE.PART` of limited length."""

    whole: int
    part: int

    def above(self, bound: Decimal, strictly: bool) -> Regular:
        """Numbers greater than or equal to `bound`, or greater than it."""
        whole, part = _split(bound)
        parts = [self._wholes(len(whole) + 1, self.whole)] if whole != "0" else [self._wholes(1, self.whole)]
        parts += [] if whole == "0" else _same_length(whole, greater=True)
        found = [cat(either(parts), self._any_part())]
        after: list[Regular] = []
        if self.part:
            after += [
                cat("." + part[:k], *self._digit_and_rest(int(d) + 1, 9, k)) for k, d in enumerate(part) if d < "9"
            ]
            after += self._more_than_zeros("." + part, len(part))
        after += [] if strictly else self._equal(part)
        found += [cat(whole, either(after))] if after else []
        return either(found)

    def below(self, bound: Decimal, strictly: bool) -> Regular:
        """Numbers less than or equal to `bound`, or less than it."""
        whole, part = _split(bound)
        smaller: list[Regular] = []
        if whole != "0":
            smaller += [literal("0")]
            smaller += [self._wholes(1, len(whole) - 1)] if len(whole) > 1 else []
            smaller += _same_length(whole, greater=False)
        found = [cat(either(smaller), self._any_part())] if smaller else []
        after: list[Regular] = [EMPTY] if part else []
        for k, digit in enumerate(part):
            after += [cat("." + part[:k], *self._digit_and_rest(0, int(digit) - 1, k))] if digit > "0" else []
            after += [literal("." + part[:k])] if k else []
        after += [] if strictly else self._equal(part)
        found += [cat(whole, either(after))] if after else []
        return either(found)

    def _wholes(self, minimum: int, maximum: int) -> Regular:
        """Positive whole numbers with `minimum` to `maximum` digits."""
        return cat(_NON_ZERO, repeat(_DIGIT, minimum - 1, maximum - 1)) if minimum <= maximum else NEVER

    def _any_part(self) -> Regular:
        return optional(cat(".", repeat(_DIGIT, 1, self.part))) if self.part else EMPTY

    def _digit_and_rest(self, low: int, high: int, before: int) -> tuple[Regular, Regular]:
        """A digit in a range, and any digits after it. The digit has `before` digits of the part before it."""
        return chars((48 + low, 48 + high)), repeat(_DIGIT, 0, self.part - before - 1)

    def _more_than_zeros(self, start: str, before: int) -> list[Regular]:
        """`start`, zeros, a nonzero digit, and any digits: every extension that is greater than `start`."""
        room = self.part - before
        if room <= 0:
            return []
        return [
            cat(start, both(repeat(_DIGIT, 1, room), cat(repeat(literal("0"), 0, None), _NON_ZERO, repeat(_DIGIT))))
        ]

    def _equal(self, part: str) -> list[Regular]:
        """The suffixes after the bound's whole digits that make the number equal to the bound."""
        if not self.part:
            return [] if part else [EMPTY]
        zeros = repeat(literal("0"), 0 if part else 1, self.part - len(part))
        return [cat("." + part, zeros)] if part else [EMPTY, cat(".", zeros)]


def _same_length(whole: str, greater: bool) -> list[Regular]:
    """Whole numbers with the same number of digits (no leading zero) that are greater, or smaller."""
    found: list[Regular] = []
    for k, char in enumerate(whole):
        digit = int(char)
        low, high = (digit + 1, 9) if greater else (0 if k else 1, digit - 1)
        if low <= high:
            rest = len(whole) - k - 1
            found.append(cat(whole[:k], chars((48 + low, 48 + high)), repeat(_DIGIT, rest, rest)))
    return found


_FREE_NUMBER = NumberAssertions()

_ANY_NUMBER = constant(
    cat(
        optional(literal("-")),
        either([literal("0"), cat(chars("19"), repeat(_DIGIT))]),
        optional(cat(".", repeat(_DIGIT, 1))),
        optional(cat(chars("EE", "ee"), optional(chars("++", "--")), repeat(_DIGIT, 1))),
    )
)

_ANY_DIGITS = constant(cat(optional(literal("-")), either([literal("0"), cat(chars("19"), repeat(_DIGIT))])))
_ANY_POINTED = constant(both(_ANY_NUMBER, Complement(_ANY_DIGITS)))

_DIGITS = re.compile(r"-?[0-9]+").fullmatch
_FREE_BOUNDS = Bounds()


@cached(64)
def _free_digits(whole: bool, most_digits: int | None, most_part_digits: int | None) -> Regular:
    keep = shared if most_digits is None and most_part_digits is None else recently_shared
    return keep(_plain(_FREE_BOUNDS, whole, most_digits, most_part_digits))


def _plain(bounds: Bounds, whole: bool, most_digits: int | None, most_part_digits: int | None) -> Regular:
    """The plain integers or numbers within the bounds."""
    if whole:
        return integers(bounds, most_digits or INTEGER_DIGITS)
    most_part_digits = NUMBER_DIGITS if most_part_digits is None else most_part_digits
    return numbers(bounds, most_digits or NUMBER_DIGITS, most_part_digits)


def any_number(style: Style) -> Regular:
    """The language of all numbers."""
    if style.plain_numbers:
        return _free_digits(False, style.integer_digits, style.fraction_digits)
    return _ANY_NUMBER


def number(part: NumberAssertions | None, style: Style) -> Regular | Number:
    """The language or node of the numbers that a part allows."""
    part = part or _FREE_NUMBER
    if style.plain_numbers and part.digits_only is False and part.enum is None:
        part = replace(part, not_multiple=(*part.not_multiple, 1))  # the plain text of a whole number has only digits
    bounded = part.low is not None or part.high is not None
    special = bool(part.not_multiple or part.excluded)
    if not style.plain_numbers:
        if part.digits_only:
            free = not (bounded or special or part.enum is not None) and part.multiple == (1,)
            return _ANY_DIGITS if free else Number(_whole_cells(part), "plain")
        if not (bounded or special or part.multiple or part.enum is not None):
            return _ANY_NUMBER if part.digits_only is None else _ANY_POINTED
        return Number(_cells(part), "any" if part.digits_only is None else "pointed")
    if part.enum is not None:
        enum = [int(one) for one in part.enum] if part.digits_only else part.enum
        texts = [write_number(value) for value in sorted(enum)]
        return Literals(tuple(text for text in texts if part.digits_only is not False or not _DIGITS(text)))
    bounds = Bounds(_decimal(part.low), _decimal(part.high), part.open_low, part.open_high)
    if special or part.multiple not in ((), (1,)):
        most_digits = style.integer_digits or (INTEGER_DIGITS if 1 in part.multiple else NUMBER_DIGITS)
        most_part_digits = NUMBER_DIGITS if style.fraction_digits is None else style.fraction_digits
        made = None if special else multiples(bounds, part.multiple, most_digits, most_part_digits)
        return Number(_cells(_limited(part, most_digits)), "plain") if made is None else made
    if bounds == _FREE_BOUNDS:
        return _free_digits(bool(part.multiple), style.integer_digits, style.fraction_digits)
    return _plain(bounds, bool(part.multiple), style.integer_digits, style.fraction_digits)


def _limited(part: NumberAssertions, most_digits: int) -> NumberAssertions:
    """The part with bounds, so that its numbers have at most this number of digits unless its own bounds need more."""
    own = [abs(int(one)) for one in (part.low, part.high, *part.multiple) if one is not None]
    most = 10 ** max([most_digits, *(len(str(one)) for one in own)])
    changed: dict[str, Any] = {}
    if part.low is None:
        changed |= {"low": -most, "open_low": True}
    if part.high is None:
        changed |= {"high": most, "open_high": True}
    return replace(part, **changed) if changed else part


def _decimal(value: int | Decimal | None) -> Decimal | None:
    return None if value is None else Decimal(value)


def _whole_cells(part: NumberAssertions) -> tuple[Cell, ...]:
    return tuple(cell if cell.multiple_of else replace(cell, multiple_of=(Decimal(1),)) for cell in _cells(part))


def _cells(part: NumberAssertions) -> tuple[Cell, ...]:
    """The numbers that assertions allow, as intervals: excluded numbers split the interval, listed numbers are single."""
    multiple = tuple(map(Decimal, part.multiple))
    missing = tuple(map(Decimal, part.not_multiple))
    if part.enum is not None:
        return tuple(Cell(Decimal(v), Decimal(v)) for v in sorted(part.enum))
    low, high, open_low = _decimal(part.low), _decimal(part.high), part.open_low
    cells = []
    for value in sorted(map(Decimal, part.excluded)):
        if (low is not None and value < low) or (high is not None and value > high):
            continue
        cells.append(Cell(low, value, open_low, True, multiple, missing))
        low, open_low = value, True
    cells.append(Cell(low, high, open_low, part.open_high, multiple, missing))
    return tuple(
        cell
        for cell in cells
        if cell.low is None
        or cell.high is None
        or cell.low < cell.high
        or (cell.low == cell.high and not cell.open_low and not cell.open_high)
    )
