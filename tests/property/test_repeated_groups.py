"""Groups with many repetitions: masks far from the bound, near it and at it, compared with the oracle."""

from __future__ import annotations

import random

import numpy as np

import guideway as gw
from tests.helpers.byte_tokens import legal
from tests.oracle import regular
from tests.oracle.matcher import SlowMatcher, Tokens

from . import patterns, vocabularies
from .patterns import Pattern

LETTERS = b"abc"


def times(part: Pattern, low: int, high: int) -> Pattern:
    """`part` so often."""
    return Pattern(f"(?:{part.text}){{{low},{high}}}", ("times", part, low, high))


def rounds(rng: random.Random) -> Pattern:
    """Returns a group that is repeated, alone or in another repetition, and its continuation."""
    unit = patterns.drawn(rng, rng.randrange(2, 7))
    if rng.random() < 0.2:
        unit = patterns.joined(times(unit, 0, rng.randrange(5, 9)), patterns.char(rng.choice("abc")))
    made = times(unit, rng.choice((0, 0, 0, 1, 3)), rng.randrange(7, 14))
    if rng.random() < 0.3:
        other = times(unit, 0, rng.randrange(1, 14))
        made = rng.choice((patterns.joined, patterns.choice))(made, patterns.joined(patterns.char("b"), other))
    return patterns.joined(made, patterns.drawn(rng, rng.randrange(1, 4)))


def tokens(rng: random.Random) -> Tokens:
    """Returns the letters, and longer texts that may contain several repetitions."""
    made = {bytes([letter]) for letter in LETTERS}
    while len(made) < 24:
        piece = bytes(rng.choices(LETTERS, k=rng.randrange(1, 4)))
        made.add((piece * 3)[: rng.randrange(2, 7)])
    return Tokens((*sorted(made), b"</s>"), frozenset({len(made)}))


UNITS = (
    patterns.joined(patterns.char("a"), patterns.char("b")),
    patterns.joined(patterns.counted(patterns.chosen("[ac]", (97, 97), (99, 99)), "+"), patterns.char("b")),
    patterns.joined(patterns.char("c"), patterns.choice(patterns.char("a"), patterns.char("b"))),
)


def walk(pattern: Pattern, table: gw.Vocabulary, plain: gw.Vocabulary, words: Tokens, rng: random.Random) -> int:
    """Along a text: all masks as without shortcuts. How many tokens it has."""
    source = gw.Regex(pattern.text)
    ours, theirs = (gw.compile(source, one, cache=False).matcher() for one in (table, plain))
    rows = np.zeros((2, (len(words.texts) + 31) // 32), np.uint32)
    text: list[int] = []
    while len(text) < 60:
        for matcher, row in zip((ours, theirs), rows, strict=True):
            matcher.fill_mask(row)
        assert (rows[0] == rows[1]).all(), (pattern.text, [words.texts[t] for t in text])
        going_on = sorted(frozenset(legal(rows[0])) - words.eos)
        if not going_on:
            break
        # Prefer short tokens, so that the walk visits each remaining count below the bound.
        text.append(min(rng.choices(going_on, k=2), key=lambda t: len(words.texts[t])))
        ours.advance(text[-1])
        theirs.advance(text[-1])
    return len(text)


def test_masks_at_each_number_of_rounds() -> None:
    rng, taken = random.Random(11), 0
    for _ in range(30):
        words = tokens(rng)
        plain = vocabularies.kernel(words, tuning=vocabularies.PLAIN)
        shared = vocabularies.kernel(words)  # the counts of earlier patterns stay in its store
        for _ in range(12):
            pattern = rounds(rng)
            for table in (shared, vocabularies.kernel(words)):
                taken += walk(pattern, table, plain, words, rng)
    assert taken > 5000  # the walks are long enough to reach the bounds


def test_the_last_rounds_against_the_oracle() -> None:
    rng = random.Random(12)
    for _ in range(6):
        words = tokens(rng)
        pattern = patterns.joined(times(rng.choice(UNITS), 0, 8), patterns.char("a"))
        ours = gw.compile(gw.Regex(pattern.text), vocabularies.kernel(words), cache=False).matcher()
        theirs = SlowMatcher(pattern.oracle(), words)
        row = np.zeros((len(words.texts) + 31) // 32, np.uint32)
        while going_on := sorted(theirs.mask() - words.eos):
            ours.fill_mask(row)
            assert frozenset(legal(row)) == theirs.mask(), pattern.text
            token = min(rng.choices(going_on, k=2), key=lambda t: len(words.texts[t]))
            ours.advance(token)
            theirs.advance(token)
        regular.forget()


def test_count_after_a_walk() -> None:
    """A walk that does not count "ca" must not affect a pattern that counts it."""
    words = Tokens((b"a", b"b", b"c", b"ca", b"caca", b"cacaca", b"ab", b"ababab", b"</s>"), frozenset({8}))
    table = vocabularies.kernel(words)
    row = np.zeros(1, np.uint32)
    masks = []
    for pattern in ("(?:ab){0,30}(?:ca)*b", "(?:ca){0,30}b", "(?:ab){0,3}(?:ca){0,2}b"):
        matcher = gw.compile(gw.Regex(pattern), table, cache=False).matcher()
        matcher.fill_mask(row)
        masks.append(frozenset(legal(row)))
    assert masks[0] == {0, 1, 2, 3, 4, 5, 6, 7}
    assert masks[1] == {1, 2, 3, 4, 5}
    assert masks[2] == {0, 1, 2, 3, 4, 6, 7}
