"""A sample of the collections (all of them: `make verdicts`): no verdict may be wrong, few schemas refused."""

from __future__ import annotations

import pytest

from .verdicts import SUITE, WILD, judge_suite, judge_wild

DRAFTS = ["draft2020-12", "draft2019-09", "draft7", "draft6", "draft4"]
needs_suite = pytest.mark.skipif(not SUITE.exists(), reason=f"the official suite is not at {SUITE.name}")
needs_wild = pytest.mark.skipif(not WILD.exists(), reason=f"there is no {WILD.name}")


@needs_suite
@pytest.mark.parametrize("draft", DRAFTS)
def test_the_official_suite(draft: str) -> None:
    tally = judge_suite(draft, every=8, start=DRAFTS.index(draft))
    assert tally.wrong == []
    assert tally.right > 150


@needs_wild
def test_schemas_from_the_wild() -> None:
    tally = judge_wild(every=30)
    assert tally.wrong == []
    assert tally.right > 150
