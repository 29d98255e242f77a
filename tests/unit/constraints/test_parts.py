"""`parts` of grammars: constraints for names that the text does not define."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import guideway as gw
from guideway.errors import InvalidConstraintError

ONE = {"one": gw.Regex("[0-9]")}
NESTED = {"one": gw.Gbnf('root ::= "(" root ")" | "x"')}
GAP = "\n%ignore /#[a-z]*/"
"""Ignored text for which `Lark` makes rules with exact gaps."""


@pytest.mark.parametrize(
    ("make", "name", "line"),
    [
        (lambda: gw.Lark('start: one\none: "a"', parts=ONE), "one", 2),
        (lambda: gw.Lark('start: one\none: "a"\n%ignore " "', parts=ONE), "one", 2),
        (lambda: gw.Lark('start: one\none: "a"' + GAP, parts=ONE), "one", 2),
        (lambda: gw.Lark('start: one\none: "a"' + GAP, parts=NESTED), "one", 2),
        (lambda: gw.Lark('start: one\none: "a"', lexer="contextual", parts=ONE), "one", 2),
        (lambda: gw.Lark('start: ONE\nONE: "a"' + GAP, parts={"ONE": gw.Regex("[0-9]")}), "ONE", 2),
        (lambda: gw.Lark('start: "b"\nONE: "a"', parts={"ONE": gw.Regex("[0-9]")}), "ONE", 2),
        (lambda: gw.Lark("start: INT\n%import common.INT", parts={"INT": gw.Regex("[0-9]")}), "INT", 2),
        (lambda: gw.Lark('start: "b" | <|one|>' + GAP, parts={"<|one|>": gw.Regex("[0-9]")}), "<|one|>", 1),
        (lambda: gw.Gbnf('root ::= one\none ::= "a"', parts=ONE), "one", 2),
        (lambda: gw.Ebnf('root ::= one\none ::= "a"', parts=ONE), "one", 2),
        (lambda: gw.Ebnf('root = one; one = "a";', form="iso", parts=ONE), "one", 1),
    ],
)
def test_a_part_that_the_text_defines_is_refused(make: Callable[[], object], name: str, line: int) -> None:
    with pytest.raises(InvalidConstraintError) as found:
        make()
    assert f"parts: the text already defines '{name}'" in str(found.value)
    assert (found.value.place or "").startswith(f"line {line}, ")


@pytest.mark.parametrize("gap", ["", '\n%ignore " "', GAP])
@pytest.mark.parametrize(("parts", "text"), [(ONE, "7"), (NESTED, "((x))")])
def test_a_part_that_the_text_declares_is_used(gap: str, parts: dict[str, object], text: str) -> None:
    source = gw.Lark('start: one "b"\n%declare one' + gap, parts=parts)
    assert source.parse(text + "b") == text + "b"
    assert source.captures(text + "b")["one"] == text
