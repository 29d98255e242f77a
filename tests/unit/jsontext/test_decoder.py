"""The JSON reader for schemas: values, and errors with their position."""

from __future__ import annotations

import json
import sys
from decimal import Decimal

import pytest

import guideway as gw
from guideway.errors import GuidewayError, InvalidConstraintError, LimitExceededError
from guideway.jsontext import copying
from guideway.jsontext.copying import copy_schema, copy_value
from guideway.jsontext.decoder import read_json

DEEP = '{"a": [' * 1500 + "1" + "]}" * 1500


@pytest.mark.parametrize(
    "text",
    [
        ' {"a": [1, -2, true, false, null, "x\\n\\u00e9\\ud83e\\udd80"], "b": {}, "c": [[], {"d": ""}]} ',
        "[]",
        '"a"',
        '{"a": 1, "b": 2, "a": 3}',
        "\t[\r\n 0 ,\n1]",
    ],
)
def test_values_are_those_of_the_standard_library(text: str) -> None:
    assert read_json(text) == json.loads(text)
    assert json.dumps(read_json(text)) == json.dumps(json.loads(text))  # the order of keys too


def test_numbers_are_exact() -> None:
    assert read_json("[1e2, 0.1, -0, -0.0]") == [Decimal("1e2"), Decimal("0.1"), 0, 0]


def test_depth_uses_no_stack() -> None:
    value, depth = read_json(DEEP), 0
    while isinstance(value, (dict, list)):
        value, depth = next(iter(value.values())) if isinstance(value, dict) else value[0], depth + 1
    assert depth == 3000


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("", InvalidConstraintError, "line 1, column 1: expected a JSON value"),
        ("[1,\n 2,\n]", InvalidConstraintError, "line 3, column 1: expected a JSON value"),
        ("[1 2]", InvalidConstraintError, "line 1, column 4: expected ',' or the closing bracket"),
        ("[1}", InvalidConstraintError, "line 1, column 3: expected ',' or the closing bracket"),
        ('{"a" 1}', InvalidConstraintError, "line 1, column 6: expected ':'"),
        ("{a: 1}", InvalidConstraintError, "line 1, column 2: expected a JSON string"),
        ('["a\\x"]', InvalidConstraintError, "line 1, column 2: expected a JSON string"),
        ('"a\n"', InvalidConstraintError, "line 1, column 1: expected a JSON string"),
        ("[1] 2", InvalidConstraintError, "line 1, column 5: expected the end of the text"),
        ("01", InvalidConstraintError, "line 1, column 2: expected the end of the text"),
        ("NaN", InvalidConstraintError, "line 1, column 1: expected a JSON value"),
        ("1" * 1001, InvalidConstraintError, "line 1, column 1002: expected a number of at most 1000 digits"),
        ('"\\ud800"', InvalidConstraintError, "line 1, column 9: a string contains a lone surrogate"),
        ("1e99999999999999999999", LimitExceededError, "line 1, column 23: numbers may have at most 1000 digits"),
        ("[" * 4001, LimitExceededError, "line 1, column 4002: the JSON text is nested deeper than 4000"),
    ],
)
def test_invalid_json_is_reported_with_its_place(text: str, kind: type[GuidewayError], told: str) -> None:
    with pytest.raises(kind) as raised:
        read_json(text)
    assert told in str(raised.value)


def test_numbers_may_have_a_thousand_digits() -> None:
    largest = 10**1000 - 1
    for number in (largest, -largest):
        assert gw.JsonSchema({"const": number}).grammar().nodes
        assert copy_value([number]) == [number]
        with pytest.raises(LimitExceededError, match="at most 1000 digits"):
            copy_value([number * 10])
    assert read_json(str(largest)) == largest


def test_depth_is_bounded() -> None:
    with pytest.raises(LimitExceededError, match="line 1, column 32002: the JSON text is nested deeper than 4000"):
        gw.JsonSchema('{"not": ' * 4001 + "{}" + "}" * 4001)
    with pytest.raises(LimitExceededError, match="line 1, column 7: the JSON text is nested deeper than 5"):
        read_json("[" * 7 + "]" * 7, deepest=5)


def test_interpreter_int_limit_is_reported_as_our_error() -> None:
    if not hasattr(sys, "set_int_max_str_digits"):
        pytest.skip("this Python has no limit to the digits of an int")
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        with pytest.raises(LimitExceededError, match="line 1, column 803: numbers may have at most"):
            read_json("[ " + "9" * 800 + "]")
    finally:
        sys.set_int_max_str_digits(before)


def test_text_says_what_a_mapping_says() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "number", "multipleOf": 0.01, "maximum": 1e3}}}
    text = read_json(json.dumps(schema))
    assert copy_schema(text) == copy_schema(schema) == (text, False)  # a property of that name is no identifier
    assert copy_schema(read_json('{"items": {"id": "urn:a"}}'))[1]
    numbers = {"maximum": Decimal("0e-99999"), "enum": [Decimal("1.50")]}
    assert copy_schema(numbers)[0] == {"maximum": 0, "enum": [Decimal("1.5")]}
    for beyond in (Decimal("1e1000"), Decimal("nan")):
        with pytest.raises(GuidewayError, match="at '/maximum'"):
            copy_schema({"maximum": beyond})


def test_large_schemas_are_copied_as_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {f"p{i}": {"type": "object", "enum": [1, 0.5, None]} for i in range(40_000)}
    assert copy_schema(schema) == (copy_value(schema), False)  # False: no identifiers to look for
    assert copy_schema({**schema, "p0": {"$id": "urn:a"}})[1]
    monkeypatch.setattr(copying, "MAX_VALUES", 200_000)
    with pytest.raises(LimitExceededError, match="more than 200,000 values"):
        copy_schema(schema)
