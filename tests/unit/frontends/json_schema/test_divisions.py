"""Objects that are divided by cases accept the instances that the package `jsonschema` accepts."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from guideway.errors import ConstraintError
from guideway.frontends.json_schema.dnf import Expander
from tests.helpers.counts import seeds
from tests.suites.verdicts import Recogniser

KEYS = ["a", "b", "cc", "d1"]
VALUES: list[Any] = [1, 2, 3, "x", "y", None, True, False]


def judge(schema: dict[str, Any], instance: Any) -> tuple[bool, bool]:
    """The verdict of the exact profile, and the expected one."""
    found = Recogniser(schema, profile="exact").allows(json.dumps(instance))
    return found, jsonschema.Draft202012Validator(schema).is_valid(instance)


def test_a_condition_that_all_cases_meet_is_none() -> None:
    sizes = [{"maxProperties": 2}, {"minProperties": 3}]
    keys = [{"properties": {key: {"const": 1}}, "required": [key]} for key in "abcdef"]
    schema = {"type": "object", "oneOf": [*sizes, *keys]}
    for instance in ({"x": 1, "y": 1, "z": 1}, {"x": 1}, {"a": 2}, {}):
        assert judge(schema, instance) == (True, True), instance
    for instance in ({"a": 1}, {"a": 1, "b": 1, "c": 1}, {"f": 1, "x": 0, "y": 0}):
        assert judge(schema, instance) == (False, False), instance


def value(rng: random.Random) -> Any:
    """A random schema of a value."""
    return rng.choice(
        [
            lambda: {"enum": rng.sample(VALUES, rng.randint(1, 3))},
            lambda: {"not": {"enum": rng.sample(VALUES, 2)}},
            lambda: {"type": rng.choice(["integer", "string", "boolean", "null"])},
            lambda: {"minimum": 2},
            lambda: rng.random() < 0.5,
            lambda: {"properties": {"a": {"const": rng.choice([1, "x"])}}, "required": rng.sample(KEYS[:2], 1)},
        ]
    )()


def one_object(rng: random.Random) -> dict[str, Any]:
    """A random schema of an object."""
    made: dict[str, Any] = {}
    if rng.random() < 0.8:
        made["properties"] = {key: value(rng) for key in rng.sample(KEYS, rng.randint(1, 3))}
    if rng.random() < 0.4:
        made["required"] = rng.sample(KEYS, rng.randint(1, 2))
    if rng.random() < 0.3:
        made["additionalProperties"] = rng.choice([False, value(rng)])
    if rng.random() < 0.2:
        made["patternProperties"] = {rng.choice(["^c", "1$", "^[ab]$"]): value(rng)}
    if rng.random() < 0.2:
        made["minProperties"] = rng.randint(1, 2)
    if rng.random() < 0.2:
        made["maxProperties"] = rng.randint(1, 3)
    return made


def combined(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """A random combination of schemas of objects."""
    kind = rng.choice(["anyOf", "oneOf", "oneOf", "not", "allOf", "if", "object"]) if depth else "object"
    if kind == "object":
        return one_object(rng)
    if kind == "not":
        return {"not": one_object(rng), **one_object(rng)}
    if kind == "if":
        return {name: combined(rng, depth - 1) for name in ("if", "then", "else")}
    return {kind: [combined(rng, depth - 1) for _ in range(rng.choice([2, 2, 3]))]}


def instance(rng: random.Random, depth: int = 1) -> dict[str, Any]:
    return {
        key: instance(rng, 0) if depth and rng.random() < 0.15 else rng.choice(VALUES)
        for key in rng.sample([*KEYS, "e", "c1"], rng.randint(0, 4))
    }


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_random_combinations(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expander, "_prefers_decision_diagram", lambda self, conjunction: True)
    rng, accepted, compared = random.Random(seed), 0, 0
    for _ in range(120):
        schema = {"type": "object", "allOf": [combined(rng)]}
        try:
            automaton = Recogniser(schema, profile="exact")
        except ConstraintError:
            continue  # unsatisfiable, or refused with its reason
        validator = jsonschema.Draft202012Validator(schema)
        for _ in range(8):
            given = instance(rng)
            valid = validator.is_valid(given)
            assert automaton.allows(json.dumps(given)) is valid, (schema, given)
            accepted, compared = accepted + valid, compared + 1
    assert compared > 500
    assert accepted > compared // 20
