"""The combinators and types of `guideway.dsl`."""

from __future__ import annotations

import re
from typing import Any

import pytest

import guideway as gw
from guideway import dsl as p
from guideway.constraints import Constraint
from guideway.dsl import at_least, at_most, between, capture, char, digit, either, exactly, optional, repeat, sequence
from tests.helpers.reference_grammar import fits

PRICE = sequence(
    either("$", "€"), capture("whole", digit.at_least(1)), optional(sequence(".", exactly(2, digit).capture("cents")))
)
CASES: list[tuple[Constraint[Any], list[str], list[str]]] = [
    (PRICE, ["$5", "€10.99", "$007.00"], ["5", "$5.", "$5.9", "€.99"]),
    (exactly(3, "ab"), ["ababab"], ["abab", "abababab", ""]),
    (at_least(2, digit), ["12", "123", "0" * 50], ["", "1", "1a"]),
    (at_most(2, digit), ["", "1", "12"], ["123", "a"]),
    (between(1, 2, "x"), ["x", "xx"], ["", "xxx"]),
    (repeat(digit, 1, 3, separator=", "), ["1", "1, 2", "1, 2, 3"], ["", "1,2", "1, 2, 3, 4", "1, "]),
    (digit.between(2, 3, separator="-"), ["1-2", "1-2-3"], ["1", "12", "1-2-3-4"]),
    (char("a-c", "_", "-"), ["a", "c", "_", "-"], ["d", "", "ab", "^"]),
    (char("^", "]", "\\"), ["^", "]", "\\"], ["a", ""]),
    (p.char_except("a-z"), ["A", "é", "\n"], ["a", "z", ""]),
    (either(p.integer, "none"), ["0", "-12", "none"], ["00", "-", "nonenone", "1.5"]),
    (p.decimal, ["0", "-0.50", "12.0"], [".5", "1.", "01.5"]),
    (p.any_text, ["", "a\nb"], []),
    (p.any_char, ["a", "\n", "日"], ["", "ab"]),
    (p.hex_digit.exactly(2), ["0f", "A9"], ["g0", "0"]),
    (p.letter + p.word_char.repeat(), ["a", "a_1"], ["1a", "_", "é"]),
    (p.space.repeat() + p.newline, [" \t\n", "\r\n"], [" ", "\r"]),
    (p.date & ~gw.Regex("2024-.*"), ["2023-02-28"], ["2024-01-01", "2023-02-29"]),
    (sequence(bool, ";"), ["true;", "false;"], ["true", "True;"]),
]
READY = {
    "date": "2024-02-29",
    "time": "10:20:30Z",
    "date_time": "2024-02-29T10:20:30+01:00",
    "duration": "P3DT4H",
    "email": "ada@example.org",
    "hostname": "example.org",
    "ip": "::1",
    "ipv4": "127.0.0.1",
    "ipv6": "2001:db8::1",
    "uri": "urn:isbn:0451450523",
    "url": "https://example.org/a?b#c",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "semver": "1.0.0-rc.1+build",
    "phone": "+14155550123",
    "hex_colour": "#00ff7f",
}


@pytest.mark.parametrize(("source", "passing", "missing"), CASES)
def test_texts(source: Constraint[Any], passing: list[str], missing: list[str]) -> None:
    assert [text for text in passing if not fits(source.grammar(), text)] == []
    assert [text for text in missing if fits(source.grammar(), text)] == []


def test_ready_types() -> None:
    assert {name for name in p.__all__ if isinstance(getattr(p, name), gw.Format)} == set(READY)
    for name, text in READY.items():
        assert getattr(p, name).parse(text) == text
        with pytest.raises(gw.errors.InvalidTextError):
            getattr(p, name).parse(text + "\n")


def test_parts_stay_regular() -> None:
    assert PRICE.regular() is not None
    assert sequence("a", gw.JsonSchema(True)).regular() is None
    with pytest.raises(gw.errors.UnsupportedError, match="&"):
        sequence("a", gw.JsonSchema(True)) & "a"


def test_captures() -> None:
    found = PRICE.captures("$12.50")
    assert dict(found) == {"whole": "12", "cents": "50"}
    assert dict(PRICE.captures("$12")) == {"whole": "12"}
    assert (found.last("cents").start, found.last("cents").end) == (4, 6)


def test_errors_of_combinators() -> None:
    for make in (
        lambda: sequence(),
        lambda: either(),
        lambda: char(),
        lambda: char("ab"),
        lambda: char("z-a"),
        lambda: char(5),  # type: ignore[arg-type]  # the mistake under test
        lambda: char(["a", "-", "z"]),  # type: ignore[arg-type]  # the mistake under test
        lambda: optional(3),
        lambda: exactly(-1, "a"),
        lambda: between(3, 2, "a"),
        lambda: capture("two words", "a"),
    ):
        with pytest.raises(gw.errors.InvalidConstraintError):
            make()


def test_flags() -> None:
    assert gw.Regex("straße", flags="i").parse("STRASSE".replace("SS", "ß")) == "STRAßE"
    assert gw.Regex("a.b", flags=re.I | re.S).flags == "is"
    assert gw.Regex("a # x\n", flags="x").parse("a") == "a"
    assert gw.Regex("k", flags="i", dialect="ecma").parse("\u212a") == "\u212a"
    assert gw.Regex("(?-i:a)b", flags="i").parse("aB") == "aB"
    with pytest.raises(gw.errors.InvalidTextError):
        gw.Regex("(?-i:a)b", flags="i").parse("AB")
    compiled = re.compile("a(?P<x>.)", re.I | re.S)
    assert dict(gw.Regex(compiled).captures("A\n")) == {"x": "\n"}
    assert gw.Regex(compiled) == gw.Regex("a(?P<x>.)", flags="is") != gw.Regex("a(?P<x>.)")
    for flags, dialect in (("q", "python"), ("x", "ecma"), (re.L, "python"), (["i"], "python")):
        with pytest.raises(gw.errors.InvalidConstraintError, match="flags"):
            gw.Regex("a", flags=flags, dialect=dialect)  # type: ignore[arg-type]  # what a user may get wrong
    with pytest.raises(gw.errors.InvalidConstraintError, match="flags"):
        gw.Regex(compiled, flags="i")


def test_nested_counts_are_merged() -> None:
    nested = gw.Regex("(?:(?:(?:a{0,100}){0,100}){0,100}){0,100}")
    assert nested.parse("a" * 500)
    for pattern in (
        "(?:a{1,3}){2,3}",
        "(?:a{0,2}){2,3}",
        "(?:a{2,3}){2,3}",
        "(?:a+){0,2}",
        "(?:a{1,2}){0,2}",
        "(?:a?)+",
    ):
        for length in range(12):
            fitting = re.fullmatch(pattern, "a" * length) is not None
            assert fits(gw.Regex(pattern).grammar(), "a" * length) is fitting, (pattern, length)


def test_many_parts_take_linear_time() -> None:
    assert sequence(*["a"] * 20_000).parse("a" * 20_000)
