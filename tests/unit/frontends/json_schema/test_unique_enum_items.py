"""Unique items from a finite set of values: after all values are used, no item may begin."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import guideway as gw

TOKENS = [bytes([b]) for b in range(256)] + [b"</s>"]


@pytest.mark.parametrize("profile", ["exact", "generation"])
@pytest.mark.parametrize(
    "values",
    [
        [1, {"a": 0}],
        [{"a": 0}],
        [{"a": 0}, {"b": 0}],
        ["b", [1]],
        [[1.5], [[2]], {}],
        [{"a": {"b": [1, "x"]}}, True, None],
    ],
    ids=repr,
)
def test_no_item_begins_after_all_values_are_used(profile: Any, values: list[Any]) -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"enum": values}}
    vocabulary = gw.Vocabulary(TOKENS, eos_ids=[256])  # a new one: what others found out would help
    matcher = gw.compile(gw.JsonSchema(schema, profile=profile), vocabulary, cache=False).matcher()
    row = np.zeros((257 + 31) // 32, np.uint32)
    for count, byte in enumerate(json.dumps(values)[:-1].encode()):
        matcher.fill_mask(row)
        assert row[byte >> 5] >> (byte & 31) & 1, count
        assert matcher.min_tokens_to_complete() < 1000
        matcher.advance(byte)
    matcher.fill_mask(row)
    assert row[ord("]") >> 5] >> (ord("]") & 31) & 1
    assert not row[ord(",") >> 5] >> (ord(",") & 31) & 1
    assert matcher.min_tokens_to_complete() == 2
