"""The loop of async calls: its calls in event loops (`Outbox`), and the pauses of background threads."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import guideway as gw
from guideway import background
from guideway.generation import scheduler
from guideway.generation.async_loop import Call, Loop, Outbox, loop_of
from guideway.generation.deferral import Deferral, Preparation, WorkDeferred, _Past
from guideway.generation.plan import Job
from guideway.generation.scheduler import Row
from guideway.testing import ConstantModel
from tests.helpers.byte_tokens import BYTES


class EventLoop:
    """A substitute for an event loop. It runs functions at once, and counts the calls (wake-ups)."""

    def __init__(self, *, is_closed: bool = False) -> None:
        self.wake_ups = 0
        self.is_closed = is_closed

    def call_soon_threadsafe(self, function: Callable[..., object], *args: object) -> None:
        if self.is_closed:
            raise RuntimeError("Event loop is closed")
        self.wake_ups += 1
        function(*args)


def send(outbox: Outbox, where: EventLoop, to: list[str], text: str) -> None:
    """Append a text in the event loop; with "lost " before it if the event loop is closed."""
    loop: Any = where
    outbox.call(loop, lambda: to.append(text), lambda: to.append(f"lost {text}"))


def test_the_calls_of_a_block_wake_each_event_loop_once() -> None:
    outbox, one, other = Outbox(), EventLoop(), EventLoop()
    made: list[str] = []
    with outbox:
        for text in ("a", "b", "c"):
            send(outbox, one, made, text)
        send(outbox, other, made, "d")
        assert not made
    assert made == ["a", "b", "c", "d"]
    assert (one.wake_ups, other.wake_ups) == (1, 1)
    send(outbox, one, made, "e")
    assert made[-1] == "e", "outside of a block, a call is made at once"
    with outbox:
        pass
    assert (one.wake_ups, other.wake_ups) == (2, 1)


def test_calls_of_other_threads_do_not_wait_for_the_end_of_the_block() -> None:
    outbox, one = Outbox(), EventLoop()
    made: list[str] = []
    with outbox:
        send(outbox, one, made, "loop")
        thread = threading.Thread(target=send, args=(outbox, one, made, "other"))
        thread.start()
        thread.join()
        assert made == ["other"]
    assert made == ["other", "loop"]


def test_an_exception_in_the_block_does_not_discard_calls() -> None:
    outbox, one = Outbox(), EventLoop()
    made: list[str] = []

    def fail() -> None:
        with outbox:
            send(outbox, one, made, "a")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert made == ["a"]
    send(outbox, one, made, "b")
    assert made == ["a", "b"]


def test_a_closed_event_loop_does_not_affect_others() -> None:
    outbox, closed, one = Outbox(), EventLoop(is_closed=True), EventLoop()
    made: list[str] = []
    with outbox:
        send(outbox, closed, made, "a")
        send(outbox, one, made, "b")
        send(outbox, closed, made, "c")
    assert sorted(made) == ["b", "lost a", "lost c"]


def test_a_round_wakes_an_event_loop_once() -> None:
    model, loop, where = ConstantModel(BYTES), Loop(), EventLoop()
    made: list[str] = []

    def call(name: str) -> Call:
        options: Any = {"max_tokens": 8, "min_tokens": 8, "batch_size": 4}
        job = Job(model, [gw.GenerationRequest("x", None)], None, None, options)
        return Call(job, lambda _: send(loop.outbox, where, made, name), lambda _: None)

    calls = [call(name) for name in "abc"]
    for number in (1, 2):
        loop._round(calls)
        assert made == list("abc") * number
        assert where.wake_ups == number


def test_a_loop_without_calls_keeps_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a cancelled call were parked; their sessions would keep the model."""
    parked = threading.Event()

    def park(self: Deferral, row: Row) -> None:
        self._past[row] = _Past(0, 1, 1)
        self._parked[row] = Preparation(None, lambda: None)  # type: ignore[arg-type,assignment]  # never done
        parked.set()

    def refuse(self: Row) -> None:
        raise WorkDeferred

    monkeypatch.setattr(Deferral, "park", park)
    monkeypatch.setattr(Row, "take_forced", refuse)

    async def cancelled(model: ConstantModel) -> None:
        task = asyncio.ensure_future(gw.agenerate(model, "x", gw.Regex("[ab]{9}")))
        assert await asyncio.to_thread(parked.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    model = ConstantModel(BYTES)
    asyncio.run(cancelled(model))
    kept, end = weakref.ref(model), time.monotonic() + 20
    del model
    while kept() is not None and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    assert kept() is None


class Owner:
    """A caller that refers to its call and is called by it."""

    def __init__(self, job: Job, *, leaves: bool) -> None:
        self.call, self.leaves = Call(job, self.moved, self.done), leaves
        self.is_done = threading.Event()

    def moved(self, rows: list[Row]) -> None:
        self.call.cancelled = self.leaves

    def done(self, error: BaseException | None) -> None:
        self.is_done.set()


@pytest.mark.parametrize("leaves", [False, True])
def test_the_rows_of_an_ended_call_are_released_without_a_garbage_collection(leaves: bool) -> None:
    model = ConstantModel(BYTES)
    options: Any = {"max_tokens": 8, "min_tokens": 8}
    owner = Owner(Job(model, [gw.GenerationRequest("x", None)], None, None, options), leaves=leaves)
    kept, until = weakref.ref(owner.call.job), time.monotonic() + 20
    gc.disable()
    try:
        Loop().add(owner.call)
        assert owner.is_done.wait(20)
        del owner
        while kept() is not None and time.monotonic() < until:
            time.sleep(0.01)
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("drafted", [0, 3])
def test_background_threads_pause_only_while_the_loop_computes(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException] | None, drafted: int
) -> None:
    """Each `begin_round` has its `end_round`, also if the engine fails in the second round."""
    rounds = background._POOL.rounds
    before_draws: list[int] = []
    in_engine: list[tuple[str, int]] = []
    after: list[int] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            in_engine.append((function.__name__, rounds.count))
            if error is not None and after:
                raise error
            return function(*args, **options)

        return run

    def draw(row: Row, draw: Callable[[Row], None] = Row.draw) -> None:
        before_draws.append(rounds.count)
        draw(row)

    monkeypatch.setattr(scheduler, "feed_all", noting(scheduler.feed_all))
    monkeypatch.setattr(scheduler, "speculate", noting(scheduler.speculate))
    monkeypatch.setattr(Row, "draw", draw)
    options: dict[str, Any] = {"max_tokens": 50, "prompt_lookup_num_tokens": drafted}
    job = Job(gw.load("tiny"), [gw.GenerationRequest("x", gw.Regex("[ab]{40}"))], None, None, options)
    loop, call = Loop(), Call(job, lambda _: after.append(rounds.count), lambda _: None)
    loop._round([call])
    if error is None:
        loop._round([call])
    else:
        with pytest.raises(error):
            loop._round([call])
    name = "speculate" if drafted else "feed_all"
    assert in_engine == [(name, 0), (name, 0)], "background threads work while the model runs"
    assert set(before_draws) == (set() if drafted else {1})
    assert set(after) == {0}
    assert rounds.count == 0


