"""Random schemas over all keywords, validated by the `jsonschema` package in both directions."""

from __future__ import annotations

import random
from typing import Any

import pytest

from guideway.frontends.json_schema.keywords import KEYWORDS
from tests.campaigns.walks import Tally, check, reduced

from .keywords import Drawer


def agree(seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        check(seed, tally)
    assert not tally.faults, reduced(tally.faults[0])
    return tally


def test_masks_allow_exactly_the_valid_instances() -> None:
    counts = agree(range(330)).counts
    assert counts["walks"] > 260
    assert min(counts["valid"], counts["invalid"]) > 330


@pytest.mark.parametrize("seed", [50018006, 50157317])
def test_walks_with_many_alternatives(seed: int) -> None:
    agree(range(seed, seed + 1))


@pytest.mark.slow
def test_many_walks() -> None:
    counts = agree(range(1_000_000, 1_010_000)).counts
    print(dict(counts))
    assert counts["walks"] > 8_000
    assert min(counts["valid"], counts["invalid"]) > 10_000


def test_the_schemas_are_of_all_keywords() -> None:
    drawn: set[str] = set()
    for seed in range(1200):
        todo: list[Any] = [Drawer(random.Random(seed)).document()]
        while todo:
            part = todo.pop()
            if isinstance(part, dict):
                drawn.update(part)
                todo += part.values()
            elif isinstance(part, list):
                todo += part
    assert set(KEYWORDS) <= drawn
    assert {"$anchor", "$id", "$dynamicAnchor", "$recursiveAnchor"} <= drawn
