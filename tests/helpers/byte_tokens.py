"""A vocabulary of single bytes, and what a test reads from masks and automata over it."""

from __future__ import annotations

from typing import Any

import numpy as np

import guideway as gw

END = 256  # the end token of `BYTES`
BYTES = gw.Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], eos_ids=[END])


def legal(row: np.ndarray) -> list[int]:
    """The tokens of one mask, ascending."""
    return [int(token) for token in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))]


def is_legal(row: np.ndarray, token: int) -> bool:
    return bool(row[token >> 5] >> (token & 31) & 1)


def accepts(automaton: gw.Automaton, text: str, end: int = END) -> bool:
    """Whether an automaton over a vocabulary that begins with `BYTES` takes the bytes of a text and then `end`."""
    tokens = [*text.encode(), end]
    return automaton.matcher().validate(tokens) == len(tokens)


def parses(constraint: Any, text: str) -> bool:
    """Whether `constraint.parse` takes the text."""
    try:
        constraint.parse(text)
    except gw.errors.InvalidTextError:
        return False
    return True


def filled(matcher: Any) -> np.ndarray:
    """The mask of a matcher, as one row of words."""
    row = np.zeros(matcher.words, np.uint32)
    matcher.fill_mask(row)
    return row
