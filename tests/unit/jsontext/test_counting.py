"""The number of values with shared parts counted at each of their places."""

from __future__ import annotations

import random
from typing import Any

from guideway._kernel import count_values


def counted(value: Any) -> int:
    """The slow definition."""
    if isinstance(value, dict):
        return 1 + sum(map(counted, value.values()))
    return 1 + sum(map(counted, value)) if isinstance(value, (list, tuple)) else 1


def test_random_values_with_shared_parts() -> None:
    rng = random.Random(1)
    for _ in range(300):
        known: list[Any] = [1, "a", None, [], {}, ()]
        for number in range(12):
            parts = rng.choices(known, k=rng.randrange(4))
            made = rng.choice((list, tuple, lambda few: {f"k{n}": one for n, one in enumerate(few)}))(parts)
            known.append(made)
            expected = counted(made)
            assert count_values(made, 10**9) == expected
            assert count_values(made, expected) == expected
            assert count_values(made, expected - 1) == expected, number


def test_values_that_contain_themselves_and_values_that_double() -> None:
    cyclic: list[Any] = [1]
    cyclic.append({"a": cyclic})
    assert count_values(cyclic, 1000) == 1001
    doubled: Any = [1]
    for _ in range(5_000):
        doubled = [doubled, doubled]
    assert count_values(doubled, 1 << 60) == (1 << 60) + 1
