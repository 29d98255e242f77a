"""Lowers assertions about numbers to regular languages and `Number` nodes.

The language of the plain numbers (without exponents, see `Style.plain_numbers`) within bounds is built from the decimal
digits of the bounds. It is exact, except that the number of digits is limited. Its texts have no leading zeros and no
exponent, and `-0` is not one of them. A `Number` node, which is used where no language is built, allows `-0` as well.
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
"""The maximum number of digits of an integer with `Style.plain_numbers`.

The style can set another maximum, and bounds or divisors may need more digits.
"""

NUMBER_DIGITS = 16
"""The same for other numbers: the maximum number of digits before the point, and of those after it."""

MAX_DIVISOR = 2000
"""The maximum estimated number of states of the automaton for the multiples of a divisor.

If the estimate is greater, the multiples are a `Number` node.
"""

_DIGIT = chars("09")
_NON_ZERO = chars("19")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a number.

    Attributes:
        low: The lower bound; None: unbounded.
        high: The upper bound; None: unbounded.
        open_low: Whether the number must be greater than `low`, not equal to it.
        open_high: Whether the number must be less than `high`, not equal to it.
    """

    low: Decimal | None = None
    high: Decimal | None = None
    open_low: bool = False
    open_high: bool = False

    def flipped(self) -> Bounds:
        """Return the bounds of -x for all numbers x within these bounds."""
        return Bounds(_negated(self.high), _negated(self.low), self.open_high, self.open_low)

    def digits(self) -> tuple[int, int]:
        """Return the maximum number of digits of the bounds before the point, and after it. Without bounds: 1 and 0."""
        found = [_split(bound.copy_abs()) for bound in (self.low, self.high) if bound is not None]
        return max((len(whole) for whole, _ in found), default=1), max((len(part) for _, part in found), default=0)


def _negated(bound: Decimal | None) -> Decimal | None:
    return None if bound is None else bound.copy_negate()


def _split(value: Decimal) -> tuple[str, str]:
    """Return the digits before the point, and the digits after it without trailing zeros."""
    whole, _, part = format(value, "f").partition(".")
    return whole, part.rstrip("0")


def integers(bounds: Bounds, most_digits: int = INTEGER_DIGITS) -> Regular:
    """Return the language of the integers within the bounds.

    They have at most `most_digits` digits, or as many as the bounds have if that is more.
    """
    low, high = bounds.low, bounds.high
    if low is not None:
        rounded = low.to_integral_value(ROUND_CEILING)
        low = Decimal(int(rounded) + (bounds.open_low and rounded == low))
    if high is not None:
        rounded = high.to_integral_value(ROUND_FLOOR)
        high = Decimal(int(rounded) - (bounds.open_high and rounded == high))
    return _signed(Bounds(low, high), most_digits, 0)


def numbers(bounds: Bounds, most_digits: int = NUMBER_DIGITS, most_part_digits: int = NUMBER_DIGITS) -> Regular:
    """Return the language of the decimal numbers without exponents within the bounds.

    They have at most `most_digits` digits before the point and `most_part_digits` after it, unless the bounds need
    more.
    """
    part = bounds.digits()[1]
    # one digit more than the bounds have, so that there is a number between 0.1 and 0.2
    return _signed(bounds, most_digits, max(most_part_digits, part + 1) if part or most_part_digits else 0)


