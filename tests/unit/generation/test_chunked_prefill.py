"""A long prompt that joins running rows is computed in parts, and the running rows continue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import guideway as gw
from guideway.engines.base import Cache
from guideway.generation import Model, complete
from guideway.generation.async_loop import Call, Loop
from guideway.generation.plan import Job, Plan
from guideway.generation.scheduler import PREFILL_TOKENS, Row, step
from guideway.testing import ToyEngine
from guideway.tokenizers import Tokenizer, Vocabulary

TOKENS = Vocabulary([*(bytes([n]) for n in range(97, 123)), b""], eos_ids=[26], special_ids=[26])
LONG = [n % 25 for n in range(3 * PREFILL_TOKENS + 40)]


class _Recording(ToyEngine):
    """Records the number of new tokens of each row of each call."""

    def __init__(self) -> None:
        super().__init__(27, seed=3, context_size=4096)
        self.calls: list[list[int]] = []

    def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> Any:
        self.calls.append([len(row) for row in rows])
        return super().forward(rows, caches)


def _row(model: Model, prompt: list[int], count: int) -> Row:
    plan = Plan(model, None, {"max_tokens": count, "min_tokens": count})
    return plan.row(plan.prompted(prompt), 0)


def test_running_rows_draw_in_every_round() -> None:
    engine = _Recording()
    model = Model(engine, Tokenizer.of(TOKENS))
    running = _row(model, [1, 2, 3], 12)
    step([running])
    joined, other = _row(model, LONG, 8), _row(model, LONG[5:], 8)
    engine.calls.clear()
    rounds = 0
    while not all(row.is_over for row in (running, joined, other)):
        drawn = len(running.tokens)
        step([row for row in (running, joined, other) if not row.is_over])
        rounds += 1
        assert running.is_over or len(running.tokens) == drawn + 1
        assert rounds < 60
    assert max(sum(n for n in counts if n > 1) for counts in engine.calls) <= PREFILL_TOKENS
    assert sum(map(sum, engine.calls[:7])) > len(LONG)  # the prompts advance in every round
    for row, prompt, count in ((running, [1, 2, 3], 12), (joined, LONG, 8), (other, LONG[5:], 8)):
        alone = complete(
            Model(ToyEngine(27, seed=3, context_size=4096), model.tokenizer), prompt, max_tokens=count, min_tokens=count
        )
        assert tuple(row.tokens) == alone.tokens


def test_a_single_prompt_is_not_split() -> None:
    engine = _Recording()
    model = Model(engine, Tokenizer.of(TOKENS))
    gw.generate(model, LONG, max_tokens=2)
    assert engine.calls[0] == [len(LONG)]


@pytest.mark.parametrize("separately", [True, False])
def test_the_first_token_of_a_new_row_does_not_wait_for_a_separate_pass_of_the_others(separately: bool) -> None:
    events: list[tuple[str, object]] = []

    class Engine(ToyEngine):
        runs_prompts_separately = separately

        def forward(self, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> Any:
            events.append(("run", [len(row) for row in rows]))
            return super().forward(rows, caches)

    model = Model(Engine(27, seed=3, context_size=4096), Tokenizer.of(TOKENS))
    loop = Loop()

    def call(name: str, prompt: list[int]) -> Call:
        options: Any = {"max_tokens": 8, "min_tokens": 8, "batch_size": 4}
        job = Job(model, [gw.GenerationRequest(prompt, None)], None, None, options)
        return Call(job, lambda rows: events.append((name, [len(row.tokens) for row in rows])), lambda _: None)

    first, second = call("first", [1, 2, 3]), call("second", LONG[:20])
    loop._round([first])
    assert events == [("run", [3]), ("first", [1])]
    events.clear()
    loop._round([first, second])
    if separately:
        assert events == [("run", [20]), ("second", [1]), ("run", [1]), ("first", [2])]
    else:
        assert events == [("run", [1, 20]), ("first", [2]), ("second", [1])]
    events.clear()
    loop._round([first, second])
    assert events == [("run", [1, 1]), ("first", [3]), ("second", [2])]
