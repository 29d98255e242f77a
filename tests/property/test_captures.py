"""Captures: patterns compared with `re`, everything else with an exhaustive search in order."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

import guideway as gw
from guideway.constraints import Constraint
from tests.oracle.derivations import first_derivation

TEXTS = ["".join(chars) for length in range(6) for chars in itertools.product("ab", repeat=length)]
ATOMS = ["a", "b", "ab", ".", "[ab]", "[^a]"]
ASSERTIONS = ["(?:)", r"\b", "^", "$", "(?=%s)", "(?!%s)", "(?<=%s)", "(?<!%s)"]
COUNTS = ["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}"]


def pattern(rng: random.Random, depth: int, names: list[str], asserts: bool) -> str:
    """A pattern with named groups."""
    kind = rng.randrange(20)
    if asserts and kind == 19:
        assertion = rng.choice(ASSERTIONS)
        return assertion % pattern(rng, max(depth - 1, 0), names, asserts) if "%" in assertion else assertion
    if depth == 0 or kind < 5:
        return rng.choice(ATOMS)
    one = pattern(rng, depth - 1, names, asserts)
    if kind < 9:
        return one + pattern(rng, depth - 1, names, asserts)
    if kind < 12:
        return f"(?:{one}|{pattern(rng, depth - 1, names, asserts)})"
    if kind < 16:
        names.append(f"g{len(names)}")
        return f"(?P<{names[-1]}>{one})"
    return f"(?:{one}){rng.choice(COUNTS)}{rng.choice(('', '?'))}"


def agrees_with_re(seed: int, asserts: bool) -> None:
    rng, names = random.Random(seed), list[str]()
    drawn = pattern(rng, rng.randrange(2, 6), names, asserts)
    try:
        judge, source = re.compile(drawn), gw.Regex(drawn)
    except (re.error, gw.errors.UnsatisfiableError, gw.errors.LimitExceededError):  # a look-behind of many lengths
        return
    except gw.errors.InvalidConstraintError:
        assert "lookbehind" in drawn or "(?<" in drawn
        return
    for text in TEXTS if names else ():
        found = judge.fullmatch(text)
        if found is None:
            with pytest.raises(gw.errors.InvalidTextError):
                source.captures(text)
            continue
        captures = source.captures(text)
        assert dict(captures) == {k: v for k, v in found.groupdict().items() if v is not None}, (drawn, text)
        spans = {name: (captures.last(name).start, captures.last(name).end) for name in captures}
        assert spans == {name: found.span(name) for name in spans}, (drawn, text)


@pytest.mark.parametrize("asserts", [False, True])
def test_patterns_capture_as_re_does(asserts: bool) -> None:
    for seed in range(250):
        agrees_with_re(seed, asserts)


@pytest.mark.slow
@pytest.mark.parametrize("asserts", [False, True])
def test_many_patterns_capture_as_re_does(asserts: bool) -> None:
    for seed in range(1000, 7000):
        agrees_with_re(seed, asserts)


Made = tuple[Constraint[Any], tuple[Any, ...]]


def lazily(rng: random.Random) -> Made:
    low, lazy = rng.choice([0, 1, 2]), rng.random() < 0.5
    most = rng.choice([None, low + 1])
    chars = rng.choice(["a", "b", "[ab]"])
    term: Any = ("choice", [("text", one) for one in chars.strip("[]")])
    count = f"{{{low},{'' if most is None else most}}}{'?' * lazy}"
    return gw.Regex(chars + count), ("times", term, low, most, lazy)


def choice(rng: random.Random) -> Made:
    texts = rng.sample(["a", "b", "ab", "ba", "aab", "bb"], rng.randrange(1, 4))
    return gw.Choice(texts), ("longest", texts)


def numbers(rng: random.Random) -> Made:
    texts = rng.sample(['"a"', '"ab"', '"b"'], 2)
    return gw.JsonSchema({"enum": [one.strip('"') for one in texts]}), ("longest", texts)


def combined(rng: random.Random, depth: int) -> Made:
    """A source out of any others, and the same as a term of the twin."""
    if depth == 0:
        return rng.choice((lazily, choice, choice, numbers))(rng)
    one, term = combined(rng, depth - 1)
    kind = rng.randrange(6)
    if kind == 0:
        other, also = combined(rng, depth - 1)
        return one + other, ("series", [term, also])
    if kind == 1:
        other, also = combined(rng, depth - 1)
        return one | other, ("choice", [term, also])
    if kind == 2:
        return one.optional(), ("times", term, 0, 1, False)
    if kind == 3:
        least, most, between = rng.choice([(0, None, ""), (1, 2, ""), (2, None, "b"), (0, 3, "a")])
        items: Any = ("times", term, least, most, False)
        if between:
            more = ("times", ("series", [("text", between), term]), max(least - 1, 0), most and most - 1, False)
            items = ("times", ("series", [term, more]), min(least, 1), 1, False)
        return one.repeat(least, most, separator=between), items
    if kind == 4:
        grammar = gw.Lark('start: "a"? part | part "b"', parts={"part": one})
        part = ("name", "part", term)
        options = [("series", [("times", ("text", "a"), 0, 1, False), part]), ("series", [part, ("text", "b")])]
        return grammar, ("name", "start", ("choice", options))
    name = f"n{rng.randrange(3)}"
    return one.capture(name), ("name", name, term)


def spans_of(source: Constraint[Any], text: str) -> list[tuple[str, int, int]] | None:
    try:
        return [(one.name, one.start, one.end) for one in source.captures(text).spans if one.name]
    except gw.errors.InvalidTextError:
        return None


def agrees_with_the_twin(seed: int) -> int:
    """How many texts had a derivation."""
    rng = random.Random(seed)
    source, term = combined(rng, rng.randrange(1, 5))
    texts = [*TEXTS, '"a"', '"ab"a', 'a"b"', '"a""b"', '"a"b"ab"', '"a"a"b"']
    found = 0
    for text in rng.sample(texts, 25):
        expected = first_derivation(term, text)
        assert spans_of(source, text) == expected, (seed, source, text)
        found += expected is not None
    return found


def test_combinations_capture_as_the_twin_does() -> None:
    assert sum(agrees_with_the_twin(seed) for seed in range(150)) > 200


@pytest.mark.slow
def test_many_combinations_capture_as_the_twin_does() -> None:
    for seed in range(1000, 6000):
        agrees_with_the_twin(seed)


def rules(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """Returns recursive rules, some left recursive. No rule matches the empty text or only refers to itself."""
    names = ["root", "x", "y"][: rng.randrange(1, 4)]
    lines, terms = [], dict[str, Any]()
    for number, name in enumerate(names):
        options: list[list[str]] = [[rng.choice(['"a"', '"b"'])]]
        for _ in range(rng.randrange(1, 3)):
            symbols = ['"a"', '"b"', *names]
            option = [rng.choice(symbols) for _ in range(rng.randrange(1, 4))]
            later = [f'"{char}"' for char in "ab"] + names[number + 1 :]
            options.insert(rng.randrange(len(options) + 1), option if len(option) > 1 else [rng.choice(later)])
        lines.append(f"{name} ::= {' | '.join(' '.join(option) for option in options)}")
        read: Callable[[str], Any] = lambda one: ("text", one[1]) if one[0] == '"' else ("rule", one)  # noqa: E731  # short
        terms[name] = ("name", name, ("choice", [("series", [read(one) for one in option]) for option in options]))
    return "\n".join(lines), terms


def test_grammars_capture_as_the_twin_does() -> None:
    found = 0
    for seed in range(200):
        rng = random.Random(seed)
        text, terms = rules(rng)
        source = gw.Gbnf(text)
        for one in rng.sample(TEXTS, 12):
            expected = first_derivation(("rule", "root"), one, terms)
            assert spans_of(source, one) == expected, (seed, text, one)
            found += expected is not None
    assert found > 200
