"""The bounds of memory in `make hostile` detect one small object that is kept for each constraint."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import pytest

from tests.campaigns.hostile_checks import memory
from tests.campaigns.hostile_checks.memory import Allocated, judged


@pytest.mark.parametrize(
    ("bytes_each", "blocks_each", "good"), [(0, 0, True), (32, 0, False), (0, 1, False), (8, 0.05, True)]
)
def test_growth_is_measured_per_constraint(bytes_each: float, blocks_each: float, good: bool) -> None:
    after = [
        Allocated(10_000_000 + int(1000 * part * bytes_each), 200_000 + int(1000 * part * blocks_each))
        for part in range(5)
    ]
    after[0] = Allocated(1, 1)  # the first part is not compared
    assert judged([50 << 20] * 8, after, 1000)[0] is good


def test_resident_memory_is_bounded() -> None:
    same = [Allocated(1, 1)] * 5
    assert judged([50 << 20, (50 << 20) + memory.MOST_GROWTH], same, 1000)[0]
    assert not judged([50 << 20, (51 << 20) + memory.MOST_GROWTH], same, 1000)[0]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs mallinfo2 of glibc 2.33")
def test_a_kept_object_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[object] = []

    def use(number: int, rng: random.Random, table: Any, row: Any) -> None:
        kept.append(object())

    monkeypatch.setattr(memory, "COUNT", 5_000)
    good, line = memory._check(use, 0)
    assert not good, line
    good, line = memory._check(lambda *_: None, 0)
    # Only the blocks are compared here: bytes are exact only with `memory.ENVIRONMENT`.
    assert float(line.split(" bytes and ")[1].split()[0]) < memory.MOST_BLOCKS, line
