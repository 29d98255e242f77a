"""Texts drawn for random Python types are accepted by Pydantic; other types are refused with the library's errors."""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest
from pydantic import ValidationError

from guideway import masks
from guideway.constraints import PythonType
from guideway.errors import ConstraintError
from guideway.frontends.json_schema.report import draw_examples
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import byte_automaton

from .python_type_maker import made

TEXTS = 6
END = 256
"""The end token of automata over bytes."""


@dataclass
class Count:
    """What became of the types of a run."""

    refused_by_pydantic: int = 0
    refused: int = 0
    types: int = 0
    texts: int = 0
    wrong: list[str] = field(default_factory=list)


def walked(grammar: Grammar, rng: random.Random) -> str:
    """Draw a text whose bytes are all equally probable, so that characters other than ASCII are frequent."""
    matcher, text = byte_automaton(grammar).matcher(), bytearray()
    row = np.zeros(matcher.words, np.uint32)
    most = max(40, matcher.min_tokens_to_complete() + 20)
    while matcher.fill_mask_within(row, most - len(text)):
        byte = rng.choice(masks.ids(row, END + 1).tolist())
        if byte == END:
            break
        matcher.advance(byte)
        text.append(byte)
    return bytes(text + matcher.completion()).decode()


def tried(seed: int, count: Count) -> None:
    """Draw one type, and validate texts of it."""
    annotation, adapter = made(seed)
    if adapter is None:
        count.refused_by_pydantic += 1
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            grammar = PythonType(annotation).grammar()
            texts = [
                *draw_examples(grammar, TEXTS, seed),
                *(walked(grammar, random.Random(seed + n)) for n in range(2)),
            ]
        except ConstraintError:
            count.refused += 1
            return
    count.types += 1
    for text in texts:
        count.texts += 1
        try:
            adapter.validate_json(text)
        except ValidationError as error:
            count.wrong.append(f"seed {seed}: {annotation!r}: {text[:300]}: {str(error)[:400]}")


@pytest.mark.parametrize("start", [0, 100])
def test_texts_of_random_types_are_accepted(start: int) -> None:
    count = Count()
    for seed in range(start, start + 100):
        tried(seed, count)
    assert count.wrong == []
    assert count.types > 40
