"""`JsonSchema.excluding`: a schema without certain values at certain locations."""

from __future__ import annotations

from typing import Any

import pytest

from guideway.constraints import JsonSchema
from guideway.errors import InvalidTextError

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
