"""Random patterns of strings in both engines of Pydantic: it accepts every text that the constraint allows."""

from __future__ import annotations

import json
import random
import re
import warnings
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import SchemaError

import guideway as gw
from guideway.constraints import PythonType
from guideway.grammar.recognizer import accepts, byte_automaton

ALPHABET = "aAbikKıİſ1٣²½é_- .<\n\r\t\x1c\x85\u2028\ufeff\u0301ʰǅ{,}"
ATOMS = [*"abik1é", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", ".", "^", "$", r"\A", r"\n", r"\.", "x{,2}"]
RUST = [
    r"\z",
    r"\p{L}",
    r"\P{Lu}",
    r"\pL",
    r"\x{61}",
    r"\<",
    r"\b{start}",
    "(?i:k)",
    "(?P<n>a)",
    "[[:alpha:]]",
    "[a--b]",
]
PYTHON = [r"\Z", r"\012", r"\a", "(?P<n>a)", "a{,1}", r"\u0061", "(?#c)", r"\'", "(?i:k)"]


def drawn(rng: random.Random, python: bool, depth: int = 2) -> str:
    """A pattern, which may be wrong."""
    parts = []
    for _ in range(rng.choice([1, 2, 2, 3])):
        kind = rng.randrange(10)
        if kind < 5 or depth == 0:
            part = rng.choice(ATOMS)
        elif kind == 5:
            part = rng.choice(PYTHON if python else RUST)
        elif kind < 8:
            members = rng.choices([*"abik1é_-", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", "a-c", r"\n"], k=2)
            part = "[" + rng.choice(["", "^"]) + "".join(members) + "]"
        else:
            opening = rng.choice(["(?:", "(", *(["(?!", "(?=", "(?<!", "(?<="] if python else [])])
            part = opening + drawn(rng, python, depth - 1) + rng.choice(["", "|a"]) + ")"
        parts.append(part + rng.choice(["", "", "", "?", "*", "+", "{2}"]))
    flags = rng.choice(["", "", "", "(?i)", "(?m)", "(?s)", "(?im)"]) if depth == 2 else ""
    return flags + "".join(parts)


def compare(seed: int, texts: int) -> int | None:
    """Returns the number of allowed texts; None if the pattern is refused. Raises if Pydantic rejects one of them."""
    rng = random.Random(seed)
    python = rng.random() < 0.6
    pattern = drawn(rng, python)
    engine = "python-re" if python else "rust-regex"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            field: Any = re.compile(pattern) if python and rng.random() < 0.2 else pattern
            kind = Annotated[str, Field(pattern=field)]
            model = create_model("M", __config__=ConfigDict(regex_engine=engine), a=(kind, ...))  # type: ignore[call-overload]  # str
            automaton = byte_automaton(PythonType(model).grammar())
    except (SchemaError, PydanticUserError, re.error, gw.errors.ConstraintError):
        return None
    adapter: TypeAdapter[BaseModel] = TypeAdapter(model)
    allowed = 0
    for _ in range(texts):
        value = "".join(rng.choices(ALPHABET, k=rng.randrange(5)))
        text = json.dumps({"a": value}, ensure_ascii=False)
        if accepts(automaton, text):
            allowed += 1
            try:
                adapter.validate_json(text)
            except ValidationError as error:
                raise AssertionError((seed, engine, pattern, value)) from error
    return allowed


def test_random_patterns() -> None:
    found = [count for seed in range(300) if (count := compare(seed, 25)) is not None]
    assert len(found) > 130
    assert sum(found) > 500


@pytest.mark.slow
def test_many_random_patterns() -> None:
    found = [count for seed in range(1_000, 9_000) if (count := compare(seed, 40)) is not None]
    assert sum(found) > 15_000
