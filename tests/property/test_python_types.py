"""Texts drawn for random Python types are accepted by Pydantic; other types are refused with the library's errors."""

from __future__ import annotations

import dataclasses
import random
import warnings
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from pydantic import Base64Str, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from typing_extensions import TypeAliasType, TypedDict

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
    checked(annotation, adapter, seed, count)


def checked(annotation: Any, adapter: TypeAdapter[Any], seed: int, count: Count) -> None:
    """Validate texts of a type."""
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


OPTIONS: list[dict[str, Any]] = [
    *({"str_max_length": 2}, {"str_min_length": 3}, {"str_strip_whitespace": True}, {"str_to_lower": True}),
    *({"str_to_upper": True}, {"val_json_bytes": "base64"}, {"val_json_bytes": "hex"}, {"regex_engine": "python-re"}),
    *(
        {"extra": "forbid"},
        {"extra": "allow"},
        {"alias_generator": str.upper},
        {"str_strip_whitespace": True, "str_min_length": 1},
    ),
]
INNER: list[Any] = [
    *(str, str, int, bytes, Base64Str, list[str], Annotated[str, Field(min_length=2)]),
    *(Annotated[str, Field(pattern="^ ?[a-z]+$")], Annotated[set[str], Field(min_length=2)]),
]


def shared_types(rng: random.Random) -> list[Any]:
    """Types that have no configuration; the later ones can contain the earlier ones."""
    found: list[Any] = []
    for number in range(3):
        annotation, name = rng.choice([*INNER, *found, *(list[one] for one in found)]), f"Shared{number}"
        fields = [("s", annotation)]
        found.append(
            rng.choice(
                [
                    lambda name=name, annotation=annotation: TypeAliasType(name, annotation),
                    lambda name=name, fields=fields: NamedTuple(name, fields),
                    lambda name=name, fields=fields: TypedDict(name, dict(fields)),
                    lambda name=name, fields=fields: dataclasses.make_dataclass(name, fields),
                ]
            )()
        )
    return found


def nested_models(rng: random.Random) -> Any:
    """A model that contains models with other configurations, all with the same shared types."""
    shared = shared_types(rng)
    models: list[Any] = []
    for number in range(rng.randint(2, 4)):
        fields: dict[str, Any] = {
            f"f{place}": (rng.choice([*shared, *models, *models]), ...) for place in range(rng.randint(1, 3))
        }
        config = rng.choice(OPTIONS) if rng.random() < 0.5 else {}
        models.append(create_model(f"Model{number}", __config__=ConfigDict(**config), **fields))
    return models[-1]


@pytest.mark.parametrize("start", [0, 300])
def test_texts_of_shared_types_in_models_are_accepted(start: int) -> None:
    count = Count()
    for seed in range(start, start + 300):
        annotation = nested_models(random.Random(seed))
        checked(annotation, TypeAdapter(annotation), seed, count)
    assert count.wrong == []
    assert count.types > 100
