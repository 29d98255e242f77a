"""Grammars of the IR, matchers for them, and the oracle of the IR, advanced together."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import guideway as gw
from guideway.constraints import Constraint
from guideway.grammar.nodes import Grammar
from tests.helpers.byte_tokens import legal
from tests.oracle import grammars
from tests.oracle.machine import Oracle
from tests.oracle.matcher import SlowMatcher, Tokens

from . import vocabularies
from .checks import Lockstep, Mismatch, Tally
from .crowd import Crowd

LETTERS = [bytes([b]) for b in b'abc{}[]()<>;=,: "\\nu0123q\n.-e']


class Made(Constraint[str]):
    """A grammar as a source."""

    def __init__(self, grammar: Grammar) -> None:
        self.made = grammar

    def grammar(self) -> Grammar:
        return self.made

    def parse(self, text: str) -> str:
        return text

    def _content(self) -> object:
        return id(self.made)


@dataclass
class GrammarCase:
    """A grammar and its oracle."""

    name: str
    grammar: Grammar
    world: grammars.GrammarWorld = field(init=False)
    oracle: Oracle = field(init=False)

    def __post_init__(self) -> None:
        self.world = grammars.GrammarWorld(self.grammar)
        self.oracle = self.world.oracle()
        self.name += f" nodes {self.grammar.nodes} root {self.grammar.root}"

    def texts(self, rng: random.Random, count: int) -> list[bytes]:
        """Random readable texts, to cut tokens from."""
        found = []
        for _ in range(count):
            state, text = self.oracle.start, b""
            for _ in range(24):
                steps = [letter for letter in LETTERS if self.oracle.read(state, letter) is not None]
                if not steps or (state.whole and rng.random() < 0.2):
                    break
                text += rng.choice(steps)
                state = self.oracle.read(state, text[-1:]) or state
            found.append(text or b"a")
        return found

    def walk(
        self, tables: Sequence[gw.Vocabulary], tokens: Tokens, rng: random.Random, tally: Tally, **limits: int
    ) -> SlowMatcher | None:
        """Walk its world over the same tokens in several vocabularies; the twin, or None where there is no world."""
        fits = self.world.satisfiable(self.grammar.root)
        try:
            matcher = Crowd.compiled(Made(self.grammar), tables)
        except gw.errors.UnsupportedError:
            return None  # items that must be different, but cannot be distinguished yet
        except gw.errors.UnsatisfiableError as error:
            if fits:
                raise Mismatch(f"refused as unsatisfiable, but it is not: {self.name}") from error
            return None
        if not fits:
            raise Mismatch(f"unsatisfiable, but compiled: {self.name}")
        budgets = limits.get("budgets", 0)
        pair = Lockstep(self.name, matcher, self.oracle, tokens, rng, tally, budgets, searched=False)
        pair.walk(limits.get("depth", 5), limits.get("nodes", 30))
        tally.worlds += 1
        return pair.slow


def together(
    cases: Sequence[tuple[GrammarCase, SlowMatcher]], tokens: Tokens, rng: random.Random, workers: int = 4
) -> int:
    """Threads walk matchers of shared automata without computed masks; returns the number of compared masks."""
    vocabulary = vocabularies.kernel(tokens, **rng.choice(({}, *vocabularies.SETTINGS)))
    automata = [gw.compile(Made(case.grammar), vocabulary, cache=False) for case, _ in cases]
    paths = [
        (automaton, _path(slow.fork(), rng))
        for automaton, (_, slow) in zip(automata, cases, strict=True)
        for _ in range(4)
    ]
    wrong: list[str] = []

    def work(order: list[int]) -> None:
        row = np.zeros((len(tokens.texts) + 31) // 32, np.uint32)
        for n in order:
            automaton, path = paths[n]
            matcher = automaton.matcher()
            for token, expected in path:
                matcher.fill_mask(row)
                got = legal(row)
                if got != sorted(expected):
                    wrong.append(f"{cases[n // 4][0].name}: {got} instead of {sorted(expected)} after {path}")
                    return
                if token is not None:
                    matcher.advance(token)

    orders = [rng.sample(range(len(paths)), len(paths)) for _ in range(workers)]
    threads = [threading.Thread(target=work, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise Mismatch(f"several threads: {wrong[0]}\n  vocabulary {tokens}")
    return workers * sum(len(path) for _, path in paths)


def _path(slow: SlowMatcher, rng: random.Random) -> list[tuple[Any, frozenset[int]]]:
    """Legal tokens at random, each with the mask before it; the last mask has none after it."""
    slow.rollback(slow.position)
    path: list[tuple[Any, frozenset[int]]] = []
    for _ in range(6):
        legal = slow.mask()
        if slow.state is None or not legal:
            break
        token = rng.choice(sorted(legal))
        path.append((token, legal))
        slow.advance(token)
    return [*path, (None, slow.mask())]
