"""Random schemas within budgets from the fewest tokens up: a part of `make budgets`."""

from __future__ import annotations

from .budgets import check, models
from .walks import Tally


def test_every_output_fits_its_schema_and_its_budget() -> None:
    tally, both = Tally(), models()
    for seed in (1301, *range(500_000, 500_060)):  # in 1301 an item must differ from others, and so becomes longer
        check(both, seed, tally)
    assert not tally.faults
    assert tally.counts["outputs"] > 150
    assert min(tally.counts["refused budgets"], tally.counts["at the fewest"]) > 20
