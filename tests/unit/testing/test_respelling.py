"""`respelled`: the spelling of a JSON value that a constraint allows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from guideway.testing.respelling import respelled


def spelled(value: Any, *allowed: str) -> str:
    return respelled(value, lambda start: any(one.startswith(start) for one in allowed), allowed.__contains__)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1, "b": {"c": [], "d": {}}}, '{"b": {"d": {}, "c": []}, "a": 1}'),
        ([1, [2, "x"], None, True], '[1,[2,"x"],null,true]'),
        (["é", "\n"], '["\\u00e9", "\\n"]'),
        (Decimal("1E+2"), "100"),
        (Decimal("0.50"), "0.5"),
        (Decimal("3"), "3.0"),
        (7, "7.0"),
    ],
)
def test_spellings(value: Any, text: str) -> None:
    assert spelled(value, text) == text


def test_no_spelling() -> None:
    assert spelled({"a": 1}, '{"a": 2}') == ""
    assert spelled({"a": 1}, '{"a": 1', '{"a": 1, ') == ""


def test_the_search_is_bounded() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert respelled(deep, lambda start: True, lambda text: False) == ""
    wide = {str(number): number for number in range(12)}  # more orders than tries
    assert respelled(wide, lambda start: True, lambda text: False) == ""
