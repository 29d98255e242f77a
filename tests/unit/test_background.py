"""Background threads: their Python code takes turns, and other threads get the interpreter."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import pytest

import guideway as gw
from guideway import background
from guideway._kernel import WorkDeferred, bound_work
from guideway.compiler import acompile
from tests.helpers.byte_tokens import BYTES


def test_long_work_does_not_delay_short_work() -> None:
    order: list[str] = []

    def work(name: str, steps: int) -> None:
        with background.Turn():
            for _ in range(steps):
                start = time.thread_time()
                while time.thread_time() - start < 0.002:
                    pass
                background.checkpoint()
        order.append(name)

    async def both() -> None:
        await asyncio.gather(background.run(work, "long", 60), background.run(work, "short", 3))

    asyncio.run(both())
    assert order == ["short", "long"]


def test_turns_do_not_block_for_ever() -> None:
    lock = threading.Lock()

    def holds() -> None:
        with background.Turn(), lock:  # waits for its next turn with the lock
            for _ in range(3):
                time.sleep(0.002)
                background.checkpoint()

    def wants() -> None:
        with background.Turn(), lock:
            pass

    async def all_of_them() -> None:
        await asyncio.wait_for(asyncio.gather(*(background.run(one) for one in (holds, wants) * 4)), 30)

    asyncio.run(all_of_them())


def test_other_threads_have_no_turns() -> None:
    with background.Turn():
        background.checkpoint()
        assert background.call(lambda: bound_work(None)) is None
    assert background._THREAD.until is None


def busy(seconds: float) -> None:
    """Use processor time, with checkpoints."""
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        background.checkpoint()


def test_few_jobs_work_at_the_same_time() -> None:
    guard, now, most = threading.Lock(), 0, 0

    def kernel_work() -> None:  # does not hold the GIL
        nonlocal now, most
        with guard:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with guard:
            now -= 1

    def work() -> None:
        with background.Turn():
            for _ in range(4):
                background.call(kernel_work)
                background.checkpoint()

    async def all_of_them() -> None:
        await asyncio.gather(*(background.run(work) for _ in range(30)))

    asyncio.run(all_of_them())
    assert 1 < most <= len(background._SLOTS)


def test_a_short_job_does_not_wait_for_many_long_ones() -> None:
    order: list[str] = []

    def long() -> None:
        with background.Turn():
            busy(0.15)
        order.append("long")

    def short() -> None:
        with background.Turn():
            pass
        order.append("short")

    async def all_of_them() -> None:
        slow = [asyncio.ensure_future(background.run(long)) for _ in range(background._ACTIVE + 10)]
        await asyncio.sleep(0.05)
        await background.run(short)
        assert len(order) <= 3
        for one in slow:
            one.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    asyncio.run(all_of_them())


def test_a_call_is_repeated_at_the_next_level() -> None:
    limits: list[int | None] = []

    def work() -> str:
        limit = bound_work(None)
        limits.append(limit)
        bound_work(limit)
        if limit is not None:
            raise WorkDeferred
        return "done"

    def job() -> str:
        with background.Turn():
            assert bound_work(None) is None
            found = background.call(work)
            assert bound_work(None) is None
            return found

    assert asyncio.run(background.run(job)) == "done"
    assert len(limits) == len(background._LEVELS) + 1
    bounded = [one for one in limits if one is not None]
    assert bounded == sorted(bounded)


def test_an_outer_limit_is_kept() -> None:
    def exceeding() -> None:
        bound_work(0)
        raise WorkDeferred

    def job() -> tuple[int | None, int | None]:
        with background.Turn():
            bound_work(1_000)
            background.call(lambda: bound_work(600))  # 400 units are used
            left = bound_work(None)
            bound_work(left)
            with pytest.raises(WorkDeferred):
                background.call(exceeding)
            return left, bound_work(None)

    assert asyncio.run(background.run(job)) == (600, 0)


def test_a_cancelled_call_ends_at_its_next_checkpoint() -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless() -> None:
        try:
            with background.Turn():
                begun.set()
                while True:
                    background.checkpoint()
        finally:
            ended.set()

    async def cancelled() -> None:
        task = asyncio.ensure_future(background.run(endless))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(ended.wait, 20)

    asyncio.run(cancelled())


def test_a_thread_that_waits_loses_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_STUCK_SECONDS", 0.05)
    released = threading.Event()

    def waits() -> None:
        with background.Turn():
            assert released.wait(20)
            background.checkpoint()

    def releases() -> None:
        with background.Turn():
            released.set()

    async def all_of_them() -> None:
        waiting = [background.run(waits) for _ in range(2 * len(background._SLOTS))]
        await asyncio.gather(*waiting, background.run(releases))

    asyncio.run(asyncio.wait_for(all_of_them(), 30))


class Noted(background.Task):
    def __init__(self, name: str, order: list[str], repeats: int = 0) -> None:
        self.over = threading.Event()
        super().__init__(self.over.set)
        self.name, self.order, self.repeats = name, order, repeats

    def run(self) -> None:
        if self.repeats:
            self.repeats -= 1
            raise WorkDeferred
        self.order.append(self.name)


def test_tasks_of_running_rows_come_first() -> None:
    order: list[str] = []
    may_end, begun = threading.Event(), threading.Semaphore(0)

    def holds() -> None:
        begun.release()
        assert may_end.wait(20)

    holders = [Noted("", order) for _ in background._SLOTS]
    for one in holders:
        one.run = holds  # type: ignore[method-assign]  # it occupies a slot
        one.start(background.NEW)
    for _ in holders:
        assert begun.acquire(timeout=20)
    tasks = [Noted("new", order), Noted("repeated", order, 1), Noted("waiting", order), Noted("running", order)]
    for task, rank in zip(tasks, (background.NEW, background.NEW, background.WAITING, background.RUNNING), strict=True):
        task.start(rank)
    assert not order
    may_end.set()
    for task in tasks:
        assert task.over.wait(20)
        assert task.done
    assert order.index("running") < order.index("new")


def test_a_task_keeps_its_error() -> None:
    task = Noted("", [])

    def fails() -> None:
        raise ValueError("wrong")

    task.run = fails  # type: ignore[method-assign]  # replaced for this task only
    task.start(background.WAITING)
    assert task.over.wait(20)
    assert isinstance(task.error, ValueError)


def test_a_task_is_deleted_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        task = Noted("", [])
        known, over = weakref.ref(task), task.over
        task.start(background.WAITING)
        del task
        assert over.wait(20)
        until = time.monotonic() + 20
        while known() is not None and time.monotonic() < until:
            time.sleep(0.01)  # the thread still has a reference for a moment
        assert known() is None
    finally:
        gc.enable()


def test_threads_end_with_the_interpreter() -> None:
    program = """
