"""Which rows run together with padding."""

from __future__ import annotations

import itertools
import random

from guideway.engines.batching import CallCounts, by_padding


def _cost(groups: list[list[int]], counts: list[int], call_tokens: int) -> int:
    return sum(call_tokens + len(group) * max(counts[i] for i in group) for group in groups)


def test_equal_rows_are_one_group() -> None:
    assert by_padding([1] * 16) == [list(range(16))]
    assert by_padding([300] * 4) == [[0, 1, 2, 3]]


def test_a_prompt_runs_apart_from_rows_with_one_token() -> None:
    assert by_padding([1, 400, 1, 1, 398]) == [[0, 2, 3], [1, 4]]
    assert by_padding([1, 2, 1, 3]) == [[0, 1, 2, 3]]
    assert by_padding([1, 400, 1, 2], 10_000) == [[0, 1, 2, 3]]


def test_the_groups_cost_least() -> None:
    """Compared with every division of the sorted rows into groups."""
    rng = random.Random(3)
    for _ in range(200):
        counts = [rng.choice([1, 1, 2, 3, 8, 12, 40, 90]) for _ in range(rng.randint(1, 8))]
        call_tokens = rng.choice([1, 8, 60])
        order = sorted(range(len(counts)), key=lambda index: counts[index])
        least = min(
            _cost([order[a:b] for a, b in itertools.pairwise([0, *cuts, len(order)])], counts, call_tokens)
            for size in range(len(order))
            for cuts in itertools.combinations(range(1, len(order)), size)
        )
        groups = by_padding(counts, call_tokens)
        assert sorted(index for group in groups for index in group) == list(range(len(counts)))
        assert _cost(groups, counts, call_tokens) == least


def test_calls_for_prompts_are_counted_apart() -> None:
    counts = CallCounts()
    assert counts.filled == 1.0
    counts.add(1, 16, 200)  # a prompt, while 15 other rows have one token
    counts.add(15, 16, 15)
    counts.add(5, 5, 5)
    assert (counts.calls, counts.prompt_calls, counts.tokens) == (3, 1, 220)
    assert counts.filled == 20 / 21
