"""Context-free rules against a plain Earley recogniser: every text up to a length, and masks along random walks."""

from __future__ import annotations

import itertools
import random

import pytest

import guideway as gw
from guideway.grammar.regular import literal
from guideway.grammar.rules import Choice, Ref, Rule, Series, Term, Text, lower
from guideway.sources.fits import accepts, byte_automaton
from tests.oracle.earley import EarleyOracle, Rules

from . import vocabularies
from .checks import Lockstep, Mismatch, Tally
from .crowd import Crowd
from .grammar_worlds import Made

LETTERS = (b"a", b"b")


def drawn(rng: random.Random) -> Rules:
    """Rules over a few letters: ambiguous, left recursive, with empty texts and with rules that never end."""
    names = [chr(65 + n) for n in range(rng.randrange(1, 5))]
    letters = LETTERS[: rng.randrange(1, 3)]
    made: Rules = {}
    for name in names:
        options = []
        for _ in range(rng.randrange(1, 4)):
            length = rng.choice((0, 1, 1, 2, 2, 3, 4))
            options.append(
                tuple(rng.choice(letters) if rng.random() < 0.5 else rng.choice(names) for _ in range(length))
            )
        made[name] = options
    return made


def as_rules(rules: Rules) -> list[Rule]:
    """The same, as the library takes them."""

    def term(part: str | bytes) -> Term:
        return Text(literal(part.decode())) if isinstance(part, bytes) else Ref(part)

    return [
        Rule(name, Choice(tuple(Series(tuple(map(term, option))) for option in options)), name)
        for name, options in rules.items()
    ]


def every_text(oracle: EarleyOracle, length: int) -> dict[bytes, bool]:
    """Each text up to a length that can be completed or comes one letter after one: whether it is whole."""
    found = {b"": oracle.start.whole}
    alive = [b""]
    for _ in range(length):
        longer = []
        for text, letter in itertools.product(alive, LETTERS):
            state = oracle.read(oracle.start, text + letter)
            found[text + letter] = state is not None and state.whole
            if state is not None:
                longer.append(text + letter)
        alive = longer
    return found


def rules_hold(seeds: range, length: int, depth: int, nodes: int) -> Tally:
    tally = Tally()
    for seed in seeds:
        rng = random.Random(seed)
        rules = drawn(rng)
        name = f"seed {seed}: {rules}"
        oracle = EarleyOracle(rules, "A")
        if not oracle.start.sets[0]:  # type: ignore[attr-defined]  # items of the Earley recogniser
            with pytest.raises(gw.Unsatisfiable):
                lower(as_rules(rules), "A")
            continue
        grammar = lower(as_rules(rules), "A").grammar
        automaton = byte_automaton(grammar)
        for text, whole in every_text(oracle, length).items():
            if accepts(automaton, text.decode()) != whole:
                raise Mismatch(f"{text!r} is {'' if whole else 'not '}derived by {name}\n{grammar}")
        tokens = vocabularies.cut(rng, [b"aabbab", b"abab", b"bbaa"], 7)
        tables = [vocabularies.kernel(tokens), vocabularies.kernel(tokens, **rng.choice(vocabularies.SETTINGS))]
        matcher = Crowd.compiled(Made(grammar), tables)
        Lockstep(name, matcher, oracle, tokens, rng, tally, 0).walk(depth, nodes)
        tally.worlds += 1
    return tally


def test_drawn_rules() -> None:
    assert rules_hold(range(300), 6, 3, 8).worlds > 150


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_many_drawn_rules(part: int) -> None:
    print(rules_hold(range(10_000 * (part + 1), 10_000 * (part + 1) + 2000), 8, 4, 30))
