"""The HTTP clients inside the SDKs.

A redirect to another host is refused, the size and the time of an answer are limited, and each event loop has separate
connections.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from guideway.errors import UnsupportedError

__all__ = [
    "IDENTITY",
    "LateError",
    "LoopClients",
    "OversizedError",
    "RedirectError",
    "cause",
    "ends_at",
    "keep_on_host",
    "own_http_client",
    "shortened",
    "with_own_connections",
]


IDENTITY = {"Accept-Encoding": "identity"}
"""Headers of the requests of all adapters but `FunctionAdapter`.

They exclude compression, because a small compressed answer can expand to gigabytes.
"""

MAX_BODY = 64 * 1024 * 1024
"""Maximum number of bytes of the body of an answer to a request with `IDENTITY`."""

MAX_COMPRESSED = 64 * 1024
"""Maximum number of compressed bytes if the endpoint compresses the body nevertheless.

One byte of gzip expands to at most 1,032 bytes.
"""


MAX_WORK = 1 << 33
"""Maximum number of bytes that the SDK's parser of server-sent events may copy for one answer.

The count assumes that the parser copies the unfinished event for each line and for each piece of data that arrives.
"""

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")

ends_at: ContextVar[float | None] = ContextVar("ends_at", default=None)
"""The time (`time.monotonic`) until which the answer to the next request must have arrived; None: no limit."""


class OversizedError(Exception):
    """The body of an answer is too large, costs its parser too much work, or has an unsupported compression."""


class LateError(Exception):
    """The body of an answer takes longer than the caller allows."""


class RedirectError(Exception):
    """The endpoint redirects a request, with its key and text, to another host. The request is not sent there."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host


E = TypeVar("E", bound=Exception)


def cause(problem: BaseException, kind: type[E]) -> E | None:
    """Return the first exception of a class among an exception, its causes and its contexts, breadth first.

    None if there is none among the first 20 or so.
    """
    todo: list[BaseException | None] = [problem]
    for one in todo:  # the loop extends this list, to at most 21 entries; some are None or repeated
        if isinstance(one, kind):
            return one
        if one is not None and len(todo) < 20:
            todo += [one.__cause__, one.__context__]
    return None


