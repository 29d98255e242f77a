"""`JsonSchema.excluding`: a schema without certain values at certain locations."""

from __future__ import annotations

import json
from typing import Any

import pytest

import guideway as gw
from guideway.constraints import JsonSchema
from guideway.errors import InvalidTextError
from tests.helpers.byte_tokens import BYTES

DIALECTS = ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"]
NUMBERS = {"type": "array", "items": {"type": "integer"}}


def is_allowed(schema: JsonSchema, text: str) -> bool:
    try:
        schema.parse(text)
    except InvalidTextError:
        return False
    return True


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "schema",
    [
        NUMBERS,
        {"$ref": "#/definitions/numbers", "definitions": {"numbers": NUMBERS}},
        {"type": "array", "items": {"$ref": "#/definitions/number"}, "definitions": {"number": {"type": "integer"}}},
    ],
    ids=["no reference", "reference at the root", "reference of the items"],
)
def test_an_item_in_every_draft(schema: dict[str, Any], dialect: str) -> None:
    once = JsonSchema(schema, dialect=dialect).excluding([("/1", 5)], [1, 5])
    assert [is_allowed(once, text) for text in ("[1, 5]", "[5, 1]", "[1, 4]", '[1, "a"]')] == [False, True, True, False]
    twice = once.excluding([("/1", 4)], [1, 4])
    assert [is_allowed(twice, text) for text in ("[1, 5]", "[1, 4]", "[1, 3]")] == [False, False, True]


def test_only_the_given_location_of_a_recursive_schema() -> None:
    tree = {"properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["n"]}
    without = JsonSchema(tree).excluding([("/n", 5)], {"n": 5})
    assert not is_allowed(without, '{"n": 5}')
    assert is_allowed(without, '{"n": 4, "next": {"n": 5}}')


def test_unevaluated_properties_keep_their_meaning() -> None:
    schema = {"patternProperties": {"^a": True}, "unevaluatedProperties": False}
    assert not is_allowed(JsonSchema(schema).excluding([("/b", 5)], {"b": 5}), '{"b": 4}')


def test_no_value_is_allowed_by_a_schema_that_allows_none() -> None:
    assert not is_allowed(JsonSchema(False).excluding([("/n", 5)], {"n": 5}), '{"n": 4}')


def test_the_order_of_keys_stays() -> None:
    schema = {"properties": {"b": {"type": "null"}, "a": {"enum": [5, 6]}}, "required": ["b", "a"]}
    without = JsonSchema({**schema, "type": "object", "additionalProperties": False}).excluding([("/a", 5)], {"a": 5})
    assert without.examples() == ['{"b": null, "a": 6}']


INTEGERS = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("schema", "place", "text"),
    [
        ({"allOf": [INTEGERS]}, "/a", '{"b": 1, "a": 5}'),
        ({"type": "array", "items": {"allOf": [INTEGERS]}}, "/0/a", '[{"b": 1, "a": 5}]'),
        ({"properties": {"o": {"anyOf": [INTEGERS, {"type": "null"}]}}}, "/o/a", '{"o": {"b": 1, "a": 5}}'),
        ({"properties": {"o": {**INTEGERS, "allOf": [{"required": ["b"]}]}}}, "/o/a", '{"o": {"b": 1, "a": 5}}'),
        ({"additionalProperties": {"type": "integer"}}, "/a", '{"z": 2, "b": 3, "a": 5}'),
        (
            {"items": {"properties": {"b": {"const": 1}}, "additionalProperties": {"type": "integer"}}},
            "/0/a",
            '[{"b": 1, "z": 2, "a": 5}]',
        ),
        ({"properties": {"o": {"type": "object"}}}, "/o/a", '{"o": {"z": {"a": 1}, "y": [], "a": 5}}'),
    ],
)
def test_the_text_before_the_value_still_fits(schema: dict[str, Any], place: str, text: str) -> None:
    whole = JsonSchema(schema)
    without = whole.excluding([(place, 5)], json.loads(text))
    ids = list(text.encode())
    assert gw.compile(whole, BYTES).matcher().validate(ids) == len(ids)
    assert gw.compile(without, BYTES).matcher().validate(ids) == text.index("5") + 1  # "5" may begin "50"
    assert not is_allowed(without, text)