@pytest.mark.parametrize("drafted", [0, 3])
def test_background_threads_pause_again_after_the_pass(drafted: int) -> None:
    """A round can have several steps. The next one begins while background threads pause."""
    options: dict[str, Any] = {"max_tokens": 50, "prompt_lookup_num_tokens": drafted}
    job = Job(gw.load("tiny"), [gw.GenerationRequest("x", gw.Regex("[ab]{40}"))], None, None, options)
    row, deferral, rounds = next(iter(job.rows())), Deferral(), background._POOL.rounds
    for _ in range(2):  # the prompt, then a pass with proposed tokens or several steps
        deferral.begin()
        try:
            scheduler.step([row], strides=True, deferral=deferral)
            assert rounds.count == 1
        finally:
            deferral.end()
        assert rounds.count == 0


def test_a_call_that_does_not_stream_gets_the_first_token_and_the_end_of_its_rows() -> None:
    model = ConstantModel(BYTES)
    given: list[list[tuple[int, bool]]] = []
    ended = threading.Event()
    options: Any = {"max_tokens": 6, "min_tokens": 6, "batch_size": 2}
    job = Job(model, [gw.GenerationRequest("x", None), gw.GenerationRequest("y", None)], None, None, options)

    def moved(rows: list[Row]) -> None:
        given.append([(len(row.tokens), row.is_over) for row in rows])
        job.finish_all(rows)

    Loop().add(Call(job, moved, lambda _: ended.set(), streams=False))
    assert ended.wait(60)
    assert given == [[(1, False)] * 2, [(6, True)] * 2]


