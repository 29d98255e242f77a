"""`parts` of grammars: constraints for names that the text does not define."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import guideway as gw
from guideway.constraints import Constraint
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
        (lambda: gw.Lark("// NONE\nstart: N\n%import common.INT -> N", parts={"N": gw.Regex("z")}), "N", 3),
        (lambda: gw.Lark('start: t{"a"}\nt{x}: x', parts={"t": gw.Regex("z")}), "t", 2),
        (lambda: gw.Lark('start: "a"\nt{x}: x', parts={"t": gw.Regex("z")}), "t", 2),
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


EMPTY_OR_NESTED = gw.Gbnf('root ::= "(" root ")" | ""')


@pytest.mark.parametrize(
    "source",
    [
        EMPTY_OR_NESTED.repeat(),
        EMPTY_OR_NESTED.repeat(2),
        EMPTY_OR_NESTED.repeat(0, 9),
        (EMPTY_OR_NESTED + EMPTY_OR_NESTED).repeat(),
        (gw.Regex("[()]{0}") | EMPTY_OR_NESTED).repeat(1),
        (EMPTY_OR_NESTED.optional() + gw.Regex("(?:\\(\\))?")).repeat(),
        gw.Lark("start: one+", parts={"one": EMPTY_OR_NESTED}),
        gw.Lark("start: start one | one", parts={"one": EMPTY_OR_NESTED}),
        gw.Gbnf("root ::= one root one |", parts={"one": EMPTY_OR_NESTED}),
        gw.Ebnf("root ::= one* one", parts={"one": EMPTY_OR_NESTED}),
    ],
)
def test_parts_that_can_be_empty_are_repeated(source: Constraint[Any]) -> None:
    for text in ("".join(one) for size in range(7) for one in itertools.product("()", repeat=size)):
        left = text
        while depth := len(left) - len(left.lstrip("(")):
            if not left.startswith(")" * depth, depth):
                break
            left = left[2 * depth :]
        try:
            fits = source.parse(text) == text
        except gw.errors.InvalidTextError:
            fits = False
        assert fits == (left == ""), text


@pytest.mark.parametrize("gap", ['\n%ignore " "', GAP])
@pytest.mark.parametrize(
    ("part", "text", "other"),
    [
        (gw.JsonSchema({"type": "string"}), '"a #b"', '"a'),
        (gw.JsonSchema({"type": "string", "maxLength": 30_000}), '"a #b"', '"a'),
        (gw.constraints.Substring("a <b"), "<b", "<a"),
        (gw.constraints.Substring("a<b" * 1_000), "<ba", "<a"),
        (gw.constraints.SpecialToken("<a>"), "<a>", "a"),
        (gw.Tags([gw.Tag("<a>", "1", "")], special=["<a>"], separator=","), "<a>1,<a>1", "<a>1,"),
        (~gw.constraints.Substring("ab") & gw.Regex("[AB]*"), "BA", "ab"),
    ],
)
def test_parts_beside_ignored_text(gap: str, part: object, text: str, other: str) -> None:
    source = gw.Lark('start: "x" one ";"' + gap, parts={"one": part})
    assert source.parse(f"x{text};") == f"x{text};"
    with pytest.raises(gw.errors.InvalidTextError):
        source.parse(f"x{other};")
    space = " " if "#" not in gap else "#"
    assert source.captures(f"x{space}{text}{space};")["one"] == text


@pytest.mark.parametrize(
    ("part", "texts"),
    [
        (gw.Regex("x?"), '"x"'),
        (gw.Choice(["", "x"]), '"x"'),
        (gw.Gbnf('root ::= "x" root "x" | "xa" | ""'), '"xx" | "xxxx" | "xa" | "xxax"'),
        (gw.constraints.SpecialToken("xa") | gw.Regex("x?"), '"xa" | "x"'),
        (gw.Regex("(ba)?"), '"ba"'),
        (gw.Choice(["", "b", "x"]), '"b" | "x"'),
    ],
)
def test_no_ignored_text_comes_before_an_empty_part(part: Constraint[Any], texts: str) -> None:
    """Two ignored texts in a row would not follow the rule of the longest match."""
    gaps = '\n%ignore /ab?/\n%ignore /bc/\nC: "c"'
    source = gw.Lark("start: part C" + gaps, parts={"part": part})
    same = gw.Lark(f"start: part? C\npart: {texts}" + gaps)
    for size in range(6):
        for text in map("".join, itertools.product("abcx", repeat=size)):
            found = []
            for one in (source, same):
                try:
                    found.append(one.parse(text))
                except gw.errors.InvalidTextError:
                    found.append(None)
            assert found[0] == found[1], text


@pytest.mark.parametrize(
    "texts", [["a" * 2_000 + "b", "a" * 2_000 + "c"], [chr(0x4E00 + n) + "x" for n in range(1_000)]]
)
def test_long_lists_of_texts_beside_ignored_text(texts: list[str]) -> None:
    source = gw.Lark("start: part\n%ignore / +/", parts={"part": gw.Choice(texts)})
    assert source.parse("  " + texts[0]) == "  " + texts[0]


@pytest.mark.parametrize("notation", [gw.Lark, gw.Gbnf, gw.Ebnf])
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({1: gw.Regex("z")}, "parts: names must be str, got int"),
        ({None: gw.Regex("z")}, "parts: names must be str, got NoneType"),
        ([("x", gw.Regex("z"))], "parts must map names to constraints, got list"),
        ("x", "parts must map names to constraints, got str"),
        ({"%start": gw.Regex("z")}, "parts: '%start' cannot be a name in a grammar"),
    ],
)
def test_wrong_types_of_parts_are_named(notation: Callable[..., object], parts: object, message: str) -> None:
    with pytest.raises(InvalidConstraintError, match=message):
        notation("start: x", parts=parts)
