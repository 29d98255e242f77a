"""Server-sent events: a response whose events come from a generator. It is closed early if the client disconnects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from starlette.types import Receive, Scope, Send

__all__ = ["ClientLeft", "EventStream", "unless_left"]

T = TypeVar("T")

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class ClientLeft(Exception):  # not an error of the server: it stops the work
    """The client closed the connection before the response was complete."""


async def unless_left(receive: Receive, work: Coroutine[Any, Any, T], *, cancels: bool = True) -> T:
    """Return the result of a coroutine, unless the client disconnects first.

    Args:
        receive: The `receive` function of the ASGI request.
        work: The coroutine.
        cancels: Whether the coroutine is cancelled if the client disconnects. False: it waits for a thread, which
            cannot be cancelled; `ClientLeft` is raised only after its end.

    Raises:
        ClientLeft: The client disconnected.
        Exception: The error of the coroutine, if it fails before the client disconnects.
    """
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if not cancels:
            await asyncio.wait({task})
            task.exception()  # marks it as retrieved, so that asyncio does not log it
        raise ClientLeft
    finally:
        for one in (task, gone):
            if not one.done():
                one.cancel()
                with suppress(asyncio.CancelledError):
                    await one


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream:
    """A response of server-sent events, as an ASGI application.

    The caller gets the first events before it creates this object, so that an earlier error becomes an error response.

    Args:
        first: The bytes of the first events.
        rest: Yields the bytes of later events; empty bytes are sent as a comment.
        idle: A function that makes `rest` yield empty bytes. It is called if nothing was sent for `keep_alive_seconds`.
        headers: Additional headers.
        keep_alive_seconds: The time without an event after which `idle` is called.
        send_seconds: A client that takes no data for this time is disconnected.
    """

    def __init__(
        self,
        first: bytes,
        rest: AsyncGenerator[bytes, None],
        idle: Callable[[], None],
        *,
        headers: Mapping[str, str],
        keep_alive_seconds: float,
        send_seconds: float,
    ) -> None:
        self._first, self._rest, self._idle = first, rest, idle
        self._headers = [*_HEADERS, *((name.lower().encode(), value.encode()) for name, value in headers.items())]
        self._keep_alive_seconds, self._send_seconds = keep_alive_seconds, send_seconds
        self._changed = time.monotonic()  # the time at which the last send began or ended
        self._sending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events. Returns early if the client disconnects; `rest` is closed in every case.

        Raises:
            asyncio.CancelledError: The client took no data for `send_seconds`.
        """
        async with aclosing(self._rest):
            with suppress(ClientLeft, OSError):
                await unless_left(receive, self._run(send))

    async def _run(self, send: Send) -> None:
        watch = asyncio.ensure_future(self._watch(asyncio.current_task()))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self._headers})
            await self._send(send, self._first)
            async for data in self._rest:
                await self._send(send, data or b": keep-alive\n\n")
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            watch.cancel()

    async def _send(self, send: Send, data: bytes) -> None:
        self._sending, self._changed = True, time.monotonic()
        await send({"type": "http.response.body", "body": data, "more_body": True})
        self._sending, self._changed = False, time.monotonic()

    async def _watch(self, task: asyncio.Task[Any] | None) -> None:
        """Cancel `task` if the client takes no data for `send_seconds`.

        Call `idle` if no event is sent for `keep_alive_seconds`.
        """
        while True:
            await asyncio.sleep(min(self._send_seconds, self._keep_alive_seconds) / 2)
            waited = time.monotonic() - self._changed
            if self._sending and waited > self._send_seconds and task is not None:
                task.cancel()
                return
            if not self._sending and waited > self._keep_alive_seconds:
                self._idle()
