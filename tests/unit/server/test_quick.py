"""Small bodies whose constraint is known are prepared in the thread of the event loop."""

import asyncio
import os
import threading
from typing import Any

import httpx
import pytest

from guideway.generation import Model
from guideway.server import generating
from guideway.server.ids import new_id
from guideway.server.quick import QUICK_SECONDS, QuickBodies
from guideway.server.sse import Client, ClientLeft
from tests.helpers.serving import live_server

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}


def test_only_the_first_body_of_a_constraint_changes_the_thread(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    read_body = generating.read_body

    def recorded(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return read_body(*given)

    monkeypatch.setattr(generating, "read_body", recorded)
    bodies = [
        BODY,
        {**BODY, "seed": 4, "max_tokens": 2},
        {**BODY, "regex": "[ab]{2}"},
        {**BODY, "regex": "[ab]{2}", "messages": [{"role": "user", "content": "a"}]},
        {**BODY, "regex": "[ab]{2}", "messages": [{"role": "user", "content": "a " * 300}], "max_tokens": 4},
        {**BODY, "messages": [{"role": "user", "content": "a"}], "user": "u" * 5000},  # a large body
    ]
    with live_server({"tiny": tiny}) as live:
        for body in bodies:
            assert httpx.post(live.url + CHAT, json=body, timeout=60).status_code == 200
    are_new = [thread.name.startswith("guideway") for thread in threads]
    assert are_new == [True, False, True, False, False, True]


def test_slow_constraints_are_never_quick() -> None:
    quick = QuickBodies()
    slow, fast = (quick.key_of(CHAT, "tiny", {**BODY, "regex": text}, 100) for text in "ab")
    assert slow is not None
    assert fast is not None
    assert slow != fast
    for key, seconds in ((slow, QUICK_SECONDS * 2), (slow, 0.0), (fast, QUICK_SECONDS / 2)):
        quick.add(key, seconds)
    assert (quick.is_quick(slow), quick.is_quick(fast)) == (False, True)
    assert quick.key_of(CHAT, "other", {**BODY, "regex": "b"}, 100) != fast
    assert quick.key_of(CHAT, "tiny", BODY, 1 << 20) is None
    assert quick.key_of("/v1/completions", "tiny", {"model": "tiny", "prompt": ["a"] * 9}, 100) is None


def test_work_ends_when_the_client_disconnects() -> None:
    ended: list[str] = []

    async def work(name: str, may_end: asyncio.Event) -> str:
        try:
            await may_end.wait()
        finally:
            ended.append(name)
        return name

    async def run() -> None:
        gone, done, never = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        client = Client(receive)
        done.set()
        assert await client.unless_left(work("first", done)) == "first"
        asyncio.get_running_loop().call_later(0.01, gone.set)
        with pytest.raises(ClientLeft):
            await client.unless_left(work("cancelled", never))
        with pytest.raises(ClientLeft):
            await client.unless_left(work("not begun", done))
        await asyncio.sleep(0)  # this task is not cancelled any more
        client.close()

        gone.clear()
        client = Client(receive)
        asyncio.get_running_loop().call_later(0.01, gone.set)
        asyncio.get_running_loop().call_later(0.05, never.set)
        with pytest.raises(ClientLeft):
            await client.unless_left(work("to its end", never), cancels=False)
        client.close()

    asyncio.run(run())
    assert ended == ["first", "cancelled", "to its end"]


def test_other_cancellations_are_not_those_of_the_client() -> None:
    async def run() -> None:
        async def receive() -> Any:
            await asyncio.Event().wait()

        client = Client(receive)
        task = asyncio.ensure_future(client.unless_left(asyncio.sleep(60)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        client.close()

    asyncio.run(run())


def test_identifiers_are_different_in_a_forked_process() -> None:
    first = new_id()
    assert len(first) == 32
    assert len({new_id() for _ in range(1000)} | {first}) == 1001
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, new_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 64).decode() not in {new_id() for _ in range(300)}
    os.close(reader)
    os.close(writer)
