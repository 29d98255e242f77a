"""Work for a client ends when the client disconnects."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from guideway.server.sse import Client, ClientLeft


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


def test_a_closed_client_is_deleted_without_the_garbage_collector() -> None:
    """It refers to the connection of its request."""

    async def run() -> None:
        async def receive() -> Any:
            await asyncio.Event().wait()

        client = Client(receive)
        await client.unless_left(asyncio.sleep(0.01))
        client.close()
        known = weakref.ref(client)
        del client
        await asyncio.sleep(0.01)  # the task ends
        assert known() is None

    gc.disable()
    try:
        asyncio.run(run())
    finally:
        gc.enable()
