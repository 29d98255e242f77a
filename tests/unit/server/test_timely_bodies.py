"""The time for the body of a request: only waiting for data counts."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from guideway.server.bodies import TimelyBodies
from guideway.server.errors import HttpError

Receive = Callable[[], Awaitable[Any]]


def run(receive: Receive, app: Callable[[Receive], Awaitable[None]], seconds: float) -> None:
    async def send(_: Any) -> None:
        pass

    async def called(_: Any, receiving: Receive, __: Any) -> None:
        await app(receiving)

    asyncio.run(TimelyBodies(called, seconds)({"type": "http"}, receive, send))


def part(body: bytes, *, more_body: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more_body}


def test_the_time_of_the_server_does_not_count() -> None:
    messages = [part(b"a"), part(b"b"), part(b"c", more_body=False)]
    found: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def app(receiving: Receive) -> None:
        for _ in range(3):
            found.append((await receiving())["body"])
            time.sleep(0.1)  # the work of the server

    run(receive, app, 0.05)
    assert found == [b"a", b"b", b"c"]


def test_data_that_is_ready_at_the_end_of_the_time_is_taken() -> None:
    async def receive() -> Any:
        arrived = asyncio.Event()

        def busy() -> None:
            time.sleep(0.1)
            arrived.set()

        asyncio.get_running_loop().call_soon(busy)
        await arrived.wait()
        return part(b"a")

    async def app(receiving: Receive) -> None:
        for _ in range(5):
            assert (await receiving())["body"] == b"a"

    run(receive, app, 0.05)


def test_waiting_counts_in_total() -> None:
    calls = 0

    async def receive() -> Any:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.05)
        return part(b"a")

    async def app(receiving: Receive) -> None:
        while True:
            await receiving()

    with pytest.raises(HttpError) as caught:
        run(receive, app, 0.12)
    assert caught.value.status == 408
    assert calls <= 3


def test_a_receiver_is_cancelled_with_its_caller() -> None:
    cancelled = asyncio.Event()

    async def receive() -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def app(receiving: Receive) -> None:
        task = asyncio.ensure_future(receiving())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})
        await asyncio.wait_for(cancelled.wait(), 10)

    run(receive, app, 60)
