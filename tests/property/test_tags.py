"""`Tags` compared with a parser that is written from the documentation: the same verdict for every short text."""

from __future__ import annotations

import itertools
import random
import re
from functools import cache

import pytest

import guideway as gw
from guideway.grammar.recognizer import accepts, byte_automaton

CONTENTS = ["a", "a*", "b|ab", "[ab]+", "<a", "a?b", "", "(<|a)*", "b<?"]
TEXTS = ["".join(one) for length in range(7) for one in itertools.product("ab<", repeat=length)]
Written = tuple[str, str, str]
"""A tag: its begin, the pattern of its content, its end."""


def fits(
    text: str, tags: list[Written], triggers: list[str], least: int, most: int | None, separator: str | None
) -> bool:
    """Whether a text is free text with tags (or tags with a separator), each begun by the first trigger that occurs."""

    def ends(start: int) -> set[int]:
        """Where a tag that begins at `start` can end."""
        return {
            stop + len(end)
            for begin, content, end in tags
            if text.startswith(begin, start)
            for stop in range(start + len(begin), len(text) + 1)
            if re.fullmatch(content, text[start + len(begin) : stop]) and text.startswith(end, stop)
        }

    @cache
    def rest(at: int, count: int) -> bool:
        """Whether the text from `at` on fits after `count` tags."""
        if separator is None:
            found = [place for trigger in triggers if (place := text.find(trigger, at)) >= 0]
            done, starts = not found, [min(found)] if found else []
        else:
            done = at == len(text)
            between = "" if count == 0 else separator
            starts = [at + len(between)] if text.startswith(between, at) else []
        if done and count >= least:
            return True
        if count == most:
            return False
        return any(rest(end, count + 1) for start in starts for end in ends(start))

    return rest(0, 0)


def compare(seed: int, texts: int) -> bool:
    """Whether the constraint is accepted; raises where the verdicts differ."""
    rng = random.Random(seed)

    def drawn(lengths: list[int]) -> str:
        return "".join(rng.choices("ab<", k=rng.choice(lengths)))

    tags = [(drawn([1, 2, 3]), rng.choice(CONTENTS), drawn([0, 0, 1, 1, 2])) for _ in range(rng.randint(1, 3))]
    triggers = sorted({one[0] for one in tags})
    if rng.random() < 0.4:
        triggers = sorted({one[0][: rng.randint(1, len(one[0]))] for one in tags})
    least = rng.choice([0, 0, 0, 1, 2])
    most = rng.choice([None, None, None, least, least + 1])
    separator = rng.choice([None, None, None, "<", "b", ""])
    made = [gw.Tag(begin, gw.Regex(content), end) for begin, content, end in tags]
    try:
        source = gw.Tags(made, triggers=triggers, least=least, most=most, separator=separator)
        automaton = byte_automaton(source.grammar())
    except gw.errors.UnsatisfiableError:
        assert not any(fits(text, tags, triggers, least, most, separator) for text in TEXTS)
        return True
    except gw.errors.InvalidConstraintError as problem:
        if "is contained in another" not in str(problem):
            raise
        return False
    for text in rng.sample(TEXTS, texts):
        expected = fits(text, tags, triggers, least, most, separator)
        assert accepts(automaton, text) == expected, (tags, triggers, least, most, separator, text)
    return True


def test_random_tags() -> None:
    assert sum(compare(seed, 200) for seed in range(200)) > 100


@pytest.mark.slow
def test_many_random_tags() -> None:
    assert sum(compare(seed, 600) for seed in range(1_000, 5_000)) > 2_000
