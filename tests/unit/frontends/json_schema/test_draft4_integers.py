"""Draft 4 defines an integer by its text: `1.0` and `1e2` are numbers, but no integers.

Later drafts go by the value.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from guideway.frontends.json_schema.dnf import Expander
from tests.suites.verdicts import DRAFTS, SUITE, Recogniser, judge_suite

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
INTEGERS = ("0", "-0", "1", "-1", "3", "6", "10", "12345", "-120", "1" + "0" * 23)
OTHERS = (
    *("0.0", "-0.0", "0e0", "1.0", "1e2", "1E2", "-1.0", "6.0", "10.0", "12345.0", "1e+2", "30e-1", "60e-1"),
    *("1.5", "0.5", "-2.5", "2.50", "25e-1", "1e-1"),
)
NOT_INTEGER = {"not": {"type": "integer"}}


def is_integer(text: str) -> bool:
    return text in INTEGERS


def value(text: str) -> Fraction:
    return Fraction(Decimal(text))


CASES: list[tuple[dict[str, Any], Callable[[str], bool]]] = [
    ({"type": "integer"}, is_integer),
    ({"type": ["integer", "string"]}, is_integer),
    ({"type": ["integer", "string"], "maxLength": 3}, is_integer),
    ({"type": ["integer", "number"]}, lambda text: True),
    ({"type": "integer", "minimum": 1}, lambda text: is_integer(text) and value(text) >= 1),
    (
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 10},
        lambda text: is_integer(text) and 0 < value(text) <= 10,
    ),
    ({"type": "integer", "multipleOf": 3}, lambda text: is_integer(text) and value(text) % 3 == 0),
    ({"type": "integer", "enum": [1, 0, 1.5, 6.0]}, lambda text: is_integer(text) and value(text) in (0, 1, 6)),
    ({"enum": [1, 6.0]}, lambda text: value(text) in (1, 6)),
    (NOT_INTEGER, lambda text: not is_integer(text)),
    ({"not": NOT_INTEGER}, is_integer),
    (
        {"type": "number", "not": {"type": "integer", "minimum": 3}},
        lambda text: not (is_integer(text) and value(text) >= 3),
    ),
    ({"type": "number", "minimum": 1, **NOT_INTEGER}, lambda text: not is_integer(text) and value(text) >= 1),
    ({"enum": [1, 2.5], **NOT_INTEGER}, lambda text: not is_integer(text) and value(text) in (1, Fraction(5, 2))),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, lambda text: not is_integer(text)),
    ({"not": {"oneOf": [{"type": "integer"}, {"type": "number"}]}}, is_integer),
    (
        {"oneOf": [{"type": "integer"}, {"type": "number", "multipleOf": 2}]},
        lambda text: is_integer(text) != (value(text) % 2 == 0),
    ),
    ({"type": "integer", "not": {"multipleOf": 2}}, lambda text: is_integer(text) and value(text) % 2 != 0),
    ({"multipleOf": 1, **NOT_INTEGER}, lambda text: not is_integer(text) and value(text) % 1 == 0),
]


@pytest.mark.parametrize(("schema", "expected"), CASES, ids=[json.dumps(schema) for schema, _ in CASES])
def test_draft_4(schema: dict[str, Any], expected: Callable[[str], bool]) -> None:
    named = Recogniser(schema, profile="exact", dialect="draft-04")
    inside = Recogniser({"$schema": DRAFT_4, "properties": {"a": schema}}, profile="exact")
    generated = Recogniser({"$schema": DRAFT_4, **schema})
    for text in (*INTEGERS, *OTHERS):
        assert named.allows(text) is expected(text), text
        assert inside.allows(f'{{"a":{text}}}') is expected(text), text
        assert expected(text) or not generated.allows(text), text


def test_items_that_differ() -> None:
    integers = {"$schema": DRAFT_4, "type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    automaton = Recogniser(integers, profile="exact")
    assert automaton.allows("[1,2]")
    assert not any(map(automaton.allows, ("[1,1]", "[1,1.0]", "[0,-0]")))
    others = {**integers, "items": {"type": "number", **NOT_INTEGER}}
    automaton = Recogniser(others, profile="exact")
    assert automaton.allows("[1.0,2e0]")
    assert not any(map(automaton.allows, ("[1]", "[1.0,10e-1]")))


@pytest.mark.parametrize("applicator", ["anyOf", "oneOf"])
def test_listed_integers_are_combined_with_other_values(applicator: str) -> None:
    schema = {"$schema": DRAFT_4, applicator: [{"type": "integer", "enum": [1]}, {"enum": ["a"]}]}
    automaton = Recogniser(schema, profile="exact")
    assert automaton.allows("1")
    assert automaton.allows('"a"')
    assert not automaton.allows("1.0")


def test_listed_integers_in_a_division_by_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expander, "_prefers_decision_diagram", lambda self, conjunction: True)
    rng = random.Random(1)
    for _ in range(40):
        lists = [
            (rng.random() < 0.6, rng.sample(range(5), rng.choice((1, 2, 3)))) for _ in range(rng.choice((2, 3, 9)))
        ]
        values = [{"type": "integer", "enum": listed} if is_int else {"enum": listed} for is_int, listed in lists]
        schema = {
            "$schema": DRAFT_4,
            "anyOf": [
                {"oneOf": [{"properties": {"k": one}, "required": ["k"]} for one in values]},
                {"enum": [{"b": 1}]},
            ],
            "type": "object",
        }
        automaton = Recogniser(schema, profile="exact")
        for number in range(6):
            for text in (f"{number}", f"{number}.0"):
                met = sum(number in listed and not (is_int and "." in text) for is_int, listed in lists)
                assert automaton.allows(f'{{"k":{text}}}') is (met == 1), (lists, text)


@pytest.mark.parametrize("dialect", ["draft-06", "draft-07", "2019-09", "2020-12"])
def test_later_drafts_go_by_the_value(dialect: str) -> None:
    automaton = Recogniser({"type": "integer"}, profile="exact", dialect=dialect)
    assert all(map(automaton.allows, ("1", "1.0", "1e2", "30e-1")))
    assert not automaton.allows("1.5")


@pytest.mark.skipif(not SUITE.exists(), reason=f"the official suite is not at {SUITE.name}")
def test_the_optional_tests_of_the_official_suite() -> None:
    assert not any(judge_suite(draft, "optional/zeroTerminatedFloats.json").wrong for draft in DRAFTS)
    assert judge_suite("draft4", "optional/zeroTerminatedFloats.json").right == 4
