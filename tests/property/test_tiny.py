"""Every small schema in every profile, and every small pattern: all by `make proofs`, a part otherwise."""

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
        refused += tiny.hold(range(7 * profile, tiny.COUNT, 331), profile, tally)
    assert tally.worlds > 250, f"{refused} refused; {tally}"


@pytest.mark.slow
@pytest.mark.parametrize("profile", range(len(PROFILES)))
def test_every_schema(profile: int) -> None:
    """Yields each schema in three profiles: the default, the one with all spellings, and one between them."""
    tally, between = Tally(), len(PROFILES) - 2
    numbers = range(tiny.COUNT) if profile in (0, between + 1) else range(profile - 1, tiny.COUNT, between)
    refused = tiny.hold(numbers, profile, tally)
    print(f"{PROFILES[profile][1]}: {refused} refused; {tally}")
    assert tally.worlds + refused > 0.95 * len(numbers)


def test_some_patterns_of_6_nodes() -> None:
    rng = random.Random(6)
    worlds = [(patterns.drawn(rng, 6), rng.choice(vocabularies.LETTERS)) for _ in range(200)]
    patterns_hold(worlds, 6, depth=3, nodes=12)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_pattern_of_6_nodes(part: int) -> None:
    rng = random.Random(part)
    made = filter(patterns.leads, patterns.of_size(6)[part::PARTS])  # up to the names of letters
    tally = patterns_hold(((p, rng.choice(vocabularies.LETTERS)) for p in made), part, depth=3, nodes=10)
    print(tally)
    assert tally.worlds > 18_000
