"""Background threads: their Python code takes turns, and other threads get the interpreter."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import pytest

import guideway as gw
from guideway import background
from guideway.compiler import acompile
from tests.helpers.byte_tokens import BYTES


def test_long_work_does_not_delay_short_work() -> None:
    order: list[str] = []

    def work(name: str, steps: int) -> None:
        with background.turn():
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
        with background.turn(), lock:  # waits for its next turn with the lock
            for _ in range(3):
                time.sleep(0.002)
                background.checkpoint()

    def wants() -> None:
        with background.turn(), lock:
            pass

    async def all_of_them() -> None:
        await asyncio.wait_for(asyncio.gather(*(background.run(one) for one in (holds, wants) * 4)), 30)

    asyncio.run(all_of_them())


def test_other_threads_have_no_turns() -> None:
    with background.turn():
        background.checkpoint()
    assert background._THREAD.until is None


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_compiles_in_the_child_of_a_fork() -> None:
    async def one(text: str) -> bytes:
        return (await acompile(gw.Regex(text), BYTES, cache=False)).matcher().completion()

    assert asyncio.run(one("ab")) == b"ab"
    child = os.fork()
    if child == 0:
        os._exit(0 if asyncio.run(one("cd")) == b"cd" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
