"""Schemas in requests: the grammar is that of the same schema text, whatever the spelling and size of its numbers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import guideway as gw
from guideway.batch.bodies import read_body
from guideway.batch.reading import strict_loads
from guideway.batch.requests import own_request
from guideway.batch.worker import constraint_of_row, filled
from guideway.constraints import of
from guideway.errors import ConstraintError
from guideway.grammar.program import encode
from guideway.integrations._common.requests import requested
from guideway.jsontext.encoder import exact_json
from guideway.jsontext.numbers import WrittenFloat, written_float
from tests.helpers.counts import counts

CHAT = "/v1/chat/completions"
TEXTS = [
    "0.12345678901234567890123",
    "1E2",
    "100.0",
    "-0.0",
    "1e-400",
    "3.141592653589793238",
    "9007199254740993.5",
    "1.50",
]
TEXTS += ["0.1", "2", "1e22", "123456789012345678901234567890", "0.10000000000000000001", "-1e-7"]


def schema(rng: random.Random, depth: int = 2) -> str:
    """The text of a schema with numbers."""
    number = rng.choice(TEXTS)
    kinds = [
        f'{{"const": {number}}}',
        f'{{"enum": [{number}, {rng.choice(TEXTS)}, "a"]}}',
        f'{{"type": "number", "minimum": {number}}}',
        f'{{"type": "number", "exclusiveMaximum": {number}, "description": "float(\'1\')"}}',
        f'{{"const": {{"a": [{number}]}}}}',
    ]
    if depth:
        inner = schema(rng, depth - 1)
        kinds += [
            f'{{"type": "object", "properties": {{"a": {inner}}}, "required": ["a"]}}',
            f'{{"type": "array", "items": {inner}, "maxItems": 2}}',
            f'{{"anyOf": [{inner}, {schema(rng, depth - 1)}]}}',
        ]
    return rng.choice(kinds)


def body(fields: str) -> Any:
    text = f'{{"model": "m", "messages": [{{"role": "user", "content": "x"}}], "temperature": 0.50, {fields}}}'
    return read_body(CHAT, "x", strict_loads(text)).output


def tag(text: str) -> str:
    return f'{{"type": "structural_tag", "format": {{"type": "json_schema", "json_schema": {text}}}}}'


SENT: dict[str, Callable[[str], Any]] = {
    "response_format": lambda text: body(
        f'"response_format": {{"type": "json_schema", "json_schema": {{"name": "x", "schema": {text}}}}}'
    ),
    "structured_outputs": lambda text: body(f'"structured_outputs": {{"json": {text}}}'),
    "structured_outputs, text": lambda text: body(f'"structured_outputs": {{"json": {json.dumps(text)}}}'),
    "structural tag": lambda text: body(f'"response_format": {tag(text)}'),
    "line": lambda text: own_request(strict_loads(f'{{"custom_id": "x", "prompt": "x", "schema": {text}}}')).output,
    "cell": lambda text: constraint_of_row(text, None),
    "vLLM": lambda text: of(requested("json", text)),
    "vLLM, structural tag": lambda text: of(requested("structural_tag", tag(text))),
}


@counts(60, 3_000)
@pytest.mark.parametrize("name", SENT)
def test_grammars(name: str, count: int) -> None:
    rng = random.Random(name)
    made = 0
    for _ in range(count):
        text = schema(rng)
        try:
            local = encode(gw.JsonSchema(text).grammar())
        except ConstraintError:
            continue
        assert encode(SENT[name](text).grammar()) == local, text
        made += 1
    assert made > count // 2


def test_digits_are_enforced() -> None:
    text = '{"const": 0.12345678901234567890123}'
    for send in SENT.values():
        assert json.dumps(send(text).parse("0.12345678901234567890123"), default=str)
        with pytest.raises(gw.errors.InvalidTextError):
            send(text).parse("0.12345678901234568")


def test_written_floats() -> None:
    value = json.loads('{"a": [1E2, 1.5, "float(\'1\')"], "b": 0.50}', parse_float=written_float)
    assert value == {"a": [100.0, 1.5, "float('1')"], "b": 0.5}
    assert [type(one) for one in value["a"][:2]] == [WrittenFloat, float]
    assert exact_json(value) == '{"a": [1E2, 1.5, "float(\'1\')"], "b": 0.50}'
    assert json.dumps(value) == '{"a": [100.0, 1.5, "float(\'1\')"], "b": 0.5}'
    assert f"{value['b']} {value}" == """0.5 {'a': [100.0, 1.5, "float('1')"], 'b': 0.5}"""
    assert filled("costs {price}", ["price"], strict_loads('{"price": 1.50}')) == "costs 1.5"


def test_numbers_with_large_exponents_are_written_in_short() -> None:
    assert exact_json({"a": (Decimal("1E+999999999"), 1)}) == '{"a": [1E+999999999, 1]}'


def test_values_that_contain_themselves_are_not_written() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="Circular"):
        exact_json(value)


@pytest.mark.parametrize("number", TEXTS)
def test_deep_schemas(number: str) -> None:
    inner = f'{{"const": {number}}}'
    for depth in (10, 400):
        text = '{"items": ' * depth + inner + "}" * depth
        local = encode(gw.JsonSchema(text).grammar())
        for name in ("response_format", "structured_outputs", "structured_outputs, text", "line", "vLLM"):
            assert encode(SENT[name](text).grammar()) == local, (name, number)