def test_rows_that_end_with_forced_tokens_are_reported_before_the_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So their places in the batch are free, and the caller gets the result while the model runs for the others."""
    model = ConstantModel(BYTES)
    events: list[str] = []
    feed_all = scheduler.feed_all

    def running(*given: Any, **options: Any) -> None:
        events.extend(["run"] if given[0] else [])
        feed_all(*given, **options)

    def made(name: str, constraint: str) -> Call:
        request = gw.GenerationRequest("x", gw.Regex(constraint))
        job = Job(model, [request], None, None, {"max_tokens": 8, "batch_size": 4})

        def moved(rows: list[Row]) -> None:
            assert scheduler.bound_work(None) is None, "results are made without a limit of work"
            job.finish_all(rows)

        return Call(job, moved, lambda error: events.append(f"{name} {error}"), streams=False)

    monkeypatch.setattr(scheduler, "feed_all", running)
    loop, calls = Loop(), [made("short", "[ab]cd"), made("long", "[ab]{4}")]
    loop._calls, loop._running = calls, True
    loop.run_rounds()
    assert events == ["run", "short None", *["run"] * 3, "long None"]
    assert all(not call.active for call in calls)


def threads_of_loops() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "guideway-loop"}


def test_one_thread_runs_all_calls_of_a_model_and_ends_with_it() -> None:
    """Each new thread could keep the memory that a round allocates and frees."""
    before = threads_of_loops()
    model = ConstantModel(BYTES)
    loop, found = loop_of(model), []
    for number in range(3):
        assert asyncio.run(gw.agenerate(model, "x", gw.Choice([f"a{number}"]))) == f"a{number}"
        for _ in range(1000):
            if not loop._running:
                break
            time.sleep(0.01)
        assert not loop._running, "the thread waits before the next call"
        found += threads_of_loops() - before
    assert found == [found[0]] * 3
    known = weakref.ref(model)
    del model, loop
    for _ in range(1000):  # the thread may still be about to wait
        gc.collect()
        if known() is None:
            break
        time.sleep(0.01)
    assert known() is None, "a thread that waits does not keep the model"
    found[0].join(60)
    assert not found[0].is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_its_own_thread() -> None:
    model = ConstantModel(BYTES)
    assert asyncio.run(gw.agenerate(model, "x", gw.Regex("ab"))) == "ab"
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.alarm(60)  # without a thread, the call would wait for ever
            os.write(writer, asyncio.run(gw.agenerate(model, "x", gw.Regex("cd"))).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert os.read(reader, 64) == b"cd"
    os.close(reader)


def test_a_callback_that_fails_does_not_stop_the_next_calls() -> None:
    model, loop = ConstantModel(BYTES), Loop()

    def fails(_: object) -> None:
        raise RuntimeError("a callback failed")

    def add(done: Callable[[BaseException | None], None]) -> None:
        job = Job(model, [gw.GenerationRequest("x", gw.Regex("ab"))], None, None, {"max_tokens": 8, "batch_size": 4})
        loop.add(Call(job, lambda rows: job.finish_all(rows), done))

    before = threads_of_loops()
    for _ in range(3):
        ended = threading.Event()
        add(fails)
        add(lambda error, ended=ended: ended.set())  # type: ignore[misc]  # the default binds this round's event
        assert ended.wait(60)
    assert len(threads_of_loops() - before) == 1, "the thread continues after an error"
