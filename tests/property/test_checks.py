"""The checks detect every deliberate fault, and pass a correct matcher."""

from __future__ import annotations

import random

import pytest

from tests.oracle import regular

from . import patterns, vocabularies
from .checks import Lockstep, Mismatch, Tally
from .fake import FLAWS, FakeMatcher


def walk(flaw: str, seed: int) -> None:
    rng = random.Random(seed)
    pattern = patterns.drawn(rng, 6)
    while not pattern.spellable:
        pattern = patterns.drawn(rng, 6)
    oracle, tokens = pattern.oracle(), rng.choice(vocabularies.LETTERS)
    Lockstep(pattern.text, FakeMatcher(oracle, tokens, flaw), oracle, tokens, rng, Tally()).walk(3, 30)
    regular.forget()


def test_a_matcher_without_flaws_passes() -> None:
    for seed in range(40):
        walk("", seed)


@pytest.mark.parametrize("flaw", FLAWS)
def test_checks_detect_each_flaw(flaw: str) -> None:
    caught = 0
    for seed in range(20):
        try:
            walk(flaw, seed)
        except (Mismatch, IndexError):  # IndexError: the twin itself fell over its flaw
            caught += 1
    assert caught >= 3, f"caught in {caught} of 20 worlds"
