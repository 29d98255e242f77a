"""`whitespace="indented"` allows exactly what `json.dumps(…, indent=2)` writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

import guideway as gw
from guideway.constraints import JsonSchema
from guideway.grammar.recognizer import accepts, byte_automaton
from tests.helpers.byte_tokens import BYTES

TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
}
SCHEMAS: list[Any] = [
    TREE,
    True,
    {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
    {"type": "array", "contains": {"type": "null"}, "items": {"type": ["null", "object"]}},
    {"properties": {"a": {"type": "object", "minProperties": 1}, "b": {"enum": [[], {}, [1, {"c": [2, 3]}]]}}},
    {"const": {"a": [], "b": {}, "c": [[1], {"d": None}]}},
    {
        "anyOf": [
            {"type": "array", "maxItems": 0},
            {"type": "object", "required": ["x"], "additionalProperties": {"type": "string"}},
        ]
    },
    {"type": "array", "uniqueItems": True, "items": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}},
]


def indented(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


@pytest.mark.parametrize("schema", SCHEMAS, ids=repr)
def test_examples_are_what_json_writes(schema: Any) -> None:
    texts = JsonSchema(schema, whitespace="indented").examples(12, seed=3)
    for text in texts:
        assert text == indented(json.loads(text))


@pytest.mark.parametrize("schema", SCHEMAS, ids=repr)
def test_indented_allows_the_values_of_one_line(schema: Any) -> None:
    automaton = byte_automaton(JsonSchema(schema, whitespace="indented").grammar())
    other = byte_automaton(JsonSchema(schema).grammar())
    values = [json.loads(text) for text in JsonSchema(schema).examples(12, seed=4)]
    for value in [
        *values,
        [],
        {},
        [[]],
        [{}],
        [1, 2, 1],
        {"a": {"x": []}, "b": []},
        {"name": "", "children": []},
        [[1], [1]],
    ]:
        right = accepts(other, json.dumps(value, ensure_ascii=False))
        assert accepts(automaton, indented(value)) is right, value
        if right and indented(value) != json.dumps(value):
            assert not accepts(automaton, json.dumps(value))
            assert not accepts(automaton, indented(value).replace("\n", "\n ", 1))


def test_values_below_eight_levels_are_on_one_line() -> None:
    automaton = byte_automaton(JsonSchema({"items": {"$ref": "#"}}, whitespace="indented").grammar())
    value, text = [[]], "[[]]"  # the ninth and tenth array
    for level in reversed(range(8)):
        value = [value]
        text = f"[\n{level * '  '}  {text}\n{level * '  '}]"
        assert json.loads(text) == value
    assert accepts(automaton, text)
    assert not accepts(automaton, indented(value))
    assert accepts(automaton, indented(value[0][0]))


def test_budgets_hold() -> None:
    matcher = gw.compile(JsonSchema(TREE, whitespace="indented"), BYTES).matcher()
    assert matcher.completion() == b'{\n  "name": ""\n}'
    assert matcher.min_tokens_to_complete() == len(matcher.completion()) + 1
