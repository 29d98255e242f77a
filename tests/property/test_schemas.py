"""Schemas over small vocabularies: objects, arrays, recursion and scalars in every profile."""

from __future__ import annotations

import pytest

from .worlds import schemas_hold


def test_vocabularies_of_8_tokens() -> None:
    tally, refused = schemas_hold(range(260), levels=2, spelling=False, depth=6, nodes=30)
    assert refused < 40, f"{refused} refused; {tally}"
    assert tally.worlds > 205


def test_vocabularies_that_spell_everything() -> None:
    tally, refused = schemas_hold(range(10_000, 10_050), levels=2, spelling=True, depth=4, nodes=12, budgets=4)
    assert refused < 12, f"{refused} refused; {tally}"
    assert tally.worlds > 37


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_schemas(part: int) -> None:
    first = 100_000 + 4000 * part
    tally, refused = schemas_hold(range(first, first + 3000), levels=3, spelling=False, depth=8, nodes=50)
    print(tally, refused)
    assert refused < 600
    assert tally.worlds + refused > 2500
    seeds = range(first + 3000, first + 3400)
    tally, refused = schemas_hold(seeds, levels=2, spelling=True, depth=6, nodes=20, budgets=6)
    print(tally, refused)
    assert refused < 60
    assert tally.worlds + refused > 300
