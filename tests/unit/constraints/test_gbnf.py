"""`Gbnf`: the start rule, and what the notation of xgrammar adds to that of llama.cpp."""

from __future__ import annotations

import pytest

import guideway as gw
from guideway.errors import InvalidConstraintError, InvalidTextError

TWO = 'main ::= item ("," item)*\nitem ::= [0-9]+'


def test_another_start_rule() -> None:
    assert gw.Gbnf(TWO, start="main").parse("1,22") == "1,22"
    assert gw.Gbnf(TWO, start="item").parse("22") == "22"
    with pytest.raises(InvalidTextError):
        gw.Gbnf(TWO, start="item").parse("1,22")
    with pytest.raises(InvalidConstraintError, match="'root' is not defined; defined rules: item, main"):
        gw.Gbnf(TWO)
    assert gw.Gbnf(TWO, start="main") != gw.Gbnf(TWO, start="item")


def test_a_dot_between_names_is_any_character_unless_a_rule_has_the_whole_name() -> None:
    rules = 'a ::= "a"\nb ::= "b"\n'
    assert gw.Gbnf(f"root ::= a.b\n{rules}").parse("a!b") == "a!b"
    named = gw.Gbnf(f'root ::= a.b\n{rules}a.b ::= "c"')
    assert named.parse("c") == "c"
    with pytest.raises(InvalidTextError):
        named.parse("a!b")
