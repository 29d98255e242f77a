"""A sum accepts the tokens that one of its operands accepts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import guideway as gw
from guideway import Regex
from guideway.constraints.base import Constraint

DIGITS = ["".join(some).encode() for n in (2, 3) for some in itertools.product("0123456789", repeat=n)]
LETTERS = [b"f" + bytes([letter]) for letter in b"abcdefghijklmnop"]
TOKENS = [
    *(bytes([n]) for n in range(256)),
    b"</s>",
    *DIGITS,
    *(b"x" + text for text in DIGITS[:380]),
    *LETTERS,
    b"foo",
]
EOS = 256


@pytest.fixture(scope="module")
def vocabulary() -> gw.Vocabulary:
    return gw.Vocabulary(TOKENS, eos_ids=[EOS])


def wrong(matcher: gw.Matcher) -> list[bytes]:
    """Returns the tokens for which the mask and `advance` disagree."""
    row = np.zeros((len(TOKENS) + 31) // 32, np.uint32)
    matcher.fill_mask(row)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(TOKENS)]
    found = []
    for token_id, legal in enumerate(bits):
        trial = matcher.fork()
        try:
            trial.advance(token_id)
            taken = True
        except gw.errors.RejectedTokenError:
            taken = False
        if taken != bool(legal):
            found.append(TOKENS[token_id])
    return found


def dead() -> Constraint[str]:
    """After "x" the intersection accepts no text, and digits lead back to the same state."""
    return (Regex("x[0-9]*a|yk") & Regex("x[0-9]*b|yk")) | Regex("x[0-9]c")


NEVER = {"type": "string", "pattern": "^[a-z]*$", "not": {"pattern": "^[a-z ]*$"}}


@pytest.mark.parametrize(
    ("source", "begun"),
    [
        (dead(), b"x"),
        (dead() + Regex("e"), b"x"),
        ((Regex(".*a") & Regex(".*b")) | Regex("[a-z]{2,5}"), b"f"),
        (gw.JsonSchema({"anyOf": [NEVER, {"enum": ["foo", "bar"]}]}, profile="exact"), b'"'),
        (Regex("([0-9]|1-[1-9])*(-?)ab"), b"1"),  # a product that begins with a sum, one part of which takes most
        (Regex("([0-9]|1-[1-9]|2-[2-9])*c|[0-9]{3}d"), b"12"),
    ],
)
def test_bits_are_what_advance_says(vocabulary: gw.Vocabulary, source: Constraint[str], begun: bytes) -> None:
    matcher = gw.compile(source, vocabulary).matcher()
    assert not wrong(matcher)
    for byte in begun:
        matcher.advance(byte)
        assert not wrong(matcher)
