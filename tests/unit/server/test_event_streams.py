"""Streams of events that are cancelled, and clients that take no data."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from guideway.server.sse import Client, EventStream

MESSAGES = ["start", "first", "second", ""]
"""What `stream_of` sends: the start of the response, two events, and the end of the body."""


def stream_of(wait: asyncio.Event, send_seconds: float) -> EventStream:
    async def rest() -> AsyncGenerator[bytes, None]:
        await wait.wait()
        yield b"second"

    return EventStream(b"first", rest(), lambda: None, headers={}, keep_alive_seconds=60, send_seconds=send_seconds)


def shown(message: Any) -> str:
    return "start" if message["type"] == "http.response.start" else message["body"].decode()


async def no_message() -> Any:
    await asyncio.Event().wait()


@pytest.mark.parametrize("stalled", MESSAGES)
def test_no_event_follows_a_message_that_was_not_taken(stalled: str) -> None:
    async def run() -> None:
        sent: list[str] = []
        ready, stopped = asyncio.Event(), asyncio.Event()
        ready.set()

        async def send(message: Any) -> None:
            if shown(message) == stalled:
                stopped.set()
                await asyncio.Event().wait()
            sent.append(shown(message))

        stream, client = stream_of(ready, 60), Client(no_message)
        task = asyncio.ensure_future(stream.send(client, send))
        await asyncio.wait_for(stopped.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(stream.end(b"error", send), 10)
        assert sent == MESSAGES[: MESSAGES.index(stalled)]
        client.close()

    asyncio.run(run())


@pytest.mark.parametrize("stalled", MESSAGES)
def test_a_client_that_does_not_take_a_message_is_disconnected(stalled: str) -> None:
    async def run() -> None:
        ready = asyncio.Event()
        ready.set()

        async def send(message: Any) -> None:
            if shown(message) == stalled:
                await asyncio.Event().wait()

        client = Client(no_message)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.ensure_future(stream_of(ready, 0.05).send(client, send)), 10)
        client.close()

    asyncio.run(run())


@pytest.mark.parametrize("takes", [True, False])
def test_the_last_event_of_a_stream_that_was_cancelled(takes: bool) -> None:
    async def run() -> None:
        sent: list[str] = []
        begun = asyncio.Event()

        async def send(message: Any) -> None:
            if shown(message) == "error" and not takes:
                await asyncio.Event().wait()
            sent.append(shown(message))
            if sent[-1] == "first":
                begun.set()

        stream, client = stream_of(asyncio.Event(), 0.05), Client(no_message)
        task = asyncio.ensure_future(stream.send(client, send))
        await asyncio.wait_for(begun.wait(), 10)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(stream.end(b"error", send), 10)
        assert sent == ["start", "first", *(["error"] if takes else [])]
        client.close()

    asyncio.run(run())


def test_no_event_follows_a_complete_response() -> None:
    async def run() -> None:
        sent: list[str] = []
        ready = asyncio.Event()
        ready.set()

        async def send(message: Any) -> None:
            sent.append(shown(message))

        stream, client = stream_of(ready, 60), Client(no_message)
        await stream.send(client, send)
        await stream.end(b"error", send)
        assert sent == MESSAGES
        client.close()

    asyncio.run(run())
