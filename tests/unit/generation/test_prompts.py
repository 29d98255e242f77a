"""The prompt format belongs to the weights of `tiny`: these strings change only with a new training."""

from __future__ import annotations

import pytest

from guideway.generation.prompts import MAX_NODES, extraction_prompt, shape

PERSON: dict[str, object] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "mood": {"enum": ["good", "bad"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "when": {"type": "string", "format": "date"},
        "address": {"$ref": "#/$defs/Address"},
    },
    "$defs": {"Address": {"type": "object", "properties": {"street": {"type": "string"}}}},
}


def test_a_record_is_written_as_a_skeleton() -> None:
    assert shape(PERSON) == (
        '{"name": string, "age": integer | null, "mood": "good" | "bad", "tags": [string], "when": date, '
        '"address": {"street": string}}'
    )


def test_the_prompt_is_exact() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert extraction_prompt("Ada\nLovelace", schema) == 'Text: Ada\nLovelace\nShape: {"name": string}\nRecord:\n'


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "any"),
        ({"const": "é"}, '"é"'),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "string", "format": "date-time"}, "datetime"),
        ({"type": "string", "format": "uri"}, "string"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{string: number}"),
        ({"type": "object", "additionalProperties": False}, "{}"),
        ({"type": "object"}, "{string: any}"),
        ({"prefixItems": [{"type": "number"}, {"type": "boolean"}]}, "[number, boolean]"),
        ({"allOf": [{"type": "integer"}]}, "integer"),
        ({"enum": []}, "any"),
        ({"$ref": "https://example.com/elsewhere"}, "any"),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "null"}}}, "null"),
        ({"properties": {"a": {"$ref": "#name"}}}, '{"a": any}'),
        ({"type": "whatever"}, "any"),
        ({"anyOf": [{"type": "integer"}, {"type": "integer"}]}, "integer"),
    ],
)
def test_each_keyword(schema: dict[str, object], expected: str) -> None:
    assert shape(schema) == expected


def test_a_schema_that_refers_to_itself_ends() -> None:
    loop: dict[str, object] = {"$ref": "#"}
    assert shape(loop) == "any"
    tree: dict[str, object] = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    assert len(shape(tree)) < 40 * MAX_NODES


def test_a_huge_schema_ends_early() -> None:
    wide: dict[str, object] = {"type": "object", "properties": {f"k{i}": {"type": "string"} for i in range(100_000)}}
    assert len(shape(wide)) < 40 * MAX_NODES
    assert shape({"enum": list(range(100_000))}).endswith("...")
