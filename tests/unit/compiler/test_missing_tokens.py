"""Vocabularies without the tokens that a constraint needs: the error names the missing text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import guideway as gw
from guideway.integrations._common.rows import Rows
from guideway.testing import check
from guideway.testing.toy import ToyEngine

VOCABULARY = gw.Vocabulary([b"a", b"b", b"ab", b"ba", b""], eos_ids=[4])
TOKENIZER = gw.Tokenizer.of(VOCABULARY)
X = gw.Regex("x+")


def model() -> gw.Model:
    return gw.Model(ToyEngine(5), TOKENIZER)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: gw.compile(X, VOCABULARY).matcher().min_tokens_to_complete(),
        lambda: gw.generate(model(), "a", X, max_tokens=9),
        lambda: list(gw.stream(model(), "a", X, max_tokens=9)),
        lambda: gw.search.beam_search(model(), "a", X, max_tokens=9),
        lambda: Rows([gw.compile(X, VOCABULARY)], max_tokens=9),
        lambda: check(X, TOKENIZER),
    ],
)
def test_no_tokens_spell_it(asked: Callable[[], object]) -> None:
    with pytest.raises(gw.errors.UnsatisfiableError, match="no tokens that spell the shortest completion b'x'"):
        asked()


def test_what_can_be_spelled_is_counted() -> None:
    assert gw.compile(gw.Regex("aba"), VOCABULARY).matcher().min_tokens_to_complete() == 3
