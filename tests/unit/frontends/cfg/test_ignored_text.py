"""Ignored text in Lark grammars has the length that Lark's own lexer gives it; comparison with Lark."""

from __future__ import annotations

import itertools
import random

import lark
import pytest

import guideway as gw
from guideway.errors import ConstraintError, UnsupportedError
from guideway.grammar.recognizer import fits
from tests.helpers.counts import seeds

LETTERS = "ab# c"
TEXTS = ["".join(one) for size in range(5) for one in itertools.product(LETTERS, repeat=size)]
IGNORED = [
    *("/#[a-c]*/", "/[ab]+/", '" "', "/ +/", "/a|ab/", "/ab|a/", "/(#c)+/", "/#.*?#/", "/ ?a/", "/[ #]/", "/#a?/"),
    *("WS", "/(ab?)+/"),
]
TERMINALS = ['"a"', '"b"', "/[a-c]/", "/[ab]+/", "/#/", '" "', "/a b/", '"#c"', "/c+/", "/#+a/"]


def accepted_by_lark(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


def agrees(grammar: str, texts: list[str]) -> None:
    parser = lark.Lark(grammar, parser="earley", lexer="dynamic_complete")
    source = gw.Lark(grammar).grammar()
    wrong = [text for text in texts if fits(source, text) != accepted_by_lark(parser, text)]
    assert wrong == [], grammar


@pytest.mark.parametrize(
    "grammar",
    [
        'start: "a"\n%ignore /#[a-z]*/',
        'start: "a" "b"?\n%ignore /a|ab/',
        'start: "a" " " "b"\n%ignore / +/',
        "start: /[a-c]/+\n%ignore /#.*?#/",
        'start: "a" "#c"\n%ignore /(#c)+/\n%ignore " "',
        'start: "b"\n%ignore /ab?/\n%ignore /#+/',
    ],
)
def test_an_ignored_terminal_takes_its_longest_match(grammar: str) -> None:
    agrees(grammar, TEXTS)


def test_a_comment_takes_the_letters_after_it() -> None:
    source = gw.Lark('start: "a"\n%ignore /#[a-z]*/').grammar()
    assert [text for text in ("a", "a#b", "#b#a", "#ba", "#") if fits(source, text)] == ["a", "a#b"]


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_random_grammars(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    for _ in range(20):
        some = rng.sample(TERMINALS, rng.randint(1, 3))
        sequences = [
            " ".join(rng.choice([*some, "x"] if place else some) for place in range(rng.randint(1, 3)))
            for _ in range(rng.randint(1, 3))
        ]
        lines = ["start: x", f"x: {' | '.join(sequences)}", *(f"%ignore {one}" for one in rng.sample(IGNORED, 2))]
        lines.append("%import common.WS")
        longer = ["".join(rng.choice(LETTERS) for _ in range(rng.randint(5, 9))) for _ in range(40)]
        try:
            agrees("\n".join(lines), [*rng.sample(TEXTS, 150), *longer])
        except ConstraintError:  # not supported, or no finite text
            continue
        compared += 1
    assert compared >= 10


def test_ignored_text_that_depends_on_the_text_after_a_terminal_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="depends on the text after it"):
        gw.Lark('start: "a" "b" "c"\n%ignore /x(abd)?/')


def test_captures_have_no_ignored_text() -> None:
    source = gw.Lark('start: one "b"\none: "a"\n%ignore /#[x-z]*/')
    found = source.captures("#xa#yb#")
    assert [one.text for one in found.spans if one.name == "one"] == ["a"]


TABLE = gw.Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"", *(f"<|{n}|>".encode() for n in range(6))],
    eos_ids=[256],
    special_ids=range(256, 263),
)


@pytest.mark.parametrize("write", [lambda ids: gw.Lark(f"start: {ids}"), lambda ids: gw.Gbnf(f"root ::= {ids}")])
def test_ranges_of_token_ids(write: type[gw.Lark]) -> None:
    matcher = gw.compile(write("<[257-258,261]>"), TABLE).matcher()
    allowed = [token for token in range(263) if matcher.fork().validate([token]) == 1]
    assert allowed == [257, 258, 261]
    for wrong in ("<[3-]>", "<[x]>", "<[5-3]>", "<[]>"):
        with pytest.raises(gw.errors.ConstraintError):
            write(wrong)
    with pytest.raises(gw.errors.LimitExceededError, match="more than 10,000"):
        write("<[0-999999]>")


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        ('start: apply{it, "x"}\napply{t, x}: t{x}\nit{y}: y+', "templates as arguments"),
        ("start: apply{it}\napply{t}: t\nit{y}: y", "templates as arguments"),
        ('start: apply{"x"}\napply{t}: t{"y"}', "a parameter is not supported as a template"),
    ],
)
def test_templates_as_arguments_are_not_supported(grammar: str, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        gw.Lark(grammar)


def test_the_start_is_a_rule() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="start rule 'A' is not defined; defined rules: start"):
        gw.Lark('start: A\nA: "a"', start="A")


def test_priorities_of_rules_in_conflicts_are_not_supported() -> None:
    grammar = 'start: a | b\na.2: "x"\nb.1: "x"'
    assert lark.Lark(grammar, parser="lalr").parse("x").children[0].data == "a"
    with pytest.raises(UnsupportedError, match="reduce/reduce conflict"):
        gw.Lark(grammar, lexer="contextual")
