"""Context-free rules compared with a plain Earley recogniser: all short texts, and masks along random walks."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import guideway as gw
from guideway.compiler import CompileLimits
from guideway.grammar.cfg import Alternation, Concatenation, Ref, Repetition, Rule, Term, Text, lower
from guideway.grammar.recognizer import accepts, byte_automaton
from guideway.grammar.regular import EMPTY, literal
from tests.oracle.earley import EarleyOracle, Rules

from . import vocabularies
from .checks import Lockstep, Mismatch, Tally
from .crowd import Crowd
from .grammar_worlds import Made

LETTERS = (b"a", b"b")


def drawn(rng: random.Random) -> Rules:
    """Returns rules over a few letters: ambiguous, left recursive, with empty texts, and with endless rules."""
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
        Rule(name, Alternation(tuple(Concatenation(tuple(map(term, option))) for option in options)), name)
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


def rules_hold(seeds: range, length: int, depth: int, nodes: int, *, exceeding: int = 0) -> Tally:
    """`exceeding`: the maximum number of grammars that exceed the work limit of a call; earlier results are compared."""
    tally = Tally()
    for seed in seeds:
        rng = random.Random(seed)
        rules = drawn(rng)
        name = f"seed {seed}: {rules}"
        oracle = EarleyOracle(rules, "A")
        if not oracle.start.sets[0]:  # type: ignore[attr-defined]  # items of the Earley recogniser
            with pytest.raises(gw.errors.UnsatisfiableError):
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
        try:
            Lockstep(name, matcher, oracle, tokens, rng, tally, 0).walk(depth, nodes)
        except gw.errors.LimitExceededError:
            exceeding -= 1
            if exceeding < 0:
                raise
            continue
        tally.worlds += 1
    return tally


def test_drawn_rules() -> None:
    assert rules_hold(range(300), 6, 3, 8).worlds > 150


def test_zero_repetitions() -> None:
    rules = [
        Rule("S", Alternation((Concatenation((Ref("X"), Ref("S"), Text(literal("b")))), Text(literal("c"))))),
        Rule("X", Repetition(Text(literal("a")), 0, 0)),
    ]
    automaton = byte_automaton(lower(rules, "S").grammar)
    assert [text for text in ("", "c", "cb", "cbb", "ac", "acb") if accepts(automaton, text)] == ["c", "cb", "cbb"]
    with pytest.raises(gw.errors.InvalidConstraintError, match="got -1"):
        lower([Rule("S", Repetition(Text(literal("a")), -1, 1))], "S")


def test_long_chains_and_counts_take_linear_time() -> None:
    count = 1000
    chain = [
        Rule(
            f"A{n}", Alternation((Ref(f"A{n + 1}"), Concatenation((Text(literal("x")), Ref("S"), Text(literal("y"))))))
        )
        for n in range(count)
    ]
    start = Rule("S", Alternation((Ref("A0"), Concatenation((Text(literal("(")), Ref("S"), Text(literal(")")))))))
    end = Rule(f"A{count}", Alternation((Text(EMPTY), Ref("S"))))
    automaton = byte_automaton(lower([start, *chain, end], "S").grammar)
    assert accepts(automaton, "(x()y)")
    rules = [
        Rule(f"B{n}", Alternation((Ref(f"B{n + 1}"), Concatenation((Ref("B0"), Text(literal("x")))))))
        for n in range(4000)
    ]
    with pytest.raises(gw.errors.LimitExceededError):
        lower([*rules, Rule("B4000", Text(literal("b")))], "B0")
    count = 20_000
    counted = Concatenation((Text(literal("(")), Repetition(Ref("S"), count, count), Text(literal(")"))))
    automaton = byte_automaton(lower([Rule("S", Alternation((counted, Text(literal("a")))))], "S").grammar)
    assert accepts(automaton, "(" + "a" * count + ")")
    assert not accepts(automaton, "(" + "a" * (count - 1) + ")")


def test_masks_of_long_tokens() -> None:
    """A token with n parts in sequence has n derivations; the matcher follows them together."""
    inner = tuple(
        Concatenation((Text(literal("a" * count)), Ref("S"), Text(literal("b" * count)))) for count in range(1, 5)
    )
    grammar = lower([Rule("S", Alternation((*inner, Text(literal("c")))))], "S").grammar
    texts = [b"a", b"b", b"c", b"a" * 16, b"a" * 40, b"b" * 9, b"ccc"]
    table = gw.Vocabulary([*texts, b""], eos_ids=[len(texts)], special_ids=[])
    limits = CompileLimits(max_work=1_000_000)
    matcher = gw.compile(Made(grammar), table, cache=False, limits=limits).matcher()
    row = np.zeros(1, np.uint32)
    for token, expected in ((3, "aA@c"), (4, "aA@c"), (2, "aA@c"), (5, "bB"), (5, "bB")):
        matcher.fill_mask(row)
        assert "".join(name for n, name in enumerate("abcA@BC$") if int(row[0]) >> n & 1) == "".join(
            name for name in "abcA@BC$" if name in expected
        )
        matcher.advance(token)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_many_drawn_rules(part: int) -> None:
    tally = rules_hold(range(10_000 * (part + 1), 10_000 * (part + 1) + 400), 8, 4, 30, exceeding=2)
    print(tally)
    assert tally.worlds > 200
