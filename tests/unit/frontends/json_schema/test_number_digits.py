"""How many digits generated numbers have."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import guideway as gw
from guideway.constraints.wire import from_wire, to_wire
from guideway.errors import InvalidConstraintError, UnsupportedError
from guideway.frontends.json_schema.numbers import INTEGER_DIGITS, MAX_DIVISOR, NUMBER_DIGITS
from guideway.grammar.nodes import Number
from guideway.grammar.recognizer import accepts, byte_automaton


class Allows:
    """Whether a constraint allows texts."""

    def __init__(self, schema: dict[str, Any], **options: Any) -> None:
        self._automaton = byte_automaton(gw.JsonSchema(schema, **options).grammar())

    def __call__(self, text: str) -> bool:
        return accepts(self._automaton, text)


def digits_of(step: Fraction) -> int:
    """The digits after the point that the multiples of a number need."""
    return next(n for n in range(20) if (step * 10**n).denominator == 1)


@pytest.mark.parametrize(
    ("schema", "step"),
    [
        ({"type": "number", "multipleOf": 0.01}, Fraction(1, 100)),
        ({"type": "number", "multipleOf": 0.25, "minimum": -1, "exclusiveMaximum": 10.1}, Fraction(1, 4)),
        ({"type": "number", "multipleOf": 1.5}, Fraction(3, 2)),
        ({"type": "number", "multipleOf": 12.5, "exclusiveMinimum": 12.5}, Fraction(25, 2)),
        ({"type": "number", "multipleOf": 0.001, "minimum": 0, "maximum": 1}, Fraction(1, 1000)),
        ({"type": "integer", "multipleOf": 0.4}, Fraction(2)),
        ({"type": "integer", "multipleOf": 7}, Fraction(7)),
        ({"type": "number", "allOf": [{"multipleOf": 0.4}, {"multipleOf": 0.6}]}, Fraction(6, 5)),
    ],
)
def test_multiples_have_the_digits_that_they_need(schema: dict[str, Any], step: Fraction) -> None:
    made, exact, rng, digits = Allows(schema), Allows(schema, profile="exact"), random.Random(1), digits_of(step)
    allowed = 0
    for _ in range(600):
        most = rng.choice([40, 3000])
        value = Decimal(rng.randint(-most, most)) * rng.choice([1, 5, 25, 125, 1000])
        text = format(value.scaleb(-rng.randint(0, 4)), "f")
        negative_zero = text.startswith("-") and not Decimal(text)
        expected = exact(text) and len(text.partition(".")[2]) <= digits and not negative_zero
        assert made(text) is expected, text
        allowed += expected
    assert allowed
    assert not made("10.250000")


def test_exact_profile_keeps_every_spelling() -> None:
    exact = Allows({"type": "number", "multipleOf": 0.01}, profile="exact")
    for text in ("10.250000", "1025e-2", "1" + "0" * 40, "0.00"):
        assert exact(text)


def test_default_limits() -> None:
    number, integer = Allows({"type": "number"}), Allows({"type": "integer"})
    assert number("9" * NUMBER_DIGITS + "." + "9" * NUMBER_DIGITS)
    assert not number("9" * (NUMBER_DIGITS + 1))
    assert not number("0." + "9" * (NUMBER_DIGITS + 1))
    assert integer("9" * INTEGER_DIGITS)
    assert not integer("9" * (INTEGER_DIGITS + 1))


def test_limits_of_the_caller() -> None:
    few = Allows({"type": "number"}, max_integer_digits=3, max_fraction_digits=1)
    assert few("-999.9")
    assert not few("1000")
    assert not few("0.25")
    assert not Allows({"type": "number"}, max_fraction_digits=0)("1.5")
    anything = Allows({}, max_integer_digits=3, max_fraction_digits=1)
    assert anything('[1.5, {"a": -200}]')
    assert not anything("[1000]")
    assert not anything("[0.25]")


def test_bounds_that_need_more_digits() -> None:
    above = Allows({"type": "integer", "minimum": 5000}, max_integer_digits=2)
    assert above("5001")
    assert not above("10000")
    between = Allows({"type": "number", "minimum": 0.125, "maximum": 0.126}, max_fraction_digits=1)
    assert between("0.125")
    assert between("0.1251")


@pytest.mark.parametrize("divisor", [7, MAX_DIVISOR + 1, 20_011])
def test_multiples_of_large_numbers_have_limited_digits(divisor: int) -> None:
    schema = {"type": "integer", "multipleOf": divisor}
    made = gw.JsonSchema(schema)
    assert (type(made.grammar().nodes[made.grammar().root]) is Number) is (divisor > MAX_DIVISOR)
    allows = Allows(schema)
    most = 10**INTEGER_DIGITS // divisor * divisor
    assert allows(str(most))
    assert allows(str(-most))
    assert not allows(str(most * 10))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_integer_digits": 0}, "max_integer_digits=0: expected an int from 1 to 1000"),
        ({"max_fraction_digits": 1.5}, "max_fraction_digits=1.5: expected an int from 0 to 1000"),
        ({"max_integer_digits": 3, "profile": "exact"}, "add numbers='plain'"),
    ],
)
def test_wrong_limits(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConstraintError, match=message):
        gw.JsonSchema({}, **options)


def test_limits_are_kept_on_the_wire() -> None:
    made = gw.JsonSchema({"type": "number"}, max_integer_digits=2, max_fraction_digits=1)
    copy = from_wire(to_wire(made))
    assert copy.grammar().nodes == made.grammar().nodes
    with pytest.raises((InvalidConstraintError, UnsupportedError)):
        gw.JsonSchema({"type": "number"}, max_integer_digits=2, numbers="any")
