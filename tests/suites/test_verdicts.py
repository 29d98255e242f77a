"""The whole official suite, and a sample of real-world schemas (all: `make verdicts`): no wrong verdict."""

from __future__ import annotations

import pytest

from .keyword_table import PAGE, judged, page
from .verdicts import SUITE, WILD, judge_wild

needs_suite = pytest.mark.skipif(not SUITE.exists(), reason=f"the official suite is not at {SUITE.name}")
needs_wild = pytest.mark.skipif(not WILD.exists(), reason=f"there is no {WILD.name}")


@needs_suite
def test_the_official_suite() -> None:
    tallies, formats = judged()
    for tally in tallies:
        assert tally.wrong == []
        assert tally.right > 2000
        assert len(tally.refused) <= 0.02 * tally.groups
    for tally in formats:
        assert tally.wrong == []
        assert len(tally.omitted) <= 0.05 * tally.right
        assert not tally.refused
    assert PAGE.read_text("utf-8") == page(tallies, formats), "make keywords writes it anew"


@needs_wild
def test_schemas_from_the_wild() -> None:
    tally = judge_wild(every=30)
    assert tally.wrong == []
    assert tally.right > 150
