"""Masked samples of a constraint over the bundled vocabulary, for tests that parse them."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np

import guideway as gw
from tests.helpers.byte_tokens import legal

MOST = 60  # tokens of a sample, unless the shortest has more


@cache
def vocabulary() -> gw.Vocabulary:
    """The bundled tokenizer's."""
    return gw.load("tiny").tokenizer.vocabulary


def samples(source: Any, count: int, seed: int) -> list[str]:
    """Texts from uniform samples of legal tokens; a budget makes them short."""
    rng, table = random.Random(seed), vocabulary()
    automaton = gw.compile(source, table)
    row = np.zeros((len(table) + 31) // 32, dtype=np.uint32)
    found = []
    for _ in range(count):
        matcher, text = automaton.matcher(), b""
        left = max(rng.randrange(20, MOST), matcher.min_tokens_to_complete())
        while not matcher.is_finished:
            assert matcher.fill_mask_within(row, left), f"a dead end after {text!r}"
            tokens = legal(row)
            token = int(rng.choice(tokens))
            matcher.advance(token)
            text += table.token_bytes[token] if not matcher.is_finished else b""
            left -= 1
        found.append(text.decode())
    return found
