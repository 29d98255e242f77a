"""Patterns over small vocabularies: every mask, bit by bit, along every short token sequence."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.oracle.matcher import Tokens

from . import patterns, vocabularies
from .patterns import Pattern
from .worlds import patterns_hold


def drawn(
    seed: int, count: int, sizes: range, letters: tuple[str, ...], tables: tuple[Tokens, ...]
) -> Iterator[tuple[Pattern, Tokens]]:
    rng = random.Random(seed)
    for _ in range(count):
        yield patterns.drawn(rng, rng.choice(sizes), letters), rng.choice(tables)


def test_every_pattern_of_up_to_3_nodes() -> None:
    worlds = [(p, t) for size in (1, 2, 3) for p in patterns.of_size(size) for t in vocabularies.LETTERS]
    tally = patterns_hold(worlds, 1, depth=3, nodes=25)
    assert tally.worlds == 3 * (6 + 36 + 288)


def test_drawn_patterns() -> None:
    patterns_hold(drawn(2, 500, range(4, 9), patterns.LETTERS, vocabularies.LETTERS), 2, depth=4, nodes=40)


def test_characters_that_tokens_cut_in_two() -> None:
    patterns_hold(drawn(3, 250, range(1, 6), patterns.WIDE, vocabularies.BYTES), 3, depth=5, nodes=40)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", range(3))
def test_every_pattern_of_4_nodes(tokens: int) -> None:
    worlds = [(p, vocabularies.LETTERS[tokens]) for p in patterns.of_size(4)]
    tally = patterns_hold(worlds, 4, depth=4, nodes=40)
    print(tally)
    assert tally.worlds == len(worlds)


@pytest.mark.slow
def test_every_pattern_of_5_nodes() -> None:
    rng = random.Random(5)
    worlds = ((p, rng.choice(vocabularies.LETTERS)) for p in patterns.of_size(5))
    tally = patterns_hold(worlds, 5, depth=3, nodes=20)
    print(tally)
    assert tally.worlds > 20_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_drawn_patterns(seed: int) -> None:
    worlds = drawn(100 + seed, 1500, range(6, 11), patterns.LETTERS, vocabularies.LETTERS)
    tally = patterns_hold(worlds, seed, depth=4, nodes=40)
    print(tally)
    assert tally.worlds > 1400
    worlds = drawn(200 + seed, 1000, range(1, 7), patterns.WIDE, vocabularies.BYTES)
    tally = patterns_hold(worlds, seed, depth=5, nodes=40)
    print(tally)
    assert tally.worlds > 900
