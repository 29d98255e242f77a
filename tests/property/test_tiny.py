"""Every small schema in every profile, and every small pattern: whole by `make proofs`, a part of them each time."""

from __future__ import annotations

import random

import pytest

from . import patterns, tiny, vocabularies
from .checks import Tally
from .worlds import PROFILES, patterns_hold

PARTS = 8


def test_some_of_the_schemas() -> None:
    tally, refused = Tally(), 0
    for profile in range(len(PROFILES)):
        refused += tiny.hold(range(7 * profile, tiny.COUNT, 211), profile, tally)
    assert tally.worlds > 400, f"{refused} refused; {tally}"


@pytest.mark.slow
@pytest.mark.parametrize("profile", range(len(PROFILES)))
def test_every_schema(profile: int) -> None:
    tally = Tally()
    refused = tiny.hold(range(tiny.COUNT), profile, tally)
    print(f"{PROFILES[profile][1]}: {refused} refused; {tally}")
    assert tally.worlds + refused > 0.95 * tiny.COUNT


def test_some_patterns_of_6_nodes() -> None:
    rng = random.Random(6)
    worlds = [(patterns.drawn(rng, 6), rng.choice(vocabularies.LETTERS)) for _ in range(300)]
    patterns_hold(worlds, 6, depth=3, nodes=12)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_pattern_of_6_nodes(part: int) -> None:
    rng = random.Random(part)
    worlds = ((p, rng.choice(vocabularies.LETTERS)) for p in patterns.of_size(6)[part::PARTS])
    tally = patterns_hold(worlds, part, depth=3, nodes=10)
    print(tally)
    assert tally.worlds > 31_000
