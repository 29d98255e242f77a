"""`repeat` and `optional` of constraints, and `Substring`."""

from __future__ import annotations

import random

import pytest

import guideway as gw
from tests.helpers.byte_tokens import BYTES, parses


def test_regular_sources_repeat() -> None:
    some = gw.Regex("[ab]").repeat(2, 3, separator=", ")
    texts = ("a, b", "a, b, a", "a", "a, b, a, b", "a,b", "", "a, ")
    assert [parses(some, text) for text in texts] == [True, True, False, False, False, False, False]  # type: ignore[arg-type]  # sources all
    assert some.regular() is not None
    assert [parses(gw.Choice(["x"]).repeat(0, 0), text) for text in ("", "x")] == [True, False]  # type: ignore[arg-type]  # as above


def test_other_sources_repeat() -> None:
    one = gw.JsonSchema({"type": "array", "items": {"type": "integer"}})
    lines = one.repeat(1, separator="\n") + gw.Regex("!").optional()
    assert lines.parse("[]\n[1, 2]!") == "[]\n[1, 2]!"
    for text in ("", "[]\n", "[][]", "!"):
        with pytest.raises(gw.errors.InvalidTextError):
            lines.parse(text)
    nested = gw.Gbnf('root ::= "(" root ")" | "x"').repeat(2, 2)
    assert nested.parse("(x)x") == "(x)x"


def test_bad_bounds() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="least=3 and most=2"):
        gw.Regex("a").repeat(3, 2)
    with pytest.raises(gw.errors.InvalidConstraintError, match="least=-1"):
        gw.constraints.Substring("abc", least=-1)
    with pytest.raises(gw.errors.InvalidConstraintError, match="got 4"):
        gw.constraints.Substring("abc", least=4)
    with pytest.raises(gw.errors.LimitExceededError, match="at most 8,000,000"):
        gw.constraints.Substring("a" * 8_000_001)


@pytest.mark.parametrize("seed", range(30))
def test_quotations(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choice("abé\n") for _ in range(rng.randrange(1, 30)))
    source = gw.constraints.Substring(text, least=1, most=6)
    matcher = gw.compile(source, BYTES, cache=False).matcher()
    for _ in range(60):
        quoted = "".join(rng.choice("abé\n") for _ in range(rng.randrange(5)))
        expected = quoted != "" and quoted in text
        ids = [*quoted.encode(), 256]
        assert (matcher.validate(ids) == len(ids)) is expected
        assert parses(source, quoted) is expected
    for start in range(len(text)):
        ids = [*text[start : start + 7].encode(), 256]
        assert (matcher.validate(ids) == len(ids)) is (len(text) - start <= 6)


def test_a_long_text() -> None:
    rng = random.Random(1)
    text = " ".join("".join(rng.choice("abcdefgh") for _ in range(6)) for _ in range(1000))
    source = gw.constraints.Substring(text)
    assert source.parse(text[1234:2345])
    matcher = gw.compile(source, BYTES, cache=False).matcher()
    ids = [*text[1234:2345].encode(), 256]
    assert matcher.validate(ids) == len(ids)
    assert matcher.validate([*b"aaaaaaaa"]) < 8


@pytest.mark.parametrize("times", [(1.5, 2), (True, 2), ("1", None), (0, 2.0)])
def test_repeat_counts_are_ints(times: tuple[object, object]) -> None:
    with pytest.raises(TypeError, match="ints"):
        gw.Regex("a").repeat(*times)  # type: ignore[arg-type]  # what is tested


def test_more_times_than_can_be_counted() -> None:
    with pytest.raises(gw.errors.LimitExceededError, match="2,147,483,647"):
        gw.Regex("a").repeat(0, 10**30)


@pytest.mark.parametrize("separator", [b"x", 3])
def test_separators_are_texts(separator: object) -> None:
    with pytest.raises(TypeError, match="separator"):
        gw.Regex("a").repeat(0, 5, separator=separator)  # type: ignore[arg-type]  # what is tested


def test_invalid_text_is_reported() -> None:
    with pytest.raises(TypeError, match="name"):
        gw.Regex("a").capture(3)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="text must be a str, got bytes"):
        gw.JsonSchema({}).captures(b"1")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="text must be a str, got bytes"):
        gw.JsonSchema({}).parse(b"1")  # type: ignore[arg-type]  # what is tested
