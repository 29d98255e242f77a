"""`Gbnf`: the start rule, and what the notation of xgrammar adds to that of llama.cpp."""

from __future__ import annotations

import pytest

import guideway as gw
from guideway.errors import InvalidConstraintError, InvalidTextError, UnsupportedError

TWO = 'main ::= item ("," item)*\nitem ::= [0-9]+'


def test_another_start_rule() -> None:
    assert gw.Gbnf(TWO, start="main").parse("1,22") == "1,22"
    assert gw.Gbnf(TWO, start="item").parse("22") == "22"
    with pytest.raises(InvalidTextError):
        gw.Gbnf(TWO, start="item").parse("1,22")
    with pytest.raises(InvalidConstraintError, match="'root' is not defined; defined rules: item, main"):
        gw.Gbnf(TWO)
    assert gw.Gbnf(TWO, start="main") != gw.Gbnf(TWO, start="item")


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ('root ::= "a" (= "b")', "a lookahead, .* is not supported", "line 1, column 14"),
        ('root ::= x\nx ::= "a" (="b")', "a lookahead, .* is not supported", "line 2, column 11"),
        (
            'root ::= TagDispatch(("<a>", x))\nx ::= "y"',
            "'TagDispatch' of xgrammar is not supported",
            "line 1, column 10",
        ),
        ('root ::= x\nx ::= TagDispatch (("<a>", x), loop_after_dispatch=false)', "'TagDispatch'", "line 2, column 7"),
        (
            "root ::= Token(1)",
            "'Token' of xgrammar is not supported; for a token, write '<\\[id\\]>'",
            "line 1, column 10",
        ),
        ("root ::= ExcludeToken(1, 2)", "'ExcludeToken'", "line 1, column 10"),
    ],
)
def test_parts_of_xgrammar_that_are_not_supported_have_a_place(text: str, words: str, place: str) -> None:
    with pytest.raises(UnsupportedError, match=words) as found:
        gw.Gbnf(text)
    assert str(found.value.place).startswith(f"{place}:")


def test_rules_with_names_of_functions_of_xgrammar() -> None:
    assert gw.Gbnf('root ::= Token("b")\nToken ::= "a"').parse("ab") == "ab"


def test_a_dot_between_names_is_any_character_unless_a_rule_has_the_whole_name() -> None:
    rules = 'a ::= "a"\nb ::= "b"\n'
    assert gw.Gbnf(f"root ::= a.b\n{rules}").parse("a!b") == "a!b"
    named = gw.Gbnf(f'root ::= a.b\n{rules}a.b ::= "c"')
    assert named.parse("c") == "c"
    with pytest.raises(InvalidTextError):
        named.parse("a!b")
