"""Costs of single calls, as bounds on the work that the kernel counts (`CompileLimits.max_work`)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import guideway as gw
from guideway.compiler import CompileLimits
from tests.helpers.byte_tokens import BYTES, filled, is_legal


def properties(count: int, **more: Any) -> dict[str, Any]:
    named = {f"p{i}": {"type": "integer"} for i in range(count)}
    return {"type": "object", "properties": named, "additionalProperties": False, **more}


@pytest.mark.parametrize("profile", ["generation", "exact"])
def test_completions_of_many_optional_properties(profile: Any) -> None:
    source = gw.JsonSchema(properties(700, minProperties=350), profile=profile)
    limits = CompileLimits(max_work=5_000_000)  # 2.3 million are needed; 20 times as many if computed for each name
    matcher = gw.compile(source, BYTES, cache=False, limits=limits).matcher()
    shortest = matcher.completion()
    assert json.loads(shortest) == {f"p{n}": 0 for n in range(350)}
    assert matcher.min_tokens_to_complete() == len(shortest) + 1


@pytest.mark.parametrize("profile", ["generation", "exact"])
@pytest.mark.parametrize(
    "more",
    [
        {"minProperties": 4},
        {"minProperties": 5, "required": ["p6"]},
        {"minProperties": 4, "maxProperties": 5, "required": ["p2", "p0"]},
        {"minProperties": 3, "required": ["p2"], "additionalProperties": {"type": "boolean"}},
        {"minProperties": 9, "additionalProperties": {"type": "null"}},
    ],
)
def test_shortest_completions_of_some_properties(profile: Any, more: dict[str, Any]) -> None:
    """For any prefix, the completion has the predicted length and is valid."""
    schema = properties(7, **more)
    schema["properties"]["p1"] = {"type": "string", "minLength": 20}
    schema["properties"]["p5"] = {"type": "boolean"}
    source = gw.JsonSchema(schema, profile=profile, whitespace="compact")
    automaton = gw.compile(source, BYTES)
    for start in (b"", b'{"p5":true', b'{"p3":1,"p', b'{"p1":"', b'{"p0":1,"p2":2', b'{"p2"'):
        matcher = automaton.matcher()
        if matcher.validate(list(start)) != len(start):
            continue
        for byte in start:
            matcher.advance(byte)
        rest = bytes(matcher.completion())
        assert matcher.min_tokens_to_complete() == len(rest) + 1
        source.parse((start + rest).decode())


def test_many_alternatives_that_hold_themselves() -> None:
    """Each level would multiply the alternatives where every one entered its value by itself."""
    names = [f"k{i}" for i in range(70)]
    branches = [{"type": "object", "required": [name], "properties": {"not": {"$ref": "#/$defs/q"}}} for name in names]
    schema = {"$defs": {"q": {"type": "object", "anyOf": [*branches, {"maxProperties": 0}]}}, "$ref": "#/$defs/q"}
    automaton = gw.compile(gw.JsonSchema(schema, profile="exact"), BYTES)
    text = '{"k0": 1, "not": ' * 12 + '{"k1": 2}' + "}" * 12
    assert automaton.matcher().validate([*text.encode(), 256]) == len(text) + 1
    wrong = '{"k0": 1, "not": ' * 12 + '{"x": 2}' + "}" * 12
    assert automaton.matcher().validate([*wrong.encode(), 256]) < len(wrong) + 1


@pytest.mark.parametrize("inner", [False, True])
def test_items_that_must_differ(inner: bool) -> None:
    """Decides whether another item is possible without a search for the shortest items."""
    text = {"type": "string"}
    item: dict[str, Any] = {
        "type": "object",
        "properties": dict.fromkeys(("display", "root", "edition", "version", "target", "repository"), text),
        "required": ["root", "edition"],
    }
    if inner:
        item["properties"]["deps"] = {"type": "array", "uniqueItems": True, "items": copy.deepcopy(item)}
    schema = {"type": "array", "uniqueItems": True, "items": item}
    value = '{"root": "a", "edition": "b"}'
    deps = ', "deps": [' + value + "]}" if inner else "}"
    start = '[{"root": "a", "edition": "b"' + deps + ', {"root": "c"'

    tokens = [*(bytes([b]) for b in range(256)), b"", b"},", b"}, {", b'"}, {"', b"], [", b'"]}, {"', b'": "', b'", "']
    vocabulary = gw.Vocabulary(tokens, eos_ids=[256], special_ids=[256])
    limits = CompileLimits(max_work=200_000)  # per call; 5,000 are needed, or 47,000 with arrays inside
    matcher = gw.compile(gw.JsonSchema(schema, profile="exact"), vocabulary, cache=False, limits=limits).matcher()
    for byte in start.encode():
        assert is_legal(filled(matcher), byte)
        matcher.advance(byte)
