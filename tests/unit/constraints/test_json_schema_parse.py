"""`JsonSchema.parse`: accepted texts, errors with their place, and linear time."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest

from guideway.constraints import JsonSchema
from guideway.errors import InvalidTextError
from guideway.grammar.recognizer import fits
from tests.helpers.work import lines

UNIQUE = {"type": "array", "uniqueItems": True}
SHOP = {
    "properties": {
        "name": {"type": "string", "maxLength": 3},
        "count": {"type": "integer", "minimum": 10, "maximum": 20},
        "parts": {"items": {"type": "integer"}, "maxItems": 2},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "text", "place", "said"),
    [
        (SHOP, '{"name": "abcd"}', "/name", 'line 1, column 10: "abcd" is not allowed'),
        (SHOP, '{"name": "é",\n "count": 5 }', "/count", "line 2, column 11: 5 is not allowed"),
        (SHOP, '{"name": "x", "count": 15.5}', "/count", "15.5 is not allowed"),
        (SHOP, '{"name": "x", "count": [1]}', "/count", "an array is not allowed"),
        (SHOP, '{"name": "x", "parts": [1, true]}', "/parts/1", "true is not allowed"),
        (SHOP, '{"name": "x", "parts": [1, 2, 3]}', "/parts", "nothing more can come; it could go on with ]}"),
        (SHOP, '{"count": 15}', "", 'the object cannot end here; it could go on with ,"name":""}'),
        (SHOP, '{"na/me": 1}', "/na~1me", 'the key "na/me" cannot stand here'),
        (SHOP, '{"name": "x", "name": "y"}', "/name", 'the key "name" cannot stand here'),
        ({"minimum": 10}, " 5", "", "line 1, column 2: 5 is not allowed"),
        ({"minimum": 10, "maxItems": 0}, "[5]", "/0", "5 is not allowed"),
        ({"items": UNIQUE}, "[[1], [2, [1, 1], 2e0]]", "/1", "the items 0 and 2 are equal"),
        ({"properties": {"a": UNIQUE}}, '{"b": [0, 0], "a": ["(", "\\u0028"]}', "/a", "the items 0 and 1 are equal"),
        ({"anyOf": [UNIQUE, {"minItems": 3, "type": "array"}]}, "[1, 1]", "", "the items 0 and 1 are equal"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, '"a"', "", '"a" is not allowed'),
        (UNIQUE, "[1,", None, "not JSON"),
    ],
)
def test_parse_errors_have_a_place(schema: Any, text: str, place: str | None, said: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        JsonSchema(schema).parse(text)
    assert said in str(caught.value)
    assert (caught.value.place, caught.value.text) == (place, text)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("[5]\n", "", "line 1, column 4: '\\n' is not allowed here; it could end here; the schema"),
        ("[ 5]", "/0", "column 2: ' ' is not allowed here; it could go on with 0]; the schema"),
        ("[2001]", "/0", "column 5: '1' is not allowed here; it could go on with ]; the schema"),
        ('{"a" :100}', "/a", "column 5: ' ' is not allowed here; it could go on with : 100}; the schema"),
        ('{"a":100}', "/a", "column 6: '1' is not allowed here; it could go on with  100}; the schema"),
        ('{"a": 1}', "", "column 8: '}' is not allowed here; it could go on with 00}; the schema"),
    ],
)
def test_errors_without_the_exact_profile(text: str, place: str, said: str) -> None:
    """With more than 2,000 composites, the exact profile exceeds a limit, and only one spelling is accepted."""
    source = JsonSchema({"enum": [*([number] for number in range(2001)), {"a": 100}]})
    assert source.parse("[5]") == [5]
    assert source.parse('{"a": 100}') == {"a": 100}
    with pytest.raises(InvalidTextError) as caught:
        source.parse(text)
    assert said in str(caught.value)
    assert "the schema is too large for other spellings" in str(caught.value)
    assert (caught.value.place, caught.value.text) == (place, text)


def test_numbers_beyond_floats_stay_exact() -> None:
    texts = ["1e99999999", "-1e400", "1e-400", "0e-999", "1e-5", "9" * 5000]
    values = JsonSchema({}).parse(f"[{', '.join(texts)}]")
    assert [Decimal(value) for value in values] == [
        *map(Decimal, texts[:4]),
        Decimal(float(texts[4])),
        Decimal(texts[5]),
    ]
    assert isinstance(values[4], float)


def test_huge_exponents_without_bounds_are_read() -> None:
    """What a mask allowed must be read: as `json.loads` reads it."""
    text = "[1e99999999999999999999, -1e99999999999999999999, 1e-99999999999999999999]"
    assert JsonSchema({"items": {"type": "number"}}).parse(text) == [float("inf"), float("-inf"), 0.0]


def test_parse_and_automaton_agree_on_equal_items() -> None:
    """Compares random arrays of few values, with equal and different items."""
    schema = {"items": {"anyOf": [UNIQUE, {"type": "object", "additionalProperties": True}, {"type": "number"}]}}
    source = JsonSchema({**schema, "type": "array"}, profile="exact")
    rng = random.Random(5)
    scalars = ["0", "-0.0", "1", "10e-1", "0.1E1", "true", "null", '"1"', '"\\u0031"', '""']

    def value(depth: int) -> str:
        kind = rng.randrange(4) if depth < 3 else 0
        if kind < 2:
            return rng.choice(scalars)
        if kind == 2:
            return "[" + ", ".join(value(depth + 1) for _ in range(rng.randrange(4))) + "]"
        keys = rng.sample(['"a"', '"b"', '"\\u0063"'], rng.randrange(3))
        return "{" + ",".join(f"{key}: {value(depth + 1)}" for key in keys) + "}"

    seen = set()
    for _ in range(600):
        text = "[" + ",".join(value(0) for _ in range(rng.randrange(1, 4))) + "]"
        try:
            source.parse(text)
            taken = True
        except InvalidTextError:
            taken = False
        assert taken == fits(source.grammar(), text), text
        seen.add((taken, "[[" in text))
    assert len(seen) == 4


def test_many_different_items_are_read_in_linear_time() -> None:
    source = JsonSchema({"type": "array", "uniqueItems": True, "items": {"type": "object"}})

    def cost(count: int) -> int:
        values = [{"a": i, "b": [i]} for i in range(count)]
        text = json.dumps(values)
        assert source.parse(text) == values
        with pytest.raises(InvalidTextError):
            source.parse(json.dumps([*values, values[0]]))
        return lines(lambda: source.parse(text))

    assert cost(2_000) < 2.1 * cost(1_000)
