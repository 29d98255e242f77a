"""The kernel alone: random grammars in the IR, and all small objects and arrays, compared with the oracle."""

from __future__ import annotations

import random

import pytest

from tests.oracle import grammars
from tests.oracle.matcher import Tokens

from . import frames, vocabularies
from .checks import Tally
from .grammar_maker import GrammarMaker
from .grammar_worlds import LETTERS, GrammarCase

PARTS = 8


def grammars_hold(seeds: range, **limits: int) -> Tally:
    tally = Tally()
    for seed in seeds:
        rng = random.Random(seed)
        case = GrammarCase(f"seed {seed}:", GrammarMaker(rng).made())
        tokens = vocabularies.cut(rng, case.texts(rng, 5), 7)
        if rng.random() < 0.3:
            more = [b for b in [*LETTERS, b"\xc3", b"\xa9"] if b not in tokens.texts]
            tokens = Tokens((*tokens.texts, *more), tokens.eos)
        tables = [vocabularies.kernel(tokens), vocabularies.kernel(tokens, **rng.choice(vocabularies.SETTINGS))]
        case.walk(tables, tokens, rng, tally, **limits)
        grammars.forget()
    return tally


def test_drawn_grammars() -> None:
    assert grammars_hold(range(80)).worlds > 56


def test_some_of_the_frames() -> None:
    tally, threaded = frames.hold(range(5, frames.COUNT, 180), 1)
    assert tally.worlds > 20, tally
    assert threaded > 100


def test_budgets_of_some_frames() -> None:
    assert frames.budgets_hold(range(3, frames.COUNT, 450), 2).budgets > 130


@pytest.mark.slow
def test_budgets_of_many_frames() -> None:
    tally = frames.budgets_hold(range(0, frames.COUNT, 5), 3)
    print(tally)
    assert tally.budgets > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_frame(part: int) -> None:
    tally, threaded = frames.hold(range(part, frames.COUNT, PARTS), part)
    print(f"{tally}, {threaded} masks by several threads")
    assert tally.worlds > 400
    assert threaded > 1000


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_many_drawn_grammars(part: int) -> None:
    tally = grammars_hold(range(10_000 * (part + 1), 10_000 * (part + 1) + 1500), depth=6, nodes=60)
    print(tally)
    assert tally.worlds > 1100