def multiples(
    bounds: Bounds, divisors: tuple[int | Decimal, ...], most_digits: int, most_part_digits: int
) -> Regular | None:
    """Return the language of the common multiples of `divisors` within the bounds.

    The multiples have no more digits after the point than the least common multiple has.

    Args:
        bounds: The bounds.
        divisors: At least one number.
        most_digits: The maximum number of digits before the point, unless the bounds or the least multiple need more.
        most_part_digits: The maximum number of digits after the point, unless the bounds need more.

    Returns:
        The language. None if the estimated number of states of its automaton is more than `MAX_DIVISOR`.
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
    """Return `value` / 10 ** `digits`, exactly."""
    return Decimal(f"{value}E-{digits}")


@cached(64)
def _divisible(divisor: int, part_digits: int) -> Regular:
    """Return an automaton that accepts a decimal text if its value is a multiple of `divisor` / 10 ** `part_digits`.

    Texts with more than `part_digits` digits after the point are not accepted. The automaton also accepts texts that
    are not numbers, such as `--1`: the caller intersects it with the numbers. A state of the automaton is a pair: the
    remainder of the digits so far modulo `divisor`, and the number of digits after the point so far.
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
    # the second member: -2: no digit yet; 0: digits, but no point; -1: the point, but no digit after it
    start = state(0, -2)
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
    """Return the language of the decimal texts without a sign whose values are within the bounds.

    They have at most `most_whole` digits before the point and `most_part` after it. `zero`: whether 0 is allowed if it
    is within the bounds.
    """
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
    """Languages of unsigned decimal texts `WHOLE` or `WHOLE.PART`.

    The bounds that the methods get are at least 0, and have no more digits than `whole` and `part`.

    Attributes:
        whole: The maximum number of digits before the point.
        part: The maximum number of digits after the point.
    """

    whole: int
    part: int

    def above(self, bound: Decimal, strictly: bool) -> Regular:
        """Return the numbers greater than or equal to `bound`, or with `strictly` only those greater than it."""
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
        """Return the numbers less than or equal to `bound`, or with `strictly` only those less than it."""
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
        """Return the positive whole numbers with `minimum` to `maximum` digits."""
        return cat(_NON_ZERO, repeat(_DIGIT, minimum - 1, maximum - 1)) if minimum <= maximum else NEVER

    def _any_part(self) -> Regular:
        return optional(cat(".", repeat(_DIGIT, 1, self.part))) if self.part else EMPTY

    def _digit_and_rest(self, low: int, high: int, before: int) -> tuple[Regular, Regular]:
        """Return a digit from `low` to `high`, and any digits after it.

        `before` is the number of digits between the point and this digit.
        """
        return chars((48 + low, 48 + high)), repeat(_DIGIT, 0, self.part - before - 1)

    def _more_than_zeros(self, start: str, before: int) -> list[Regular]:
        """Return `start`, then zeros, a nonzero digit, and any digits: every extension that is greater than `start`.

        `before` is the number of digits that `start` has after the point. The list is empty if no digit may follow.
        """
        room = self.part - before
        if room <= 0:
            return []
        return [
            cat(start, both(repeat(_DIGIT, 1, room), cat(repeat(literal("0"), 0, None), _NON_ZERO, repeat(_DIGIT))))
        ]

    def _equal(self, part: str) -> list[Regular]:
        """Return what may follow the digits before the point of a bound, so that the number equals the bound.

        `part` has the digits of the bound after the point. An empty list means that no text equals the bound.
        """
        if not self.part:
            return [] if part else [EMPTY]
        zeros = repeat(literal("0"), 0 if part else 1, self.part - len(part))
        return [cat("." + part, zeros)] if part else [EMPTY, cat(".", zeros)]


def _same_length(whole: str, greater: bool) -> list[Regular]:
    """Return the whole numbers with as many digits as `whole` that are greater than it; without `greater`: smaller.

    They have no leading zero.
    """
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
    """Return the numbers without exponents within the bounds, or with `whole` the integers.

    A limit that is None has its default.
    """
    if whole:
        return integers(bounds, most_digits or INTEGER_DIGITS)
    most_part_digits = NUMBER_DIGITS if most_part_digits is None else most_part_digits
    return numbers(bounds, most_digits or NUMBER_DIGITS, most_part_digits)


def any_number(style: Style) -> Regular:
    """Return the language of all numbers in the spelling of the style."""
    if style.plain_numbers:
        return _free_digits(False, style.integer_digits, style.fraction_digits)
    return _ANY_NUMBER


def number(part: NumberAssertions | None, style: Style) -> Regular | Number:
    """Return the numbers that assertions allow (None: all numbers), as a regular language or a `Number` node.

    With `Style.plain_numbers`, the result is a node if `enum` is None and there are `excluded` or `not_multiple`
    numbers or large divisors. If the style allows every spelling, it is a node unless the assertions allow all numbers,
    or all texts without a fraction and an exponent (the integers of draft 4), or all other texts of numbers.
    """
    part = part or _FREE_NUMBER
    if style.plain_numbers and part.digits_only is False and part.enum is None:
        # With `plain_numbers`, 1.0 counts as an integer, so all whole numbers are excluded.
        part = replace(part, not_multiple=(*part.not_multiple, 1))
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
    """Return the assertions with both bounds. A bound that is missing is set to a power of ten.

    So the numbers have at most `most_digits` digits before the point, unless the other bound or a divisor has more.
    """
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
    """Return the numbers that assertions allow, as intervals.

    Each number of `enum` is an interval. Without `enum`, the excluded numbers divide the interval of the bounds.
    """
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
