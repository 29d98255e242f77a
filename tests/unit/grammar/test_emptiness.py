"""Whether a grammar derives no text."""

from __future__ import annotations

import random

import pytest

import guideway as gw
from guideway import constraints
from guideway.errors import LimitExceededError, UnsatisfiableError
from guideway.grammar.recognizer import byte_automaton, is_empty, single_bytes

PARTS = ["a", "b", "ab", "a*", "[ab]{2}", "(?:ab)+", "b|aa", "a{2,3}"]


def test_random_intersections_and_differences_agree_with_compilation() -> None:
    rng = random.Random(1)
    empty = 0
    for _ in range(400):
        made: constraints.Constraint = gw.Regex("".join(rng.choices(PARTS, k=2)))
        for _ in range(rng.randrange(1, 4)):
            other = gw.Regex("".join(rng.choices(PARTS, k=rng.randrange(1, 3))))
            made = made & (~other if rng.random() < 0.4 else other)
        grammar = made.grammar()
        try:
            byte_automaton(grammar, single_bytes())
            expected = False
        except UnsatisfiableError:
            expected = True
        assert is_empty(grammar, single_bytes()) is expected
        empty += expected
    assert 50 < empty < 350


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (gw.Gbnf('root ::= "a" root | "b"'), False),
        (gw.JsonSchema({"type": "integer", "minimum": 3, "maximum": 2}), True),
        (gw.JsonSchema({"type": "object", "required": ["a"], "maxProperties": 1}), False),
        (gw.JsonSchema({"type": "array", "uniqueItems": True, "items": {"enum": [1, 2]}, "minItems": 3}), True),
    ],
)
def test_grammars_that_are_no_leaf(constraint: constraints.Constraint, expected: bool) -> None:
    assert is_empty(constraint.grammar()) is expected


def test_limits() -> None:
    grammar = (gw.Regex("(a|b)*a(a|b){12}") & ~gw.Regex("(a|b)*b(a|b){13}")).grammar()
    assert not is_empty(grammar)
    with pytest.raises(LimitExceededError, match="max_states = 10"):
        is_empty(grammar, single_bytes(10))
