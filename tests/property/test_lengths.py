"""Length bounds inside expressions: the same texts as an intersection with a count."""

from __future__ import annotations

import itertools
import random

import pytest

from guideway.frontends.regex import parse_pattern
from guideway.grammar.lengths import of_length
from guideway.grammar.regular import (
    ANY_CHAR,
    Chars,
    Complement,
    Concat,
    Intersection,
    Literals,
    Regular,
    Repeat,
    Union,
    both,
)
from tests.helpers.counts import counts

LONGEST = 6
LETTERS = "abé"
ALL = frozenset("".join(text) for n in range(LONGEST + 1) for text in itertools.product(LETTERS, repeat=n))


def texts(part: Regular) -> frozenset[str]:
    """Its texts of at most LONGEST of three letters, by the definitions alone."""
    if isinstance(part, Chars):
        return frozenset(c for c in LETTERS if any(low <= ord(c) <= high for low, high in part.ranges))
    if isinstance(part, Literals):
        return frozenset(part.texts) & ALL
    if isinstance(part, Complement):
        return ALL - texts(part.part)
    if isinstance(part, Union):
        return frozenset().union(*map(texts, part.parts))
    if isinstance(part, Intersection):
        return ALL.intersection(*map(texts, part.parts))
    if isinstance(part, Concat):
        made = frozenset([""])
        for one in part.parts:
            made = joined(made, texts(one))
        return made
    assert isinstance(part, Repeat)
    assert part.maximum is None or part.minimum <= part.maximum
    each, made = texts(part.part), frozenset([""]) if part.minimum == 0 else frozenset()
    now = frozenset([""])
    for count in range(1, (LONGEST + part.minimum if part.maximum is None else part.maximum) + 1):
        now = joined(now, each)
        made |= now if count >= part.minimum else frozenset()
    return made


def joined(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """One after the other, none too long."""
    return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LONGEST)


def made_up(rng: random.Random, depth: int) -> Regular:
    """An expression such as patterns become."""
    kind = rng.randrange(8 if depth else 3)
    if kind == 0:
        return rng.choice([ANY_CHAR, Chars(((97, 98),)), Chars(((97, 97), (233, 233))), Chars(())])
    if kind <= 2:
        return Literals(tuple({"".join(rng.choices(LETTERS, k=rng.randrange(4))) for _ in range(rng.randrange(1, 3))}))
    if kind == 3:
        return Union(tuple(made_up(rng, depth - 1) for _ in range(rng.randrange(3))))
    if kind <= 5:
        return Concat(tuple(made_up(rng, depth - 1) for _ in range(rng.randrange(4))))
    least = rng.randrange(3)
    return Repeat(made_up(rng, depth - 1), least, rng.choice([None, least, least + 1, least + 3]))


@counts(1500, 6000)
def test_lengths_keep_the_texts(count: int) -> None:
    rng, inside = random.Random(7), 0
    for _ in range(count):
        parts = [made_up(rng, 3) for _ in range(rng.randrange(3))]
        fewest = rng.randrange(5)
        most = rng.choice([None, fewest, fewest + 1, fewest + 2, max(0, fewest - 1)])
        made = of_length(parts, fewest, most)
        wanted = {
            text
            for text in ALL.intersection(*map(texts, parts))
            if fewest <= len(text) and (most is None or len(text) <= most)
        }
        assert ALL.intersection(*map(texts, made)) == wanted, (parts, fewest, most)
        inside += len(made) == len(parts) and bool(fewest or most is not None)
    assert inside > count // 6


@pytest.mark.parametrize(
    ("pattern", "fewest", "most"),
    [
        ("^[a-zA-Z0-9_.]+$", 0, 12),
        ("^[a-z][a-z0-9]*$", 3, 63),
        ("^([a-z]|[a-z][a-z-]*[a-z])$", 0, 20),
        ("^(ab|cd)*$", 3, 9),
        ("^[0-9]{4}-[0-9]{2}$", 1, 100),
        ("^arn:[a-z]*:x$", 8, None),
    ],
)
def test_patterns_of_users_are_no_intersections(pattern: str, fewest: int, most: int | None) -> None:
    made = both(*of_length([parse_pattern(pattern, "ecma", search=True)], fewest, most))
    assert "Both" not in repr(made), made


def test_empty_intersection_keeps_two_parts() -> None:
    assert len(of_length([Literals(("ab",))], 3, None)) == 2
