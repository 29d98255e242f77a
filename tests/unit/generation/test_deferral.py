"""Rows whose constraint takes long do not delay the other rows of an asynchronous loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway._kernel import WorkDeferred, bound_work
from guideway.generation.async_loop import _SWITCH_INTERVAL, SWITCH_SECONDS, Loop, loop_of
from guideway.generation.deferral import _SLOW_TOKENS, ROW_WORK, Deferral, Preparation
from guideway.generation.model import Model
from guideway.generation.scheduler import Limits, Row
from guideway.testing import ConstantModel
from guideway.testing.constant import ConstantEngine
from guideway.tokenizers import Tokenizer

A = ord("a")


def byte_vocabulary() -> gw.Vocabulary:
    """A vocabulary with a new store: what another test has computed takes no work again."""
    return gw.Vocabulary([bytes([n]) for n in range(256)] + [b"</s>"], eos_ids=[256], special_ids=[])


BYTES = byte_vocabulary()
SLOW = {
    "look-aheads": gw.Regex("(?=.*a.{1000})(?=.*b.{1000}).*"),
    "many keys": gw.JsonSchema(
        {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(700)}, "minProperties": 350}
    ),
    "suffixes": gw.Regex("|".join(f"(a|b)*{one}(a|b){{300}}c" for one in "abcdefgh")),
}


@pytest.fixture(autouse=True)
def _unbounded() -> None:
    assert bound_work(None) is None


def test_a_bounded_call_changes_nothing_and_can_be_repeated() -> None:
    vocabulary = byte_vocabulary()

    def matcher() -> gw.Matcher:
        pattern = gw.Regex("(?:a{7}|a{11}b){1,300}(?:a{5}|a{13}c){1,300}b")
        return gw.compile(pattern, vocabulary, cache=False).matcher()

    bounded, free = matcher(), matcher()
    rows = np.zeros((2, 9), np.uint32)
    deferred = 0
    for token_id in b"a" * 60:
        bound_work(1)
        try:
            bounded.fill_mask_within(rows[0], 4_000)
            bounded.advance(token_id)
        except WorkDeferred:
            deferred += 1
            assert bounded.position == free.position
        bound_work(None)
        if bounded.position == free.position:
            bounded.fill_mask_within(rows[0], 4_000)
            bounded.advance(token_id)
        free.fill_mask_within(rows[1], 4_000)
        free.advance(token_id)
        assert (rows[0] == rows[1]).all()
    assert deferred


def test_the_bound_is_that_of_one_thread() -> None:
    assert bound_work(5) is None
    matcher = asyncio.run(_elsewhere())
    assert bound_work(None) == 5
    assert matcher.min_tokens_to_complete() == 2


async def _elsewhere() -> gw.Matcher:
    return (await asyncio.to_thread(gw.compile, gw.Regex("(a|b)*a(a|b){9}|c"), BYTES, cache=False)).matcher()


class _Session(list[int]):
    """A substitute for the session of a row: its tokens and its matcher."""

    def __init__(self) -> None:
        super().__init__()
        self.matcher = gw.compile(gw.Regex("a*"), BYTES).matcher()


def test_a_row_is_slow_while_it_is_parked_at_one_position_after_another() -> None:
    session = _Session()
    row: Any = type("Row", (), {})()
    row.session = row.running = session
    row.limits, row.has_drawn = SimpleNamespace(complete=False), True
    deferral = Deferral()

    def may_work_beyond_the_limit() -> bool:
        bound_work(0)
        deferral._helped = object()  # type: ignore[assignment]  # another slow row
        try:
            return deferral.allows(row) and bound_work(None) == ROW_WORK
        finally:
            bound_work(None)

    deferral.park(row)
    deferral.park(row)  # again at the same position
    assert not deferral.is_slow(row)
    assert may_work_beyond_the_limit()
    session += [A] * 3
    deferral.park(row)
    assert deferral.is_slow(row)
    assert not may_work_beyond_the_limit()
    session += [A] * _SLOW_TOKENS
    assert deferral.is_slow(row)
    session += [A]
    assert not deferral.is_slow(row)
    assert may_work_beyond_the_limit()
    deferral.park(row)
    assert deferral.is_slow(row)


def model() -> ConstantModel:
    return ConstantModel(BYTES)


def fresh_model() -> ConstantModel:
    """A model of another vocabulary, in which nothing is computed yet."""
    return ConstantModel(
        gw.Vocabulary([bytes([n]) for n in range(256)] + [b"</s>", b"!!"], eos_ids=[256], special_ids=[])
    )


ORDINARY = gw.Regex("[a-z]{40}[0-9]{20}")


async def ordinary(one: ConstantModel, seed: int) -> str:
    return await gw.agenerate(one, "x", ORDINARY, max_tokens=70, seed=seed, temperature=1.0)


@pytest.mark.parametrize("name", SLOW)
def test_ordinary_rows_finish_before_a_slow_one(name: str) -> None:
    async def alone() -> list[str]:
        one = model()
        return await asyncio.gather(*(ordinary(one, seed) for seed in range(2)))

    async def together() -> tuple[list[str], float]:
        one = model()
        slow = asyncio.ensure_future(gw.acomplete(one, "x", SLOW[name], max_tokens=3_000))
        await asyncio.sleep(0.01)
        start = time.perf_counter()
        texts = await asyncio.gather(*(ordinary(one, seed) for seed in range(2)))
        seconds = time.perf_counter() - start
        slow.cancel()
        return texts, seconds

    expected = asyncio.run(alone())
    texts, seconds = asyncio.run(together())
    assert texts == expected
    assert seconds < 10  # 0.1 s on an idle machine


def test_a_deferred_row_has_the_text_of_an_undeferred_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from guideway.generation import deferral

    pattern = "(?:a{7}|a{11}b){1,300}(?:a{5}|a{13}c){1,300}b"
    sampler = gw.Sampler(temperature=1.0, logit_bias={A: 6.0})
    expected = gw.generate(model(), "x", gw.Regex(pattern), max_tokens=4_000, seed=3, sampler=sampler)
    monkeypatch.setattr(deferral, "ROUND_WORK", 1)
    monkeypatch.setattr(deferral, "ROW_WORK", 1)
    parked: list[Row] = []
    park = deferral.Deferral.park
    monkeypatch.setattr(deferral.Deferral, "park", lambda self, row: (parked.append(row), park(self, row))[1])
    assert (
        asyncio.run(gw.agenerate(fresh_model(), "x", gw.Regex(pattern), max_tokens=4_000, seed=3, sampler=sampler))
        == expected
    )
    assert parked


def test_a_deferred_row_ends_with_its_error() -> None:
    with pytest.raises((gw.errors.BudgetTooSmallError, gw.errors.LimitExceededError)):
        asyncio.run(gw.agenerate(model(), "x", SLOW["look-aheads"], max_tokens=20))


def test_the_bound_ends_with_the_round() -> None:
    loop = loop_of(model())
    assert isinstance(loop, Loop)
    session = model().session()
    row = Row(session, Limits(5))
    assert row.is_checked
    assert bound_work(None) is None


def test_rows_do_not_wait_for_the_value_of_another_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from guideway.generation import plan

    value, may_end = plan._value, threading.Event()

    def slow(source: Any, text: str) -> Any:
        if text == "a":
            assert may_end.wait(20)
        return value(source, text)

    monkeypatch.setattr(plan, "_value", slow)

    async def together() -> tuple[Any, str]:
        one = model()
        first = asyncio.ensure_future(gw.acomplete(one, "x", gw.Regex("a")))
        text = await ordinary(one, 0)  # ends while the value of the first row is made
        assert not first.done()
        may_end.set()
        return await first, text

    found, text = asyncio.run(together())
    assert found.value == "a"
    assert len(text) == 60


def test_an_error_of_a_value_is_that_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    from guideway.generation import plan

    def failing(source: Any, text: str) -> Any:
        raise MemoryError("no memory")

    monkeypatch.setattr(plan, "_value", failing)
    with pytest.raises(MemoryError, match="no memory"):
        asyncio.run(gw.agenerate(model(), "x", gw.Regex("a")))


def test_a_matcher_that_needs_much_work_is_made_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """An automaton is compiled again for a new matcher if its store was replaced."""
    from guideway.generation import plan

    made: list[str] = []
    refuse = plan._within
    monkeypatch.setattr(plan, "_within", lambda *given: refuse(*given) if made else None)
    prepare = Preparation.run

    def run(self: Preparation) -> None:
        made.append(threading.current_thread().name)
        prepare(self)

    monkeypatch.setattr(Preparation, "run", run)
    model = ConstantModel(BYTES)
    texts = asyncio.run(gw.agenerate(model, ["x", "y"], gw.Regex("[ab]{9}"), seed=1))
    assert texts == gw.generate(ConstantModel(BYTES), ["x", "y"], gw.Regex("[ab]{9}"), seed=1)
    assert made == ["guideway-constraints"]

    def fail(self: Preparation) -> None:
        raise gw.errors.LimitExceededError("too much work")

    made.clear()
    monkeypatch.setattr(Preparation, "run", fail)
    with pytest.raises(gw.errors.LimitExceededError, match="too much work"):
        asyncio.run(gw.agenerate(model, "x", gw.Regex("[ab]{9}"), seed=1))

    def fail_once(self: Preparation) -> None:
        made.append("")  # the matcher of the second prompt needs no worker
        raise gw.errors.LimitExceededError("too much work")

    monkeypatch.setattr(Preparation, "run", fail_once)
    options: Any = {"seed": 1, "return_exceptions": True}
    failed, second = asyncio.run(gw.agenerate(model, ["x", "y"], gw.Regex("[ab]{9}"), **options))
    assert isinstance(failed, gw.errors.LimitExceededError)
    assert str(failed) == "prompt 1 of 2: too much work"
    assert second == texts[1]


def wait_for_loops() -> None:
    """Wait until the threads of loops of earlier calls have ended."""
    for _ in range(1000):
        if not _SWITCH_INTERVAL._threads:
            return
        time.sleep(0.01)
    raise AssertionError("the thread of a loop does not end")


def test_the_switch_interval_is_short_while_a_loop_runs() -> None:
    wait_for_loops()
    before, seen = sys.getswitchinterval(), []

    class Watching(ConstantEngine):
        def forward(self, rows: Any, caches: Any) -> Any:
            seen.append(sys.getswitchinterval())
            return super().forward(rows, caches)

    model = Model(Watching(np.zeros(257, np.float32)), Tokenizer.of(BYTES))
    asyncio.run(gw.agenerate(model, "x", gw.Regex("[ab]{3}"), seed=1))
    assert {round(one, 6) for one in seen} == {SWITCH_SECONDS}
    wait_for_loops()  # the thread of the loop ends after the call
    assert sys.getswitchinterval() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the operating system cannot fork")
def test_a_forked_process_gets_the_switch_interval_back() -> None:
    wait_for_loops()
    before = sys.getswitchinterval()
    with _SWITCH_INTERVAL:
        child = os.fork()
        if not child:
            restored = sys.getswitchinterval() == before
            with _SWITCH_INTERVAL:
                pass
            os._exit(0 if restored and sys.getswitchinterval() == before else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sys.getswitchinterval() == before
