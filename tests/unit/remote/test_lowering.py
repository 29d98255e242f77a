"""Rewritten schemas: each instance has an encoded form that decodes to itself."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pytest

import guideway as gw
from guideway.errors import InvalidTextError, LimitExceededError
from guideway.remote.capabilities import capabilities
from guideway.remote.lowering import lower
from tests.campaigns.remote_schemas import DIALECTS, check

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "nick": {"type": ["string", "null"]},
        "age": {"type": "integer"},
    },
    "required": ["name"],
}
TREE = {"type": "object", "properties": {"v": {"type": "integer"}, "l": {"$ref": "#"}}, "required": ["v"]}
CASES: list[tuple[Any, list[Any]]] = [
    (PERSON, [{"name": "Ada"}, {"name": "Ada", "nick": None}, {"name": "Ada", "nick": "A", "age": 3}]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1, "b": 2}]),
    (
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": ["null", "string"]}], "items": False},
        [[], [1], [1, None]],
    ),
    ({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, [[1, "a", "b"], [1]]),
    ({"type": "string", "pattern": "^a+$"}, ["a", "aaa"]),
    (
        {"anyOf": [PERSON, {"type": "array", "items": PERSON}, {"type": "string"}]},
        ["x", {"name": "Ada"}, [{"name": "Bo"}]],
    ),
    ({"oneOf": [{**PERSON}, {**PERSON, "required": ["age"]}]}, [{"name": "Ada"}]),
    ({"enum": [1, "1", None, [1, 2], {"a": 1}]}, [1, "1", None, [1, 2], {"a": 1}]),
    ({"const": {"a": []}}, [{"a": []}]),
    (TREE, [{"v": 1}, {"v": 1, "l": {"v": 2, "l": {"v": 3}}}]),
    (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "integer"}}},
                {"properties": {"b": {}}, "required": ["b"]},
            ]
        },
        [{"b": 1}],
    ),
    ({}, [1, "a", None, [{}], {"a": 1}]),
    ({"properties": {"a": {"type": "integer"}}}, [{"a": 1}, 5, "x"]),
    (
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
        [{"x1": 1}, {}],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "if": {"required": ["a"]},
            "then": {"minProperties": 1},
        },
        [{"a": 1}],
    ),
    (
        {"type": "object", "properties": {"additional_properties": {"type": "integer"}}, "additionalProperties": True},
        [{"z": [1]}],
    ),
    (
        {"type": "object", "additionalProperties": True, "oneOf": [{**PERSON}, {**PERSON, "required": ["age"]}]},
        [{"name": "Ada", "other": True}],
    ),
    (
        {
            "$defs": {"named": PERSON},
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/named"}, "b": {"$ref": "#/$defs/named", "properties": {"c": {}}}},
        },
        [{"a": {"name": "Ada"}, "b": {"name": "Ada", "c": 1}}],
    ),
    (  # null fits only the second option
        {"anyOf": [{"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, {}]},
        [[], ["a", 1], [None]],
    ),
    (
        {"anyOf": [PERSON], "oneOf": [{"properties": {"x": {"type": "null"}}}]},
        [{"name": "Ada", "x": None}],
    ),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("schema", "instances"), CASES, ids=lambda one: json.dumps(one)[:40])
def test_no_instance_is_lost(schema: Any, instances: list[Any], dialect: str) -> None:
    found: Counter[str] = Counter()
    check(schema, [(one, True) for one in instances], capabilities(dialect), found)
    assert found["valid"] >= len(instances)
    assert found["narrowed"] == 0


def test_a_lost_instance_is_reported() -> None:
    given = capabilities("openai")
    lowered = lower(PERSON, given.subset)
    with pytest.raises(InvalidTextError):
        lowered.codec.encode({"name": "Ada", "other": 1})
    with pytest.raises(InvalidTextError):
        lowered.codec.decode([])


def test_notes_name_what_is_not_enforced() -> None:
    notes = {(one.place, one.keyword): one.holder for one in lower(PERSON, capabilities("openai").subset).notes}
    assert notes["/properties/name", "minLength"] == "checked_locally"
    assert notes["", "required"] == "provider"
    vllm = {(one.place, one.keyword): one.holder for one in lower(PERSON, capabilities("vllm").subset).notes}
    assert vllm["/properties/name", "minLength"] == "provider"


def test_decoding_refuses_what_has_no_original() -> None:
    tuples = lower(CASES[2][0], capabilities("openai").subset).codec
    with pytest.raises(InvalidTextError, match="missing"):
        tuples.decode({"item_1": None, "item_2": {"value": "a"}})
    maps = lower(CASES[1][0], capabilities("anthropic").subset).codec
    with pytest.raises(InvalidTextError, match="twice"):
        maps.decode({"additional_properties": [{"key": "a", "value": 1}, {"key": "a", "value": 2}]})
    texts = lower({}, capabilities("openai").subset).codec
    with pytest.raises(InvalidTextError, match="JSON text"):
        texts.decode({"value": "{"})


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1e99999999999999999999"])
def test_a_number_that_is_too_large_for_a_float_is_an_invalid_text(number: str) -> None:
    options = [{"type": "object", "properties": {"x": {"type": "string"}}}, {"type": "number"}]
    reader = gw.plan("openai", gw.JsonSchema({"type": "object", "properties": {"a": {"anyOf": options}}}))._reader
    with pytest.raises(InvalidTextError):
        reader.value(f'{{"a": {number}}}')
    assert reader.value('{"a": 2.5}') == {"a": 2.5}


def test_a_reference_with_a_long_index_has_no_target() -> None:
    schema = {"anyOf": [{"$ref": "#/anyOf/" + "9" * 5000}, {"type": "null"}]}
    notes = lower(schema, capabilities("openai").subset).notes
    assert ("/anyOf/0", "$ref", "checked_locally") in [(one.place, one.keyword, one.holder) for one in notes]


def test_limits() -> None:
    deep: Any = {"type": "integer"}
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    with pytest.raises(LimitExceededError, match="nested"):
        lower(deep, capabilities("openai").subset)


def test_wide_unions_take_linear_time() -> None:
    def seconds(count: int) -> float:
        options = [
            {"type": "object", "properties": {f"p{at}": {"type": "string"}, "q": {"type": "integer"}}}
            for at in range(count)
        ]
        started = time.process_time()
        lower({"anyOf": options}, capabilities("openai").subset)
        return time.process_time() - started

    small = min(seconds(500) for _ in range(3))
    assert seconds(4000) < 30 * small + 0.3  # 8 times as much; 64 times if all pairs were compared


@pytest.mark.parametrize("size", [101, 5000])
def test_deep_schemas_are_refused_without_recursion(size: int) -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(size):
        schema = {"type": "array", "items": schema}
    with pytest.raises(LimitExceededError, match="deeper than"):
        lower(schema, capabilities("openai").subset)


def test_references_that_name_only_each_other_end() -> None:
    for one in ({"$ref": "#/$defs/b"}, {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}, {"type": "null"}]}):
        schema = {"$defs": {"a": one, "b": {"$ref": "#/$defs/a"}}, "anyOf": [{"$ref": "#/$defs/a"}, {"type": "object"}]}
        for name in ("openai", "anthropic", "llama-server"):
            lower(schema, capabilities(name).subset)
