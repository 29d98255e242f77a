"""The kernel alone: grammars drawn straight in the IR, against the oracle of the IR."""

from __future__ import annotations

import random

import pytest

import guideway as gw
from guideway.grammar.nodes import Grammar
from guideway.sources import Source
from tests.oracle import grammars
from tests.oracle.machine import Oracle
from tests.oracle.matcher import Tokens

from . import vocabularies
from .checks import Lockstep, Mismatch, Tally
from .crowd import Crowd
from .grammar_maker import GrammarMaker

LETTERS = [bytes([b]) for b in b'abc{}[]()<>;=,: "\\nu0q\n']


class Made(Source[str]):
    """A grammar as a source."""

    def __init__(self, grammar: Grammar) -> None:
        self.made = grammar

    def grammar(self) -> Grammar:
        return self.made

    def parse(self, text: str) -> str:
        return text

    def _content(self) -> object:
        return id(self.made)


def texts(rng: random.Random, oracle: Oracle, count: int) -> list[bytes]:
    """Random readable texts, to cut tokens from."""
    found = []
    for _ in range(count):
        state, text = oracle.start, b""
        for _ in range(24):
            steps = [letter for letter in LETTERS if oracle.read(state, letter) is not None]
            if not steps or (state.whole and rng.random() < 0.2):
                break
            text += rng.choice(steps)
            state = oracle.read(state, text[-1:]) or state
        found.append(text or b"a")
    return found


def grammars_hold(seeds: range, **limits: int) -> Tally:
    tally = Tally()
    for seed in seeds:
        rng = random.Random(seed)
        grammar = GrammarMaker(rng).made()
        world = grammars.GrammarWorld(grammar)
        oracle = world.oracle()
        name = f"seed {seed}: nodes {grammar.nodes} root {grammar.root}"
        tokens = vocabularies.cut(rng, texts(rng, oracle, 5), 7)
        if rng.random() < 0.3:
            more = [b for b in [*LETTERS, b"\xc3", b"\xa9"] if b not in tokens.texts]
            tokens = Tokens((*tokens.texts, *more), tokens.eos)
        try:
            tables = [vocabularies.kernel(tokens), vocabularies.kernel(tokens, **rng.choice(vocabularies.SETTINGS))]
            matcher = Crowd.compiled(Made(grammar), tables)
        except gw.Unsupported:
            continue  # items that must be different and cannot be told apart yet
        except gw.Unsatisfiable as error:
            if world.satisfiable(grammar.root):
                raise Mismatch(f"refused as unsatisfiable, but it is not: {name}") from error
            continue
        if not world.satisfiable(grammar.root):
            raise Mismatch(f"unsatisfiable, but compiled: {name}")
        Lockstep(name, matcher, oracle, tokens, rng, tally, 0).walk(limits.get("depth", 5), limits.get("nodes", 30))
        tally.worlds += 1
        grammars.forget()
    return tally


def test_drawn_grammars() -> None:
    assert grammars_hold(range(800)).worlds > 600


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_many_drawn_grammars(part: int) -> None:
    print(grammars_hold(range(10_000 * (part + 1), 10_000 * (part + 1) + 4000), depth=6, nodes=60))
