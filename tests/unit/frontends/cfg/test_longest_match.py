"""`takes_longest` compared with the matches of Python's `re`."""

from __future__ import annotations

import itertools
import random
import re

import pytest

import guideway as gw
from guideway.errors import LimitExceededError
from guideway.frontends.cfg.lark.longest_match import takes_longest
from guideway.frontends.regex import parse_tree

TEXTS = [
    "".join(text)
    for letters, most in (("ab", 6), ("abc", 4))
    for n in range(most)
    for text in itertools.product(letters, repeat=n)
]
COUNTS = ["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", "??"]


def drawn(rng: random.Random, depth: int) -> str:
    """A pattern."""
    kind = rng.randrange(4) if depth else 0
    if kind == 1:
        return "".join(drawn(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    if kind == 2:
        return f"(?:{'|'.join(drawn(rng, depth - 1) for _ in range(rng.randint(2, 3)))})"
    if kind == 3:
        return f"(?:{drawn(rng, depth - 1)}){rng.choice(COUNTS)}"
    return rng.choice(["a", "b", "[ab]", "ab", ".", "c"])


@pytest.mark.parametrize("seed", range(2))
def test_takes_longest_is_true_only_where_re_matches_the_longest_text(seed: int) -> None:
    rng, found = random.Random(seed), 0
    while found < 60:
        pattern = drawn(rng, 3)
        if not takes_longest(parse_tree(pattern, "python")[0]):
            continue
        found += 1
        compiled = re.compile(pattern)
        for text in TEXTS:
            match = compiled.match(text)
            ends = [end for end in range(len(text) + 1) if compiled.fullmatch(text, 0, end)]
            assert (match.end() if match else None) == (max(ends) if ends else None), (pattern, text)


@pytest.mark.parametrize("pattern", ["(a|b)*a(a|b){12}", "ab*c", '"[^"]*"', "[0-9]+"])
def test_takes_longest_needs_a_single_part_of_variable_length(pattern: str) -> None:
    assert takes_longest(parse_tree(pattern, "python")[0])


@pytest.mark.parametrize("pattern", ["a|ab", "a*?b", "a?(ab)?", "a*b*"])
def test_takes_longest_is_false_where_the_syntax_does_not_decide_it(pattern: str) -> None:
    assert not takes_longest(parse_tree(pattern, "python")[0])


def test_many_optional_lookaheads_exceed_a_limit_and_take_bounded_time() -> None:
    optional = "".join(f"(?:(?={letter})|)" for letter in "abcdefghijklmnopqrstuvwxy")
    with pytest.raises(LimitExceededError):
        gw.Lark(f"start: A\nA: /{optional}.+/").grammar()
