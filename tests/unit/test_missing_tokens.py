"""Vocabularies without the tokens that a constraint needs: the error names the missing text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import guideway as gw
from guideway.compiler import min_tokens_to_complete
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
        lambda: min_tokens_to_complete(gw.compile(X, VOCABULARY).matcher()),
        lambda: gw.generate(model(), "a", X, max_tokens=9),
        lambda: list(gw.stream(model(), "a", X, max_tokens=9)),
        lambda: gw.beam_search(model(), "a", X, max_tokens=9),
        lambda: Rows([gw.compile(X, VOCABULARY)], max_tokens=9),
        lambda: check(X, TOKENIZER),
    ],
)
def test_missing_tokens_are_reported(asked: Callable[[], object]) -> None:
    with pytest.raises(gw.UnsatisfiableError, match="no tokens that spell the shortest way to finish the text: b'x'"):
        asked()


def test_spellable_texts_are_counted() -> None:
    assert min_tokens_to_complete(gw.compile(gw.Regex("aba"), VOCABULARY).matcher()) == 3
