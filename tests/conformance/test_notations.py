"""Every case of the grammar TOML files: in random pieces, with every setting, and bit by bit."""

from __future__ import annotations

import random
from typing import Any

import lark
import pytest

import guideway as gw
from guideway.constraints import Constraint
from tests.oracle.grammars import GrammarWorld
from tests.oracle.matcher import Tokens
from tests.property import vocabularies
from tests.property.checks import Lockstep, Tally
from tests.property.crowd import Crowd

from .test_conformance import EOS, cases, holds, pieces, refused

MAKERS: dict[str, Any] = {"gbnf": gw.Gbnf, "ebnf": gw.Ebnf, "lark": gw.Lark}
ALL = [pytest.param(name, *case.values, id=f"{name}-{case.id}") for name in MAKERS for case in cases(f"{name}.toml")]
ALL += [pytest.param("lark", *case.values, id=f"beyond-{case.id}") for case in cases("lark.toml", "beyond")]


@pytest.mark.parametrize(("notation", "case"), ALL)
def test_texts(notation: str, case: dict[str, Any]) -> None:
    source = MAKERS[notation](case["grammar"])
    holds(source, case["pass"], case["miss"])
    for text in case["pass"]:
        assert source.parse(text) == text
    for text in case["miss"]:
        with pytest.raises(gw.errors.InvalidTextError):
            source.parse(text)


@pytest.mark.parametrize(("notation", "case"), ALL)
def test_enough_texts(notation: str, case: dict[str, Any]) -> None:
    assert len(set(case["pass"])) >= 3
    assert len(set(case["miss"]) - set(case["pass"])) >= 3


@pytest.mark.parametrize("case", cases("lark.toml"))
def test_lark_agrees(case: dict[str, Any]) -> None:
    judge = lark.Lark(case["grammar"], parser="earley", lexer="dynamic_complete")

    def fits(text: str) -> bool:
        try:
            judge.parse(text)
        except lark.exceptions.UnexpectedInput:
            return False
        return True

    assert [text for text in case["pass"] if not fits(text)] == []
    assert [text for text in case["miss"] if fits(text)] == []


def masks_agree(source: Constraint[Any], name: str, passing: list[str], missing: list[str]) -> None:
    """Compares the mask, the forced text and the refused tokens with the oracle of the nodes, along each valid text."""
    rng = random.Random(3)
    texts = tuple(dict.fromkeys([*pieces(passing + missing, 4)[EOS + 1 :], b"a", b" ", b"(", b"1"]))
    tokens = Tokens((*texts, b"</s>"), frozenset({len(texts)}))
    oracle = GrammarWorld(source.grammar()).oracle()
    tables = [vocabularies.kernel(tokens), *(vocabularies.kernel(tokens, **one) for one in vocabularies.SETTINGS)]
    matcher = Crowd.compiled(source, tables)
    lockstep = Lockstep(name, matcher, oracle, tokens, rng, Tally(), 0)
    lockstep.walk(3, 12)
    for text in passing:
        left, taken = text.encode(), 0
        while left:
            fitting = [n for n in sorted(lockstep.mask()) if n not in tokens.eos and left.startswith(tokens.texts[n])]
            if not fitting:
                break  # the few tokens cannot spell it
            token = rng.choice(fitting)
            lockstep.advance(token)
            left, taken = left[len(tokens.texts[token]) :], taken + 1
            lockstep.mask()
        lockstep.rollback(taken)


@pytest.mark.parametrize(("notation", "case"), ALL)
def test_masks(notation: str, case: dict[str, Any]) -> None:
    masks_agree(MAKERS[notation](case["grammar"]), case["name"], case["pass"], case["miss"])


REFUSED = [
    pytest.param(name, *case.values, id=f"{name}-{case.id}")
    for name in MAKERS
    for case in cases(f"{name}.toml", "refused")
]


@pytest.mark.parametrize(("notation", "case"), REFUSED)
def test_refused(notation: str, case: dict[str, Any]) -> None:
    error = refused(lambda: MAKERS[notation](case["grammar"]), case)
    assert case["says"] in str(error)
    if "line" in case or "column" in case:
        assert error.place is not None
        assert error.place in str(error), "the message draws the caret"
        where, shown, caret = error.place.split("\n")
        line, column = case.get("line", 1), case.get("column", 1 + caret.index("^"))
        assert where == f"line {line}, column {column}:"
        assert case["grammar"].split("\n")[line - 1].startswith(shown)
        assert caret.index("^") == column - 1
