"""A mask depends on nothing that was compiled before: constraints through one store, compared with fresh stores."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import guideway as gw
from tests.campaigns import one_store
from tests.campaigns.one_store import CLASSES, Drawn, Stores
from tests.helpers.counts import counts

from .crowd import Crowd

VOCABULARIES = ("tekken", "llama3")


def neighbours(rng: random.Random, written: str, some: str) -> Iterator[Drawn]:
    """Strings of one class, with and without bounds: a bounded state is computed from an unbounded one."""
    shapes: list[dict[str, Any]] = [
        {"pattern": f"^{written}+$"},
        {"pattern": f"^{written}*$"},
        {"pattern": f"^{some[0]}{written}+$"},
        {"pattern": f"^{written}*$", "minLength": 4, "maxLength": 63},
        {"pattern": f"^{written}{{2,40}}$"},
        {"pattern": f"^{written}+$", "maxLength": 20},
    ]
    rng.shuffle(shapes)
    for shape in shapes:
        name = rng.choice(one_store.NAMES)
        string = {"type": "string", **shape}
        schema = {"type": "object", "properties": {name: string}, "required": [name]}
        texts = [f'{{"{name}": "{"".join(rng.choices(some, k=count))}"}}' for count in (3, 11, 70)]
        yield Drawn(f"JsonSchema({schema})", gw.JsonSchema(schema, profile="exact"), tuple(texts))
        items = {"type": "array", "items": string, "uniqueItems": True}
        yield Drawn(
            f"JsonSchema({items})", gw.JsonSchema(items, profile="exact"), (f'["{some * 2}", "{some * 2}", "{some}"]',)
        )


@counts(3, 8)
def test_bounds_after_no_bounds(count: int) -> None:
    rng = random.Random(1)
    stores = Stores("llama3", rng)
    for written in rng.sample([one for one in CLASSES if '"' not in CLASSES[one]], count):
        for one in neighbours(rng, written, CLASSES[written]):
            stores.check(one, rng.choice((0, 4)))
    assert stores.counts["constraints"] == 12 * count
    assert stores.counts["masks"] > 250 * count


@pytest.mark.parametrize("count", [9, 12])
def test_exits_after_more_characters_than_a_closure_promises(count: int) -> None:
    """A token may leave the first terminal after states that no known closure contains."""
    rng = random.Random(count)
    stores = Stores("llama3", rng)
    made = gw.Gbnf(
        f'root ::= leaf tail\nleaf ::= [ -~]{{{count}}} [a-z] ([0-9] [0-9] "!")*\ntail ::= [a-z] tail "." | "."\n'
    )
    quick, slow = (gw.Vocabulary(stores.tokens, stores.eos) for _ in range(2))
    object.__setattr__(slow, "_kernel", stores.plain)
    crowd = Crowd.compiled(made, [quick, slow])
    row = np.zeros((stores.size + 31) // 32, np.uint32)
    for token in stores.cut(b"abA"):
        crowd.fill_mask(row)  # raises `Mismatch`
        crowd.advance(token)
    assert np.unpackbits(row.view(np.uint8)).sum() > 1000


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_sample(name: str) -> None:
    found = one_store.hold(name, 20, 1)
    assert found["masks"] > 500
    assert found["tokens tried"] > 500


@pytest.mark.slow
@pytest.mark.parametrize("name", VOCABULARIES)
def test_ten_thousand_constraints(name: str) -> None:
    """Some 10 minutes of CPU time each."""
    found = one_store.hold(name, 10_000, 2, faults=10)
    print(name, dict(found))
    assert found["constraints"] == 10_000
    assert found["masks"] > 300_000
