"""`lexer="contextual"`: its semantics, captures, and refused grammars."""

from __future__ import annotations

import pytest

import guideway as gw
from tests.helpers.byte_tokens import parses

NAMES = "%import common.CNAME -> NAME\n%import common.WS\n%ignore WS\n"


def test_a_keyword_is_no_name_where_it_may_stand() -> None:
    text = f'start: "if" NAME | NAME "=" NAME\n{NAMES}'
    free, contextual = gw.Lark(text), gw.Lark(text, lexer="contextual")
    assert parses(free, "if = a")
    assert not parses(contextual, "if = a")
    assert parses(contextual, "a = if")  # no keyword is possible there, so it is a name
    assert parses(contextual, "if iff")


def test_a_terminal_takes_all_that_it_can() -> None:
    text = f'start: NAME+ "in" NAME\n{NAMES}'
    assert parses(gw.Lark(text), "ain b")
    assert not parses(gw.Lark(text, lexer="contextual"), "ain b")
    assert parses(gw.Lark(text, lexer="contextual"), "a in b")
    comparison = 'start: A "<" "=" A | A "<=" A\nA: "a"'
    assert parses(gw.Lark(comparison, lexer="contextual"), "a<=a")
    assert not parses(gw.Lark('start: A "<" "=" A | A "<=" A "!"\nA: "a"', lexer="contextual"), "a<=a")


def test_priorities_and_the_order_of_alternatives_count() -> None:
    digits = "start: A B\nA{}: /[0-9]/\nB: /[0-9]+x/"
    assert parses(gw.Lark(digits.format(""), lexer="contextual"), "12x")
    number = "start: N (X | N)\nN: /0|0x1/\nX: /x1/"  # `re` takes the first alternative
    assert parses(gw.Lark(number, lexer="contextual"), "0x1")
    assert not parses(gw.Lark(number, lexer="contextual"), "00x10")


@pytest.mark.parametrize("definition", ["%override WORD: /a|ab/", "%extend WORD: /a|ab/", ""])
def test_a_pattern_in_place_of_an_imported_one_takes_its_first_alternative(definition: str) -> None:
    source = gw.Lark(f'start: WORD "c"\n%import common.DIGIT -> WORD\n{definition}', lexer="contextual")
    assert parses(source, "ac") == bool(definition)
    assert parses(source, "1c") == ("override" not in definition)
    assert not parses(source, "abc")


def test_a_conflict_of_shift_and_reduce_is_a_shift() -> None:
    text = 'start: s\ns: "i" s ["e" s] | "x"'
    source = gw.Lark(text, lexer="contextual")
    assert parses(source, "iixex")
    assert parses(source, "iixexex")
    lost = gw.Lark('start: a "b" | a "c"\na: "x" ["b"]', lexer="contextual")  # "b" belongs to `a` wherever it can
    assert not parses(lost, "xb")
    assert parses(lost, "xbb")


def test_captures_have_the_names_of_the_grammar() -> None:
    source = gw.Lark(f'start: call\ncall: NAME "(" [_list] ")"\n_list: NAME ("," NAME)*\n{NAMES}', lexer="contextual")
    found = source.captures("f ( a , b )")
    assert [one.text for one in found.all("NAME")] == ["f", "a", "b"]
    assert found["call"] == "f ( a , b )"


def test_special_tokens_between_terminals() -> None:
    source = gw.Lark(f'start: NAME <|x|> NAME "if" NAME\n{NAMES}', lexer="contextual")
    assert parses(source, "a<|x|>b if if")


def test_the_lexer_is_part_of_what_a_source_is() -> None:
    text = f"start: NAME+\n{NAMES}"
    assert gw.Lark(text) != gw.Lark(text, lexer="contextual")
    assert gw.Lark(text, lexer="contextual") == gw.Lark(text, lexer="contextual")


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("start: A B\nA: /[a-z]+/\nB: /[a-z]+/", gw.errors.UnsatisfiableError, "no rule can be completed"),
        ('start: a "x" | b "x"\na: "y"\nb: "y"', gw.errors.UnsupportedError, "reduce/reduce"),
        ('start: a "x" | b "x" | "y" "x"\na: "y"\nb: "y"', gw.errors.UnsupportedError, "reduce/reduce"),  # also a shift
        ("start: /[ab]c/ | /a[cd]/", gw.errors.UnsupportedError, "names that Lark generates"),
        ("start: /a(?=b)/ A\nA: /[ab]+/", gw.errors.UnsupportedError, "depends on the text around it"),
        ('start: "a" part', gw.errors.UnsupportedError, "not terminals of Lark"),
        ("start: " + "[/a/] " * 30, gw.errors.LimitExceededError, "the rules expand to more than"),
    ],
)
def test_what_cannot_be_held_is_refused(text: str, error: type[gw.errors.ConstraintError], words: str) -> None:
    with pytest.raises(error, match=words) as found:
        gw.Lark(text, lexer="contextual", parts={"part": gw.JsonSchema({})})
    assert found.value.place is not None


def test_an_unknown_lexer_is_named() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="'standard'"):
        gw.Lark('start: "a"', lexer="standard")  # type: ignore[arg-type]  # the point
