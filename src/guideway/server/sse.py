"""Server-sent events: a response whose events come from a generator. It is closed early if the client disconnects.

`Client` notices the disconnection, also during other work for a request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from starlette.types import Message, Receive, Send

__all__ = ["Client", "ClientLeft", "EventStream"]

T = TypeVar("T")

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class ClientLeft(Exception):  # not an error of the server: it stops the work
    """The client closed the connection before the response was complete."""


class Client:
    """The client of one request. One task waits for its disconnection during all work for the request.

    Use the object in the task that answers the request, after the body was read, and call `close` at the end.

    Args:
        receive: The `receive` function of the ASGI request.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None
        self._working: asyncio.Task[Any] | None = None  # the task to cancel if the client disconnects now
        self._gone = asyncio.Event()

    async def unless_left(self, work: Coroutine[Any, Any, T], *, cancels: bool = True) -> T:
        """Return the result of a coroutine, unless the client disconnects first.

        Args:
            work: The coroutine.
            cancels: Whether the coroutine is cancelled if the client disconnects. False: it waits for a thread, which
                cannot be cancelled; `ClientLeft` is raised only after its end.

        Raises:
            ClientLeft: The client disconnected.
            Exception: The error of the coroutine, if it fails before the client disconnects.
        """
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._wait())
        if self._gone.is_set():
            work.close()
            raise ClientLeft
        self._working = asyncio.current_task() if cancels else None
        try:
            result = await work
        except asyncio.CancelledError:
            if not self._gone.is_set() or self._working is None:
                raise
            if hasattr(self._working, "uncancel"):  # Python 3.11 or later
                self._working.uncancel()
        except Exception:
            if not self._gone.is_set():
                raise
        else:
            if not self._gone.is_set():
                return result
        finally:
            self._working = None
        raise ClientLeft

    def close(self) -> None:
        """End the task, and release it.

        The traceback of its exception refers to this object. This would be a reference cycle.
        """
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()

    async def _wait(self) -> None:
        with suppress(Exception):  # a connection that cannot be read counts as closed
            while (await self._receive())["type"] != "http.disconnect":
                pass
        self._gone.set()
        if self._working is not None:
            self._working.cancel()


class EventStream:
    """A response of server-sent events.

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
        self._sending = False  # also True after a send that was cancelled
        self._is_open = False  # the response has begun and is not complete

    async def send(self, client: Client, send: Send) -> None:
        """Send the events. Returns early if the client disconnects; `rest` is closed in every case.

        Args:
            client: The client of the request.
            send: The `send` function of the ASGI request.

        Raises:
            asyncio.CancelledError: The client took no data for `send_seconds`.
        """
        async with aclosing(self._rest):
            with suppress(ClientLeft, OSError):
                await client.unless_left(self._run(send))

    async def end(self, last: bytes, send: Send) -> None:
        """Send the last events, after `send` was cancelled.

        Nothing is sent if the response has not begun or is complete, or if `send` was cancelled while the client took no
        data. The client has `send_seconds` to take the events.

        Args:
            last: The bytes of the events.
            send: The `send` function of the ASGI request.
        """
        if self._is_open and not self._sending:
            with suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(send(_body(last, more_body=False)), self._send_seconds)

    async def _run(self, send: Send) -> None:
        watch = asyncio.ensure_future(self._watch(asyncio.current_task()))
        try:
            await self._send(send, {"type": "http.response.start", "status": 200, "headers": self._headers})
            await self._send(send, _body(self._first))
            async for data in self._rest:
                await self._send(send, _body(data or b": keep-alive\n\n"))
            await self._send(send, _body(b"", more_body=False))
        finally:
            watch.cancel()

    async def _send(self, send: Send, message: Message) -> None:
        self._sending, self._changed = True, time.monotonic()
        await send(message)
        self._sending, self._changed = False, time.monotonic()
        self._is_open = message.get("more_body", True)

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


def _body(data: bytes, *, more_body: bool = True) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more_body}
