"""Generation from random schemas with minimal budgets: a part of `make budgets`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import guideway as gw
from tests.campaigns.budgets import check, models
from tests.campaigns.walks import VOCABULARY, Tally
from tests.helpers.byte_tokens import legal


def test_every_output_fits_its_schema_and_its_budget() -> None:
    tally, both = Tally(), models()
    for seed in (1301, *range(500_000, 500_060)):  # in 1301 an item must differ from others, and so becomes longer
        check(both, seed, tally)
    assert not tally.faults
    assert tally.counts["outputs"] > 150
    assert min(tally.counts["refused budgets"], tally.counts["at the fewest"]) > 20


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "uniqueItems": True, "items": {"type": "number", "minimum": 12.75}},
        {"type": "array", "uniqueItems": True, "items": {"enum": [1, 100, "aaaa", 12345]}},
        {"type": "array", "uniqueItems": True, "minItems": 2, "items": {"enum": [1, 100, "aaaa", 12345]}},
        {"type": "object", "propertyNames": {"pattern": "^(a|b{5,})$"}, "additionalProperties": {"type": "null"}},
    ],
)
def test_budget_includes_keys_already_read(schema: Any) -> None:
    """After each token of a mask, the remaining budget is sufficient, although items and keys must be unique."""
    automaton = gw.compile(gw.JsonSchema(schema, profile="exact"), VOCABULARY)
    for seed in range(60):
        rng, matcher = random.Random(seed), automaton.matcher()
        row, left = np.zeros(matcher.words, np.uint32), matcher.min_tokens_to_complete() + rng.randrange(12)
        while not matcher.is_finished:
            assert matcher.fill_mask_within(row, left), (seed, left)
            tokens = legal(row)
            matcher.advance(tokens[rng.randrange(len(tokens))])
            left -= 1
            assert matcher.min_tokens_to_complete() <= left, seed


ENTRIES = {"type": "object", "additionalProperties": {"enum": [1, 22]}}
REMEMBERING = [
    {**ENTRIES, "maxProperties": 2},
    {**ENTRIES, "minProperties": 3},
    {**ENTRIES, "minProperties": 2, "maxProperties": 3, "properties": {"aa": {"const": 1}, "b": {}}, "required": ["b"]},
    {**ENTRIES, "minProperties": 2, "propertyNames": {"pattern": "^(|a|aa|xx|abxx)$"}},
    {**ENTRIES, "minProperties": 2, "patternProperties": {"^a": {"const": 1}, "x$": {"type": "string"}}},
    {**ENTRIES, "propertyNames": {"enum": ["", "a", "ab", "ab:xx"]}},
    {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"type": "string"}},
    {"type": "array", "uniqueItems": True, "minItems": 2, "items": {"type": "integer", "minimum": 9}},
    {"type": "array", "minItems": 2, "contains": {"type": "string"}, "items": {"type": ["string", "null"]}},
    {"type": "object", "minProperties": 2, "additionalProperties": {**ENTRIES, "minProperties": 2}},
]


@pytest.mark.parametrize("profile", ["generation", "exact"])
@pytest.mark.parametrize("schema", REMEMBERING, ids=lambda schema: "+".join(key for key in schema if key != "type"))
def test_a_mask_within_a_budget_is_what_can_be_finished(schema: Any, profile: Any) -> None:
    """A mask contains the legal tokens after which the matcher reports a sufficient rest, for any text so far."""
    automaton = gw.compile(gw.JsonSchema(schema, profile=profile), VOCABULARY, cache=False)
    held_back = 0
    for seed in range(40):
        rng, matcher = random.Random(seed), automaton.matcher()
        row, left = np.zeros(matcher.words, np.uint32), matcher.min_tokens_to_complete() + rng.randrange(9)
        while not matcher.is_finished:
            matcher.fill_mask(row)
            tokens = legal(row)
            fits = []
            for token in tokens:
                matcher.advance(int(token))
                if matcher.min_tokens_to_complete() < left:
                    fits.append(int(token))
                matcher.rollback(1)
            held_back += len(tokens) - len(fits)
            assert matcher.fill_mask_within(row, left), (seed, left)
            got = legal(row)
            assert got == fits, (seed, left)
            matcher.advance(rng.choice(fits))
            left -= 1
    assert held_back > 20


def test_a_mask_within_a_budget_learns_little() -> None:
    """Near the end of its budget, a mask tries every token. The keys that these tokens would write are not stored."""
    schema = {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2}
    automaton = gw.compile(gw.JsonSchema(schema), VOCABULARY, cache=False)
    matcher = automaton.matcher()
    row = np.zeros(matcher.words, np.uint32)
    for byte in b'{"the key that came':
        matcher.advance(byte)
    before = automaton.stats()["expressions"]
    for left in range(matcher.min_tokens_to_complete(), matcher.min_tokens_to_complete() + 20):
        assert matcher.fill_mask_within(row, left)
    assert automaton.stats()["expressions"] - before < 200
