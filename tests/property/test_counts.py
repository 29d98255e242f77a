"""Counted bounds over a real vocabulary: masks by widened expressions equal plain walks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import guideway as gw

from . import wide
from .vocabularies import PLAIN, limited

ITEM = {"properties": {"name": {"type": "string"}, "more": {}}, "additionalProperties": False}
HEX = "0123456789abcdef" * 4
CASES: dict[str, tuple[Any, str]] = {
    "from one": (gw.Regex("[a-z]{1,40}"), "internationalizationandthensomemorelette"),
    "all of them": (gw.JsonSchema({"pattern": "^[0-9a-f]{64}$"}, profile="exact"), f'"{HEX}"'),
    "somewhere": (gw.JsonSchema({"pattern": "[0-9a-f]{24}"}, profile="exact"), f'"see the {HEX[:27]} there"'),
    "at least": (
        gw.Regex("[a-z]{18,}-[0-9]{17,20}(, [A-Za-z]{2,30})+"),
        "abcdefghijklmnopqrstuvw-12345678901234567, Ada",
    ),
    "one of two words": (gw.JsonSchema({"pattern": "normal|italic"}, profile="exact"), '"it is not normal or"'),
    "beside a length": (
        gw.JsonSchema({"maxLength": 30, "pattern": r"^([\w/-]|[\w-][\w/-]*[\w-])$"}, profile="exact"),
        '"us-east-1/zones/of-the-region-"',
    ),
    "two counts": (
        gw.JsonSchema(
            {"allOf": [{"pattern": "^([a-z]+ ){0,20}[a-z]+$"}, {"minLength": 40, "maxLength": 60}]}, profile="exact"
        ),
        '"the words of this text are more than forty letters"',
    ),
    "words, to the last that may come": (gw.Regex(r"(?:\S+\s+){0,44}\S+"), "a b " * 10 + "ab \n é " * 8 + "a b" * 8),
    "all but": (
        gw.JsonSchema({"pattern": "^(?!.*[a-z]{17}).*$"}, profile="exact"),
        '"words that are shortandthenlong but never too long"',
    ),
    "email": (gw.JsonSchema({"format": "email"}, profile="exact"), '"some.one.with.a.long.name+tag@mail.example.com"'),
    "keys": (
        gw.JsonSchema(
            {
                "patternProperties": {"^[a-z]{1,20}$": {"type": "integer"}},
                "properties": {"X": {"type": "null"}},
                "additionalProperties": False,
            },
            profile="exact",
        ),
        '{"X": null, "abcdefghijklmnopqrst": 1, "ab": 2}',
    ),
    "in few characters": (
        gw.JsonSchema({"pattern": "^[0-9a-f]{8}-[0-9a-f]{4}(-[0-9a-f]{4}){3}$"}, profile="exact"),
        '"550e8400-e29b-41d4-a716-4466"',
    ),
    "in few characters, a quote among them": (
        gw.JsonSchema({"pattern": '^[a-c"]{1,9}$'}, profile="exact"),
        r'"a\"b\u0022cab"',
    ),
    "quoted, and quoted again": (gw.Regex('("[0-9]{0,9}",)*"[0-9a-f]"'), '"12","","123456789","f"'),
    "a date, and a pattern": (
        gw.JsonSchema({"format": "date-time", "pattern": r"\d\d-\d\dT\d\d:\d\d:\d\dZ"}, profile="exact"),
        '"2016-01-05T16:51:00Z"',
    ),
    "other names": (
        gw.JsonSchema(
            {
                "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "no": {}},
                "additionalProperties": {"type": "string"},
            },
            profile="exact",
        ),
        '{"id": 1, "names": "n", "name":"a", "nam" : "b"}',
    ),
    "different objects": (
        gw.JsonSchema({"items": ITEM, "uniqueItems": True, "type": "array"}, profile="exact"),
        '[{"name": "a"}, {"name":"a" , "more": {"b": 1}}]',
    ),
}


@cache
def vocabularies() -> tuple[gw.Tokenizer, gw.Vocabulary, gw.Vocabulary]:
    """A tokenizer, and its vocabulary with shortcuts and without."""
    tokenizer = wide.tokenizer("tekken")
    table = tokenizer.vocabulary
    fresh, plain = (gw.Vocabulary(table.token_bytes, table.eos_ids, table.special_ids) for _ in range(2))
    return tokenizer, fresh, limited(plain, tuning=PLAIN)


@pytest.mark.parametrize("name", CASES)
def test_masks_by_wider_expressions(name: str) -> None:
    """Shortcuts open and closed, over the same text in the tokenizer's own tokens and in short ones."""
    source, text = CASES[name]
    tokenizer, fresh, plain = vocabularies()
    table = tokenizer.vocabulary
    ours, theirs = gw.compile(source, fresh, cache=False).matcher(), gw.compile(source, plain, cache=False).matcher()
    rows = np.zeros((2, (len(table.token_bytes) + 31) // 32), np.uint32)
    single = {text: token for token, text in enumerate(table.token_bytes) if len(text) == 1}
    data = text.encode()
    half = len(text) // 2
    tokens = [
        *tokenizer.encode(text[:half]),
        *(single[data[i : i + 1]] for i in range(len(text[:half].encode()), len(data))),
    ]
    for token in tokens:
        for matcher, row in zip((ours, theirs), rows, strict=True):
            matcher.fill_mask(row)
        assert (rows[0] == rows[1]).all()
        ours.advance(token)
        theirs.advance(token)
    assert ours.is_accepting
    assert theirs.is_accepting