def _address(url: Any) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL that httpx parsed, so that check and request agree on the host."""
    return url.scheme, url.host.lower(), url.port or {"http": 80, "https": 443}.get(url.scheme)


def _check(response: Any) -> None:
    """Raise `RedirectError` for a redirect to another host, port or scheme, or to an invalid URL.

    A change from http (port 80) to https (port 443) of the same host is allowed.
    """
    target = response.headers.get("location")
    if target is None or not 300 <= response.status_code < 400:
        return
    here = response.request.url
    try:
        after = _address(here.join(target))
    except Exception:  # httpx and httpx2 raise different classes for an invalid URL
        raise RedirectError("an invalid URL") from None
    scheme, host, port = _address(here)
    upgraded = (scheme, port) == ("http", 80) and after == ("https", host, 443)
    if after != (scheme, host, port) and not upgraded:
        shown = f"{after[1][:200]}:{after[2]}"
        raise RedirectError(shown if after[1:] != (host, port) else f"{after[0]}://{shown}")


def _bounded(response: Any) -> None:
    """Limit the size and the time of the body of an answer (see `_limited`).

    Answers to requests without `IDENTITY`, which other users of the client made, are left as they are. Raises
    `OversizedError` for a compression other than gzip and deflate.
    """
    if response.request.headers.get("accept-encoding") != IDENTITY["Accept-Encoding"]:
        return
    coding = response.headers.get("content-encoding", "identity").lower()
    if coding not in ("identity", "gzip", "deflate"):
        raise OversizedError(f"the answer is compressed with {coding[:40]!r}, which the request excludes")
    response.stream = _limited(response.stream, MAX_BODY if coding == "identity" else MAX_COMPRESSED)


def _limited(stream: Any, limit: int) -> Any:
    """Return a response stream of httpx that raises an error after `limit` bytes or after the time in `ends_at`.

    httpx checks the class of a stream, so the class is derived from the base classes of `stream`.
    """
    names = ("SyncByteStream", "AsyncByteStream")
    bases = tuple(one for one in type(stream).__mro__ if one.__name__ in names)
    ends = ends_at.get()

    class Limited(*bases):  # type: ignore[misc]  # the base is known at run time
        def __iter__(self) -> Iterator[bytes]:
            meter = _Meter(limit, ends)
            for data in stream:
                meter.take(data)
                yield data

        async def __aiter__(self) -> AsyncIterator[bytes]:
            meter = _Meter(limit, ends)
            async for data in stream:
                meter.take(data)
                yield data

        def close(self) -> None:
            stream.close()

        async def aclose(self) -> None:
            await stream.aclose()

    return Limited()


class _Meter:
    """Limits the bytes of a body, the time until it has arrived, and the work of the parser that reads it (`MAX_WORK`).

    Args:
        limit: Maximum number of bytes.
        ends: The time (`time.monotonic`) until which the body must have arrived; None: no limit.
    """

    def __init__(self, limit: int, ends: float | None) -> None:
        self._limit = self._left = limit
        self._work = MAX_WORK
        self._ends = ends
        self._event = 0  # bytes of the unfinished server-sent event
        self._tail = b""  # its last bytes

    def take(self, data: bytes) -> None:
        """Count a piece of the body. Raises `OversizedError` or `LateError` if a limit is exceeded."""
        if self._ends is not None and time.monotonic() > self._ends:
            raise LateError("the answer takes too long")
        if len(data) > self._left:
            raise OversizedError(f"the answer has more than {self._limit:,} bytes")
        self._left -= len(data)
        parts = _BLANK_LINE.split(self._tail + data)
        self._event -= len(self._tail)
        for number, part in enumerate(parts):
            self._event = len(part) + (0 if number else self._event)
            self._work -= self._event * (1 + part.count(b"\n") + part.count(b"\r"))
        self._tail = parts[-1][-3:]
        if self._work < 0:
            raise OversizedError("an event of the answer has too many lines or pieces")


def _refuse(response: Any) -> None:
    _check(response)
    _bounded(response)


async def _arefuse(response: Any) -> None:
    _check(response)
    _bounded(response)


def keep_on_host(client: Any) -> bool:
    """Add a hook to an HTTP client that refuses redirects to another host and limits answers (see `_bounded`).

    The hook runs for each response before its redirect is followed, so nothing is sent to the other host. It stays in
    the client, so redirects are also refused for other users of the client. The clients that google-genai makes from
    this one get the hook, too. Returns False, and adds no hook, if the client has no `event_hooks`.
    """
    hooks = getattr(client, "event_hooks", None)
    if not isinstance(hooks, dict):
        return False
    hook = _arefuse if hasattr(client, "aclose") else _refuse
    found = hooks.setdefault("response", [])
    if hook not in found:
        found.append(hook)
    later = getattr(client, "_client_kwargs", None)  # google-genai makes other clients with these
    if isinstance(later, dict):
        given = dict(later.get("event_hooks") or {})
        if hook not in given.get("response", []):
            later["event_hooks"] = {**given, "response": [*given.get("response", []), hook]}
        for inner in _inner(client):
            keep_on_host(inner)
    return True


def _inner(client: Any) -> Iterator[Any]:
    clients = getattr(client, "_loop_clients", None)
    yield from list(clients.values()) if isinstance(clients, dict) else ()


class LoopClients:
    """One client for each event loop, since connections belong to the loop that opened them.

    The first loop has the client of the caller, other loops have copies of it with separate HTTP clients.

    Args:
        client: The client of the caller.
        copied: Returns a copy of the client with a separate HTTP client.
    """

    def __init__(self, client: Any, copied: Callable[[], Any]) -> None:
        self._client, self._copied = client, copied
        self._lock = threading.Lock()
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._used = False

    def here(self) -> Any:
        """Return the client of the running event loop; outside of event loops, the client of the caller.

        Raises:
            UnsupportedError: The running loop is not the first one, and the client cannot be copied because the caller
                passed an HTTP client to the SDK.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._client
        with self._lock:
            if loop not in self._by_loop:
                self._by_loop[loop] = self._copied() if self._used else self._client
                self._used = True
            return self._by_loop[loop]


def with_own_connections(client: Any) -> Any:
    """Return a copy of an asynchronous client of openai or anthropic that has a separate HTTP client.

    Raises:
        UnsupportedError: The caller passed an HTTP client to the SDK; its settings cannot be copied.
    """
    made = type(client._client)
    if made.__name__ != "AsyncHttpxClientWrapper":  # the SDK makes this class if the caller passes no http_client
        raise own_http_client()
    http = made(base_url=client.base_url, timeout=client.timeout)
    keep_on_host(http)
    return client.copy(http_client=http)


def shortened(timeout: Any, seconds: float) -> Any:
    """Return a timeout for an HTTP client in which no limit is longer than `seconds`.

    Args:
        timeout: The given timeout: a number, None (no limit), or a timeout of httpx with several limits.
        seconds: The maximum of each limit.
    """
    if timeout is None or isinstance(timeout, (int, float)):
        return seconds if timeout is None else min(timeout, seconds)
    names = ("connect", "read", "write", "pool")
    given = {name: getattr(timeout, name, None) for name in names}
    if not any(isinstance(value, (int, float)) for value in given.values()):
        return seconds
    return type(timeout)(**{name: seconds if value is None else min(value, seconds) for name, value in given.items()})


def own_http_client() -> UnsupportedError:
    """Return the error for a second event loop of a client whose HTTP client the caller made."""
    return UnsupportedError(
        "the HTTP client was passed to the SDK, and its connections belong to the event loop that used it first; make a"
        " client for each event loop, or let the SDK make the HTTP client"
    )
