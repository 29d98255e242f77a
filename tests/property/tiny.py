"""Enumeration of small schemas: objects and arrays up to three levels with few leaves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.oracle import regular

from . import schemas, vocabularies
from .checks import Tally
from .schemas import Case
from .worlds import schema_holds

Schema = dict[str, Any]

LEAVES: tuple[Schema, ...] = ({"const": 1}, {"enum": ["", "a", "ab"]}, {"type": ["null", "boolean"]})
LENGTHS = ((0, None), (0, 1), (1, 2), (2, 2))


def arrays(parts: list[Schema]) -> Iterator[Schema]:
    """Lists of a part, and pairs of a part and leaves."""
    for part in parts:
        for low, high in LENGTHS:
            bounds = {"minItems": low} | ({} if high is None else {"maxItems": high})
            yield {"type": "array", "items": part, **bounds}
        yield {"type": "array", "prefixItems": [part], "items": LEAVES[0], "maxItems": 2}
        yield {"type": "array", "prefixItems": [LEAVES[1], part], "items": False, "minItems": 1}


def objects(parts: list[Schema]) -> Iterator[Schema]:
    """One key or two (one the beginning of the other), needed or not, and keys of any name."""
    for part in parts:
        for required in ([], ["a"]):
            for more in (False, LEAVES[0]):
                yield {"type": "object", "properties": {"a": part}, "required": required, "additionalProperties": more}
        for required in ([], ["a"], ["ab"], ["a", "ab"]):
            yield {
                "type": "object",
                "properties": {"ab": LEAVES[1], "a": part},
                "required": required,
                "additionalProperties": False,
            }
        yield {"type": "object", "additionalProperties": part}


def choices(parts: list[Schema]) -> Iterator[Schema]:
    """A part or something else."""
    for part in parts:
        yield {"anyOf": [part, LEAVES[2]]}
        yield {"anyOf": [{"type": "array", "items": LEAVES[0], "maxItems": 1}, part]}


def every() -> Iterator[Schema]:
    """Yields all schemas, small ones first."""
    levels: list[list[Schema]] = [list(LEAVES)]
    for _ in range(3):
        below = levels[-1]
        levels.append([*arrays(below), *objects(below), *choices(below)])
    for level in levels:
        yield from level


def hold(numbers: range, profile: int, tally: Tally) -> int:
    """Walk the worlds of the schemas with these numbers in a profile; how many were refused."""
    refused, chosen = 0, set(numbers)
    for number, schema in enumerate(every()):
        if number not in chosen:
            continue
        rng, case = random.Random(number), Case(schema)
        texts = [schemas.spelled(schemas.value(rng, case, schema)).encode() for _ in range(6)]
        tokens = vocabularies.cut(rng, texts, 7)
        refused += not schema_holds(case, tokens, profile, rng, tally, depth=5, nodes=14)
        if tally.worlds % 16 == 0:
            regular.forget()
    return refused


COUNT = sum(1 for _ in every())
