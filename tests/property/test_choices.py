"""Nested choices over objects whose properties overlap, judged by the `jsonschema` package."""

from __future__ import annotations

import pytest

from tests.campaigns.choices import check
from tests.campaigns.walks import Tally


def agree(seeds: range, first: int | None, branches: int) -> Tally:
    tally = Tally()
    for seed in seeds:
        check(seed, tally, first, branches)
    assert not tally.faults, tally.faults[0]
    return tally


@pytest.mark.parametrize("first", [None, 1, 30])
def test_choices_by_search_and_by_cases(first: int | None) -> None:
    counts = agree(range(50), first, 3).counts
    assert counts["walks"] > 40
    assert min(counts["valid"], counts["invalid"]) > 120


def test_many_branches() -> None:
    assert agree(range(5000, 5025), None, 9).counts["walks"] > 12


@pytest.mark.slow
@pytest.mark.parametrize("first", [None, 1])
def test_many_more(first: int | None) -> None:
    counts = agree(range(1_000_000, 1_010_000), first, 5).counts
    print(dict(counts))
    assert counts["walks"] > 5_000


def test_a_branch_that_several_assertions_about_one_key_must_all_miss() -> None:
    agree(range(70377, 70378), 1, 6)
