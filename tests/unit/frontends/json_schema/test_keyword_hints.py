"""Errors of keyword values suggest what the author may have meant."""

from __future__ import annotations

import pytest

import guideway as gw


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"type": "int"}, "got 'int', did you mean 'integer'?"),
        ({"type": "STRING"}, "got 'STRING', did you mean 'string'?"),
        ({"type": "Float"}, "did you mean 'number'?"),
        ({"type": ["str", "null"]}, "got 'str', did you mean 'string'?"),
        ({"type": "dict"}, "did you mean 'object'?"),
        ({"type": "strnig"}, "did you mean 'string'?"),
        ({"type": "None"}, "did you mean 'null'?"),
        ({"type": "any"}, "leave the keyword out"),
        ({"type": "qqq"}, "got 'qqq'"),
        ({"type": 3}, "got 3"),
        ({"properties": {"a": {"type": "bool"}}}, "at '/properties/a/type'"),
        ({"type": "array", "items": [{"type": "string"}]}, 'dialect="draft-07"'),
        ({"type": "array", "items": [{"type": "string"}]}, "prefixItems"),
    ],
)
def test_hints(schema: dict[str, object], hint: str) -> None:
    with pytest.raises(gw.errors.InvalidConstraintError) as caught:
        gw.JsonSchema(schema)
    assert hint in str(caught.value)


def test_the_suggested_dialect_works() -> None:
    schema = {"type": "array", "items": [{"const": 1}], "additionalItems": False, "minItems": 1}
    assert gw.JsonSchema(schema, dialect="draft-07").parse("[1]") == [1]
