"""Random schemas within budgets from the fewest tokens up: a part of `make budgets`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import guideway as gw

from .budgets import check, models
from .walks import TOKENS, VOCABULARY, Tally


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
def test_what_came_before_is_counted_in_what_is_still_needed(schema: Any) -> None:
    """No token within the budget leads to where more is needed than is left, though items and keys come only once."""
    automaton = gw.compile(gw.JsonSchema(schema, profile="exact"), VOCABULARY)
    for seed in range(60):
        rng, matcher = random.Random(seed), automaton.matcher()
        row, left = np.zeros(matcher.words, np.uint32), matcher.tokens_to_finish() + rng.randrange(12)
        while not matcher.is_finished:
            assert matcher.fill_mask_within(row, left), (seed, left)
            legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[: len(TOKENS)])
            matcher.advance(int(legal[rng.randrange(len(legal))]))
            left -= 1
            assert matcher.tokens_to_finish() <= left, seed
