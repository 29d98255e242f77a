"""The tokens of text that the constraint forces: those of the tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.generation import complete, extraction
from guideway.matcher import MOST_ENCODED

SENTENCES = Path(__file__).parents[3] / "examples" / "sentences.jsonl"
SCHEMA = {
    "type": "object",
    "properties": {
        "wholesale_buyer": {"type": "string", "format": "verbatim"},
        "midnight_ferry": {"type": ["string", "null"], "maxLength": 20},
        "unread": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
    },
    "required": ["wholesale_buyer", "midnight_ferry", "unread"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tiny() -> gw.Model:
    return gw.load("tiny")


def requests(model: gw.Model) -> list[gw.GenerationRequest]:
    texts = [json.loads(line)["text"] for line in SENTENCES.read_text().splitlines()][:12]
    return [extraction(model, text, gw.JsonSchema(SCHEMA)) for text in texts]


def test_log_probabilities_do_not_change_the_tokens(tiny: gw.Model) -> None:
    plain = complete(tiny, requests(tiny))
    reported = complete(tiny, requests(tiny), logprobs=0)
    assert [one.tokens for one in plain] == [one.tokens for one in reported]
    assert sum(one.forced for one in plain) > 5 * len(plain)


@pytest.mark.parametrize(
    "text", ["one way or none", "naïve 字 text", ' {"a": [1, 2]} ', "wholesale buyer\n\n  of drums"]
)
def test_a_forced_text_has_the_tokens_of_the_tokenizer(tiny: gw.Model, text: str) -> None:
    found = complete(tiny, "x\n", gw.Choice([text]), max_tokens=60)
    assert found.text == text
    assert list(found.tokens[:-1]) == tiny.tokenizer.encode("x\n" + text)[len(tiny.tokenizer.encode("x\n")) :]


@pytest.mark.parametrize("most", [3, 4, 5, 6, 40])
def test_the_budget_is_kept(tiny: gw.Model, most: int) -> None:
    """The longest tokens are taken where the tokens of the tokenizer are too many."""
    text = "wholesale buyer"
    shortest = gw.compile(gw.Choice([text]), tiny.vocabulary).matcher().min_tokens_to_complete()
    options: dict[str, Any] = {"max_tokens": most}
    if most < shortest:
        with pytest.raises(gw.errors.BudgetTooSmallError):
            complete(tiny, "x\n", gw.Choice([text]), **options)
    else:
        assert complete(tiny, "x\n", gw.Choice([text]), **options).text == text


@pytest.mark.parametrize("size", [MOST_ENCODED, MOST_ENCODED + 40])
def test_longer_texts_are_not_encoded(tiny: gw.Model, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    text = ("ab" * MOST_ENCODED)[:size]
    encoded: list[str] = []
    real = type(tiny.tokenizer).encode

    def encode(self: Any, text: str, *rest: Any) -> list[int]:
        encoded.append(text)
        return real(self, text, *rest)

    monkeypatch.setattr(type(tiny.tokenizer), "encode", encode)
    found = complete(tiny, "x\n", gw.Choice([text]), max_tokens=2 * MOST_ENCODED)  # more than the text can need
    assert found.text == text
    assert any(text in one for one in encoded) == (size <= MOST_ENCODED)


def test_a_text_beyond_the_budget_is_not_encoded(tiny: gw.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "ab" * MOST_ENCODED
    longest: list[int] = []
    real = type(tiny.tokenizer).encode

    def encode(self: Any, text: str, *rest: Any) -> list[int]:
        longest.append(len(text))
        return real(self, text, *rest)

    monkeypatch.setattr(type(tiny.tokenizer), "encode", encode)
    assert text.startswith(complete(tiny, "x\n", gw.Choice([text]), max_tokens=5, allow_truncation=True).text)
    assert max(longest) < 100
