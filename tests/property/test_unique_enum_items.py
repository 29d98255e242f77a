"""Unique items from a finite set: every legal prefix can be completed to an instance."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import guideway as gw
from tests.helpers.byte_tokens import legal

TOKENS = [*(bytes([byte]) for byte in range(256)), b'{"', b'":', b"],[", b"},{", b'"a":', b"1,", b"</s>"]
LIKELY = [
    token for token, text in enumerate(TOKENS[:-1]) if text.decode("latin-1") in '{}[]":,-.0123ab' or len(text) > 1
]


def value(rng: random.Random, depth: int) -> Any:
    """A small one, with numbers inside boxes."""
    kind = rng.randrange(6 if depth else 3)
    if kind < 3:
        return rng.choice([0, 1, 2, 12, 1.5, -1, "a", "b", "", True, None])
    if kind < 5:
        return {key: value(rng, depth - 1) for key in rng.sample("abc", rng.randrange(3))}
    return [value(rng, depth - 1) for _ in range(rng.randrange(3))]


@pytest.mark.parametrize("profile", ["exact", "generation"])
@pytest.mark.parametrize("seed", range(40))
def test_no_text_is_a_dead_end(profile: Any, seed: int) -> None:
    rng = random.Random(seed)
    values = {json.dumps(one, sort_keys=True): one for one in (value(rng, 3) for _ in range(rng.randrange(1, 7)))}
    schema: dict[str, Any] = {"type": "array", "uniqueItems": True, "items": {"enum": list(values.values())}}
    if rng.random() < 0.4:
        schema["minItems"] = rng.randrange(len(values))
    vocabulary = gw.Vocabulary(TOKENS, eos_ids=[len(TOKENS) - 1])  # a new one: what others found out would help
    start = gw.compile(gw.JsonSchema(schema, profile=profile), vocabulary, cache=False).matcher()
    row = np.zeros((len(TOKENS) + 31) // 32, np.uint32)
    for _ in range(4):
        matcher, text = start.fork(), b""
        for step in range(200):
            matcher.fill_mask(row)
            tokens = [token for token in legal(row) if token < len(TOKENS) - 1]
            if not tokens:
                break
            if step >= 40:  # the text is long: use the shortest completion
                matcher.fill_mask_within(row, matcher.min_tokens_to_complete())
                tokens = legal(row)
                if tokens == [len(TOKENS) - 1]:
                    break
            token = rng.choice([token for token in tokens if token in LIKELY] or tokens)
            matcher.advance(token)
            text += TOKENS[token]
        assert matcher.is_accepting, text
        made = json.loads(text)
        assert Draft202012Validator(schema).is_valid(made), text
