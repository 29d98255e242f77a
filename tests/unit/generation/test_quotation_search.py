"""Verbatim strings chosen as a whole: against all token sequences, and the options that go with it."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import BaseModel

import guideway as gw
from guideway import masks
from guideway.generation import complete, complete_extract
from guideway.generation.quotation_search import best_quotation
from guideway.sampling import log_softmax
from guideway.sessions import Session, feed_all
from guideway.tokenizers import Vocabulary
from tests.helpers.toy_models import toy_model

BYTES = [bytes([code]) for code in range(256)]
TABLE = Vocabulary([b"", *BYTES, b"ab", b"bc", b'c"', b' b"', b"ca"], eos_ids=[0], special_ids=[0])
SCHEMA = gw.JsonSchema({"type": "string", "format": "verbatim"})
TEXTS = ["ab bca c", "aab, c", "b", 'a "bc" \\ b', "né c字"]


def constrained(model: gw.Model, text: str, prompt: bytes = b"x") -> Session:
    session = model.session()
    session.feed([code + 1 for code in prompt])
    session.constrain(gw.compile(SCHEMA.quoting(text), TABLE).matcher())
    session.feed([ord('"') + 1])
    feed_all([session])
    return session


def every_string(session: Session) -> dict[tuple[int, ...], float]:
    """The log-probability of each token sequence up to the end of the string."""
    found: dict[tuple[int, ...], float] = {}
    todo: list[tuple[Session, tuple[int, ...], float]] = [(session.fork(), (), 0.0)]
    while todo:
        one, tokens, logprob = todo.pop()
        if tokens and (one.matcher is None or one.matcher.quotation != "inside"):
            found[tokens] = logprob
            continue
        feed_all([one])
        one.only_legal(None)
        logprobs = log_softmax(one.shared_logits())
        for token_id in masks.ids(one.mask, logprobs.size).tolist():
            further = one.fork()
            further.feed([token_id])
            todo.append((further, (*tokens, token_id), logprob + float(logprobs[token_id])))
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("text", TEXTS)
def test_a_wide_search_finds_the_most_probable_string(seed: int, text: str) -> None:
    session = constrained(toy_model(TABLE, seed), text)
    wanted = every_string(session)
    before = session.tokens
    found = tuple(best_quotation(session, 10_000, None))
    assert found in wanted
    assert wanted[found] == pytest.approx(max(wanted.values()))
    assert session.tokens == before
    narrow = tuple(best_quotation(session, 2, None))
    assert narrow in wanted
    assert wanted[narrow] <= wanted[found] + 1e-6


def test_where_a_text_is_in_a_quotation() -> None:
    schema = gw.JsonSchema(
        {
            "type": "object",
            "properties": {"a": {"type": ["string", "null"], "format": "verbatim"}, "b": {"type": "string"}},
            "required": ["a", "b"],
        }
    ).quoting("né c字")
    matcher = gw.compile(schema, TABLE).matcher()
    seen = []
    for byte in '{"a": "né", "b": "né"}'.encode():
        matcher.advance(byte + 1)
        seen.append(matcher.quotation)
    at = b'{"a": "'
    assert seen[: len(at) - 1] == [None] * (len(at) - 1)
    assert seen[len(at) - 1 : len(at) + 3] == ["begins", "inside", "inside", "inside"]
    assert set(seen[len(at) + 3 :]) == {None}
    matcher.advance(0)
    assert matcher.quotation is None


class Record(BaseModel):
    names: list[Annotated[str, gw.Verbatim()]]
    note: Annotated[str | None, gw.Verbatim()]


@pytest.mark.parametrize("options", [{}, {"logprobs": 2}, {"bad_words": ["c"]}, {"temperature": 1.0, "seed": 3}])
@pytest.mark.parametrize("seed", range(6))
def test_records_fit_with_other_options(seed: int, options: dict[str, Any]) -> None:
    text = "ab bca aa b ca"
    model = toy_model(TABLE, seed)
    for beams in (1, 4):
        found = complete_extract(model, text, Record, max_tokens=120, verbatim_beams=beams, **options)
        assert all(name in text for name in found.value.names)
        assert "logprobs" not in options or len(found.steps) == len(found.tokens)
        assert "bad_words" not in options or "c" not in found.text.replace('"note"', "").replace("names", "")


def test_the_budget_holds() -> None:
    text = "abc " * 40
    for most in range(4, 30):
        made = complete(toy_model(TABLE, 1), "x", SCHEMA.quoting(text), max_tokens=most, verbatim_beams=4)
        assert len(made.tokens) <= most
        assert made.value in text


def test_wrong_values() -> None:
    with pytest.raises(ValueError, match="verbatim_beams must be at least 1, got 0"):
        gw.generate(toy_model(TABLE, 1), "x", int, verbatim_beams=0)


def test_the_most_probable_string_is_not_that_of_the_most_probable_token() -> None:
    """The first token prefers a string whose rest is improbable."""
    from guideway.testing import ConstantModel

    logits = np.full(len(TABLE), -20.0, np.float32)
    for char, value in (("a", 3.0), ("z", -6.0), ("b", 2.5), ("c", 2.0), ('"', 2.0)):
        logits[ord(char) + 1] = value
    model = ConstantModel(TABLE, logits)
    source = SCHEMA.quoting("azz bc")
    assert gw.generate(model, "x", source) == "azz"
    assert gw.generate(model, "x", source, verbatim_beams=4) == "bc"