import asyncio, sys, threading, time
from guideway import background
from guideway._kernel import WorkDeferred, bound_work
def endless():
    with background.Turn():
        while True:
            background.checkpoint()
async def leaves():
    for _ in range(40):
        asyncio.ensure_future(background.run(endless))
    await asyncio.sleep(0.2)
asyncio.run(leaves())
print("left")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "left", "")


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background, "_POOL", background._Pool())
    monkeypatch.setattr(threading.Thread, "start", fails)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        asyncio.run(background.run(int))
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Noted("", []).start(background.NEW)
    monkeypatch.undo()
    assert asyncio.run(background.run(int)) == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_compiles_in_the_child_of_a_fork() -> None:
    async def one(text: str) -> bytes:
        return (await acompile(gw.Regex(text), BYTES, cache=False)).matcher().completion()

    assert asyncio.run(one("ab")) == b"ab"
    child = os.fork()
    if child == 0:
        os._exit(0 if asyncio.run(one("cd")) == b"cd" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_python_code_pauses_during_a_round() -> None:
    """A round of 4 ms lets no other thread take a step, in at least one of many attempts; a busy machine delays it."""
    steps, is_over = 0, threading.Event()

    def work() -> None:
        nonlocal steps
        with background.Turn():
            while not is_over.is_set():
                steps += 1
                background.checkpoint()

    async def rounds() -> list[int]:
        task = asyncio.ensure_future(background.run(work))
        found = []
        while len(found) < 50 and 0 not in found:
            reached = steps
            while steps == reached:  # until the thread works
                await asyncio.sleep(0.001)
            background.begin_round()
            try:
                time.sleep(0.001)  # the thread reaches its next checkpoint
                before = steps
                time.sleep(0.003)  # the thread pauses for at most 10 ms
                found.append(steps - before)
            finally:
                background.end_round()
        is_over.set()
        await task
        return found

    assert 0 in asyncio.run(asyncio.wait_for(rounds(), 30))


def test_background_threads_make_progress_during_an_endless_round() -> None:
    def work() -> int:
        with background.Turn():
            for _ in range(3):
                start = time.thread_time()
                while time.thread_time() - start < 0.002:
                    pass
                background.checkpoint()
            return len(gw.compile(gw.Regex("[ab]{3}"), BYTES, cache=False).matcher().completion())

    background.begin_round()
    try:
        assert asyncio.run(asyncio.wait_for(background.run(work), 30)) == 3
    finally:
        background.end_round()


def test_a_round_ends_with_a_fork() -> None:
    background.begin_round()
    try:
        child = os.fork()
        if not child:
            rounds, found = background._POOL.rounds, [background._POOL.rounds.count]
            background.end_round()  # of the round that the fork has ended
            found.append(rounds.count)
            background.begin_round()
            found.append(rounds.count)
            background.end_round()
            os._exit(int(found != [0, 0, 1] or rounds.count != 0 or not rounds.wait()))
        assert os.waitpid(child, 0)[1] == 0
    finally:
        background.end_round()


def test_only_the_processors_of_this_process_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 7}, raising=False)
    assert background.processor_count() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert background.processor_count() == 1
