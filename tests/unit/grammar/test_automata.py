"""`grammar.automata`: DFAs of expressions accept what `re` accepts, also with intersections and complements."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from guideway.errors import LimitExceededError
from guideway.grammar.automata.alphabet import Alphabet, character_classes
from guideway.grammar.automata.determinize import DEAD
from guideway.grammar.automata.dfa import Machine, machine_of
from guideway.grammar.regular import (
    NEVER,
    Chars,
    Complement,
    Concat,
    Dfa,
    Intersection,
    Literals,
    Regular,
    Repeat,
    Union,
    chars,
    literal,
)

LETTERS = "abcd"
TEXTS = ["".join(one) for size in range(5) for one in itertools.product(LETTERS, repeat=size)]


def drawn(rng: random.Random, depth: int) -> tuple[Regular, str]:
    """An expression without intersections and complements, and the pattern of `re`."""
    kind = rng.randrange(5) if depth else rng.randrange(2)
    if kind == 0:
        low, high = sorted(rng.choices(LETTERS, k=2))
        return chars(low + high), f"[{low}-{high}]"
    if kind == 1:
        texts = ["".join(rng.choices(LETTERS, k=rng.randrange(3))) for _ in range(rng.randrange(1, 4))]
        return Literals(tuple(texts)), f"(?:{'|'.join(texts)})"
    if kind == 4:
        part, pattern = drawn(rng, depth - 1)
        least = rng.randrange(3)
        most = rng.choice([None, least, least + 2])
        return Repeat(part, least, most), f"(?:{pattern}){{{least},{'' if most is None else most}}}"
    parts = [drawn(rng, depth - 1) for _ in range(rng.randrange(3))]
    patterns = [pattern for _, pattern in parts]
    expressions = tuple(part for part, _ in parts)
    if kind == 2:
        return Concat(expressions), "".join(patterns)
    return (Union(expressions), f"(?:{'|'.join(patterns)})") if parts else (NEVER, "(?!)")


def accepts(machine: Machine, alphabet: Alphabet, text: str) -> bool:
    state = 0
    for char in text:
        (letter,) = (n for n, ranges in enumerate(alphabet.ranges) if any(a <= ord(char) <= b for a, b in ranges))
        state = machine.steps[state][letter]
        if state == DEAD:
            return False
    return machine.accepting[state]


def walk(automaton: Regular, text: str) -> bool:
    """Whether a `Dfa` expression matches."""
    if not isinstance(automaton, Dfa):
        return False
    state = 0
    for char in text:
        found = [
            after for part, after in automaton.states[state][1] if any(a <= ord(char) <= b for a, b in part.ranges)
        ]
        assert len(found) <= 1, "the automaton is deterministic"
        if not found:
            return False
        state = found[0]
    return automaton.states[state][0]


def test_expressions() -> None:
    rng = random.Random(11)
    some = 0
    for _ in range(150):
        (one, pattern), (other, second) = drawn(rng, 3), drawn(rng, 3)
        alphabet = Alphabet([one, other, chars("ad")])
        both = machine_of(Intersection((one, Complement(other))), alphabet)
        machine = machine_of(one, alphabet)
        minimal = alphabet.graph(machine.steps, machine.accepting)
        small = Alphabet([minimal, chars("ad")])
        again = machine_of(minimal, small)
        for text in TEXTS:
            expected = re.fullmatch(pattern, text) is not None
            assert accepts(machine, alphabet, text) is expected, (pattern, text)
            assert walk(minimal, text) is expected
            assert accepts(again, small, text) is expected
            assert accepts(both, alphabet, text) is (expected and re.fullmatch(second, text) is None)
            some += expected
    assert some > 1_000


def test_equal_languages_have_equal_automata() -> None:
    one, other = Union((literal("ab"), literal("ac"))), Concat((literal("a"), chars("bc")))
    alphabet = Alphabet([one, other])
    machines = [machine_of(language, alphabet) for language in (one, other)]
    assert alphabet.graph(machines[0].steps, machines[0].accepting) == alphabet.graph(
        machines[1].steps, machines[1].accepting
    )


def test_character_classes_are_disjoint_and_complete() -> None:
    sets = [((0x61, 0x6A),), ((0x65, 0x70), (0x100, 0x200)), ((0x61, 0x6A), (0x150, 0x150))]
    found = character_classes(sets)
    for code in (0, 0x61, 0x65, 0x6A, 0x6B, 0x70, 0x71, 0x100, 0x150, 0x151, 0x10FFFF):
        (held,) = (bits for ranges, bits in found if any(a <= code <= b for a, b in ranges))
        assert held == sum(1 << n for n, one in enumerate(sets) if any(a <= code <= b for a, b in one))


@pytest.mark.parametrize(
    ("language", "message"),
    [
        (Repeat(chars("ab"), 30_000, 30_000), "more than 20,000 states"),
        (Concat((Repeat(chars("ab"), 0, None), literal("a"), Repeat(chars("ab"), 18, 18))), "more than 20,000 states"),
    ],
)
def test_states_are_bounded(language: Regular, message: str) -> None:
    with pytest.raises(LimitExceededError, match=message):
        machine_of(language, Alphabet([language]))


def test_nesting_of_complements_is_bounded() -> None:
    language: Regular = Chars(((97, 97),))
    for _ in range(30):
        language = Complement(language)
    with pytest.raises(LimitExceededError, match="nested at most 20 deep"):
        machine_of(language, Alphabet([language]))
