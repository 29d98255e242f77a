"""Property names that an enum or a pattern lists: few, many, and with other keywords."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guideway.frontends.json_schema.strings import MAX_NAMES, MAX_TEXTS
from tests.suites.verdicts import Recogniser

COUNTS = (1, MAX_TEXTS, MAX_TEXTS + 1, 200, 1000, MAX_NAMES, MAX_NAMES + 1)


def names(count: int) -> list[str]:
    return [f"name{i}" for i in range(count)]


def check(schema: Any, verdicts: list[tuple[Any, bool]]) -> None:
    automaton = Recogniser(schema, profile="exact")
    for value, expected in verdicts:
        assert automaton.allows(json.dumps(value)) is expected, value


@pytest.mark.parametrize("count", COUNTS)
def test_an_enum_of_names(count: int) -> None:
    first, last = "name0", f"name{count - 1}"
    enum = {"enum": names(count)}
    check(
        {"type": "object", "propertyNames": enum},
        [({}, True), ({first: 1}, True), ({last: 1}, True), ({f"name{count}": 1}, False), ({"other": 1}, False)],
    )
    check(
        {"type": "object", "propertyNames": enum, "additionalProperties": {"type": "integer"}},
        [({last: 1}, True), ({last: "1"}, False), ({"other": 1}, False)],
    )
    check({"type": "object", "propertyNames": enum, "additionalProperties": False}, [({}, True), ({last: 1}, False)])
    check(
        {
            "type": "object",
            "propertyNames": enum,
            "properties": {last: {"type": "string"}, "other": {}},
            "additionalProperties": {"type": "integer"},
        },
        [({last: "1"}, True), ({last: 1}, False), ({"other": 1}, False), ({"nam": 1}, False)],
    )
    check(
        {"type": "object", "propertyNames": enum, "required": [last]},
        [({last: 1}, True), ({}, False), ({last: 1, "other": 1}, False)],
    )
    check(
        {"type": "object", "propertyNames": enum, "patternProperties": {"0$": {"type": "integer"}}},
        [({first: 1}, True), ({first: "1"}, False), ({"x0": 1}, False)],
    )
    check(
        {"type": "object", "propertyNames": enum, "minProperties": min(count, 2)},
        [(dict.fromkeys((first, last), 1), True), ({}, False)],
    )


@pytest.mark.parametrize("count", COUNTS)
def test_a_required_name_that_no_enum_has(count: int) -> None:
    check({"type": "object", "propertyNames": {"enum": names(count)}, "required": ["other"]}, [({"other": 1}, False)])


@pytest.mark.parametrize("count", COUNTS)
def test_names_not_in_an_enum(count: int) -> None:
    last = f"name{count - 1}"
    check(
        {"type": "object", "propertyNames": {"not": {"enum": names(count)}}},
        [({"other": 1}, True), ({last: 1}, False), ({f"name{count}": 1}, True)],
    )
    check(
        {"type": "object", "not": {"propertyNames": {"enum": names(count)}}},
        [({"other": 1}, True), ({last: 1}, False), ({last: 1, "other": 1}, True), ({}, False)],
    )


@pytest.mark.parametrize("count", [1, MAX_TEXTS, MAX_TEXTS + 1, 200, 1000])
def test_a_pattern_that_lists_names(count: int) -> None:
    last = f"name{count - 1}"
    schema = {
        "type": "object",
        "patternProperties": {f"^({'|'.join(names(count))})$": {"type": "integer"}},
        "additionalProperties": False,
    }
    check(schema, [({last: 1}, True), ({last: "1"}, False), ({"other": 1}, False), ({}, True)])
    del schema["additionalProperties"]
    check(schema, [({last: 1}, True), ({last: "1"}, False), ({"other": "1"}, True)])


def test_two_enums_of_names() -> None:
    many = {"enum": names(1000)}
    check(
        {"type": "object", "allOf": [{"propertyNames": many}, {"propertyNames": {"enum": ["name7", "x"]}}]},
        [({"name7": 1}, True), ({"x": 1}, False), ({"name8": 1}, False)],
    )
    check(
        {"type": "object", "propertyNames": many, "anyOf": [{"required": ["name7"]}, {"required": ["name999"]}]},
        [({"name7": 1}, True), ({"name999": 1}, True), ({"name8": 1}, False)],
    )
