"""Arrays of different items that may hold each other without end, judged by the `jsonschema` package."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import guideway as gw
from tests.campaigns.walks import TOKENS, VOCABULARY, accepts, walked

from .judge import Judge
from .spellings import respelled

LIMITED: list[int] = []  # seeds of walks that were given up
LEAVES: tuple[Any, ...] = ({"enum": [1, 2]}, {"type": "null"}, {"const": "x"}, {"type": "boolean"}, {"type": "integer"})


def drawn(rng: random.Random) -> dict[str, Any]:
    """A schema of two definitions that lead to each other through arrays of different items."""

    def reference() -> dict[str, Any]:
        return {"$ref": f"#/definitions/{rng.choice('ab')}"}

    def different() -> dict[str, Any]:
        made: dict[str, Any] = {"type": "array", "uniqueItems": True, "items": reference()}
        if rng.random() < 0.3:
            made["items"] = {"anyOf": [made["items"], rng.choice(LEAVES)]}
        if rng.random() < 0.2:
            made["minItems"] = 1
        if rng.random() < 0.2:
            made["maxItems"] = rng.choice((2, 3))
        return made

    def definition() -> dict[str, Any]:
        if rng.random() < 0.25:
            return {"anyOf": [different(), rng.choice(LEAVES)]}
        properties = {"v": rng.choice(LEAVES), "c": different()}
        if rng.random() < 0.4:
            properties["d"] = rng.choice((different(), reference()))
        made = {"type": "object", "properties": properties, "additionalProperties": rng.random() < 0.2}
        if rng.random() < 0.3:
            made["required"] = ["v"]
        return made

    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **reference(),
        "definitions": {"a": definition(), "b": definition()},
    }


def value(rng: random.Random, depth: int) -> Any:
    if rng.random() < 0.2 or not depth:
        return rng.choice((1, 2, None, "x", True, 7))
    if rng.random() < 0.4:
        items = [value(rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
        return items + ([rng.choice(items)] if items and rng.random() < 0.3 else [])
    made: dict[str, Any] = {}
    if rng.random() < 0.6:
        made["v"] = rng.choice((1, 2, None, "x", True))
    for key in ("c", "d"):
        if rng.random() < 0.6:
            made[key] = [value(rng, depth - 1) for _ in range(rng.choice((0, 1, 1, 2)))]
    return made


def check(seed: int) -> tuple[int, int]:
    """Checks one schema; returns the numbers of valid and invalid values."""
    rng = random.Random(seed)
    schema = drawn(rng)
    judge = Judge(schema)
    try:
        automaton = gw.compile(gw.JsonSchema(schema, profile="exact"), VOCABULARY, cache=False)
    except gw.errors.UnsatisfiableError:
        assert not any(judge(json.dumps(value(rng, 4))) for _ in range(200)), schema
        return 0, 200
    counts = [0, 0]
    values = [value(rng, rng.choice((2, 3, 5))) for _ in range(40)]
    for _ in range(4):
        try:
            text = walked(automaton.matcher(), rng, rng.choice((5, 20, 60)))
            assert judge(text), (seed, schema, text)
            values.append(json.loads(text, parse_float=Decimal))
        except (ArithmeticError, ValueError):  # numbers that the judge cannot read
            continue
        except gw.errors.LimitExceededError:  # the search for a different item exceeded its limit
            LIMITED.append(seed)
    for one in values:
        try:
            good = judge(json.dumps(one))
        except (ArithmeticError, TypeError, ValueError):
            continue
        counts[good] += 1
        text = respelled(rng, one)
        try:
            assert accepts(automaton, text) == good, (seed, schema, text)
        except gw.errors.LimitExceededError:
            LIMITED.append(seed)
    return counts[1], counts[0]


def test_verdicts_and_walks() -> None:
    LIMITED.clear()
    found = [check(seed) for seed in range(26)]
    assert len(LIMITED) < 8
    assert sum(good for good, _ in found) > 95
    assert sum(bad for _, bad in found) > 95


@pytest.mark.slow
def test_many_more() -> None:
    for seed in range(1000, 6000):
        check(seed)


NODE = {"type": "object", "properties": {"c": {"$ref": "#/definitions/nodes"}}, "additionalProperties": False}
NODES = {
    "$ref": "#/definitions/nodes",
    "definitions": {
        "nodes": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/definitions/node"}},
        "node": NODE,
    },
}


def test_a_mask_leaves_out_exactly_the_tokens_that_complete_a_repeated_item() -> None:
    automaton = gw.compile(gw.JsonSchema(NODES, whitespace="compact"), VOCABULARY, cache=False)
    matcher = automaton.matcher()
    row = np.zeros(matcher.words, np.uint32)
    text = b'[{"c":[{}]},{"c":[{},{"c":[]}]},{},{"c":[{}'
    for byte in text:
        matcher.fill_mask(row)
        legal = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(TOKENS)].astype(bool)
        for token, piece in enumerate(TOKENS):
            fresh = matcher.fork()
            assert legal[token] == (fresh.validate([token]) == 1), (piece, text)
        matcher.advance(byte)
