"""`Tags` compared with a parser that is written from the documentation: the same verdict and value for every short text."""

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


Pieces = list[str | tuple[Written, str]]
"""The value of a text: free texts that are not empty, and tags with the texts of their contents."""


def parsed(
    text: str, tags: list[Written], triggers: list[str], least: int, most: int | None, separator: str | None
) -> Pieces | None:
    """The value of a text that is free text with tags, each begun by the first trigger that occurs; None: it is not.

    With a separator, there is no free text. A tag ends as early as the rest of the text allows.
    """

    def ends(start: int) -> list[tuple[Written, str, int]]:
        """The tags that can be at `start`, the texts of their contents, and where they end."""
        return [
            ((begin, content, end), text[start + len(begin) : stop], stop + len(end))
            for begin, content, end in tags
            if text.startswith(begin, start)
            for stop in range(start + len(begin), len(text) + 1)
            if re.fullmatch(content, text[start + len(begin) : stop]) and text.startswith(end, stop)
        ]

    @cache
    def rest(at: int, count: int) -> Pieces | None:
        """The value of the text from `at` on, after `count` tags."""
        if separator is None:
            found = [place for trigger in triggers if (place := text.find(trigger, at)) >= 0]
            done, starts = not found, [min(found)] if found else []
        else:
            done = at == len(text)
            between = "" if count == 0 else separator
            starts = [at + len(between)] if text.startswith(between, at) else []
        if done and count >= least:
            return [text[at:]] if at < len(text) else []
        if count == most:
            return None
        for start in starts:
            free: Pieces = [text[at:start]] if separator is None and start > at else []
            for tag, content, end in ends(start):
                if (more := rest(end, count + 1)) is not None:
                    return [*free, (tag, content), *more]
        return None

    return rest(0, 0)


def compare(seed: int, texts: int) -> bool:
    """Whether the constraint is accepted; raises where the verdicts or values differ."""
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
    written = dict(zip(made, tags, strict=True))
    try:
        source = gw.Tags(made, triggers=triggers, least=least, most=most, separator=separator)
        automaton = byte_automaton(source.grammar())
    except gw.errors.UnsatisfiableError:
        assert not any(parsed(text, tags, triggers, least, most, separator) is not None for text in TEXTS)
        return True
    except gw.errors.InvalidConstraintError as problem:
        if "is contained in another" not in str(problem):
            raise
        return False
    for text in rng.sample(TEXTS, texts):
        expected = parsed(text, tags, triggers, least, most, separator)
        given = (tags, triggers, least, most, separator, text)
        assert accepts(automaton, text) == (expected is not None), given
        if expected is not None:
            found = [one if isinstance(one, str) else (written[one.tag], one.value) for one in source.parse(text)]
            assert found == expected, given
    return True


def test_random_tags() -> None:
    assert sum(compare(seed, 200) for seed in range(200)) > 100


@pytest.mark.slow
def test_many_random_tags() -> None:
    assert sum(compare(seed, 600) for seed in range(1_000, 5_000)) > 2_000
