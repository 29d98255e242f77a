"""Reads the bodies of requests. Limits their size, the time in which they arrive and, for JSON, the nesting."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guideway import background
from guideway.arguments import short_repr
from guideway.batch.reading import strict_loads
from guideway.errors import InvalidRequestError
from guideway.jsontext.tokens import is_deeper
from guideway.server.errors import HttpError
from guideway.server.settings import ServerSettings
from guideway.server.sse import ClientLeft

__all__ = ["TimelyBodies", "read_bytes", "read_json", "read_json_and_size"]

_LONG = 1 << 16  # bytes; longer bodies are decoded in another thread

_LEAST_RATE = 1 << 14
"""The number of bytes that extend the time for a body by one second."""


class TimelyBodies:
    """Middleware that limits the time in which the body of a request arrives. The ASGI server has no such limit.

    A client that sends more slowly would keep its place among the running requests. `receive` raises an `HttpError` (408)
    for it. The connection is closed after the answer, because the rest of the body may still come.

    Args:
        app: The application.
        seconds: The time for which the calls of `receive` may wait, in total. It is extended for the bytes that arrive
            (`_LEAST_RATE`). Time between the calls is that of the server, and does not count.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = self._seconds
        has_arrived = scope["type"] != "http"

        async def receiving() -> Message:
            nonlocal left, has_arrived
            if has_arrived:
                return await receive()
            loop = asyncio.get_running_loop()
            begun, waiting = loop.time(), asyncio.ensure_future(receive())
            try:
                await asyncio.wait({waiting}, timeout=left)  # unlike `wait_for`, it takes data that is ready at the end
                if not waiting.done():
                    raise _too_slow()
            finally:
                waiting.cancel()
            message = waiting.result()
            left = max(left - (loop.time() - begun), 0) + len(message.get("body", b"")) / _LEAST_RATE
            has_arrived = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        await self._app(scope, receiving, send)


async def read_bytes(scope: Scope, receive: Receive, most: int) -> bytes:
    """Return the body of a request.

    Raises:
        HttpError: The body has more than `most` bytes (413).
        ClientLeft: The client disconnected.
    """
    given = Headers(scope=scope).get("content-length", "")
    if given.isascii() and given.isdigit() and (len(given) >= 20 or int(given) > most):
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return b"".join(parts)


async def read_json(scope: Scope, receive: Receive, settings: ServerSettings) -> dict[str, Any]:
    """Return the JSON object of a body. The errors are those of `read_json_and_size`."""
    return (await read_json_and_size(scope, receive, settings))[0]


async def read_json_and_size(scope: Scope, receive: Receive, settings: ServerSettings) -> tuple[dict[str, Any], int]:
    """Return the JSON object of a body, and the number of bytes that were received.

    Raises:
        HttpError: The body is too large (413), or is not declared as JSON (415).
        InvalidRequestError: The body is not a JSON object, or is nested too deeply.
        ClientLeft: The client disconnected.
    """
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpError(
            415,
            f"the content type must be application/json, got {short_repr(kind or 'none')}; send the header"
            " 'Content-Type: application/json'",
            code="unsupported_media_type",
        )
    data = await read_bytes(scope, receive, settings.max_body_bytes)
    if len(data) > _LONG:
        return await background.run(_decoded, data, settings.max_body_depth), len(data)
    return _decoded(data, settings.max_body_depth), len(data)


def _decoded(data: bytes, deepest: int) -> dict[str, Any]:
    try:
        text = data.decode()
        if is_deeper(text, deepest):
            raise InvalidRequestError(f"the body is nested deeper than {deepest} levels", "", "invalid_json")
        found = strict_loads(text)
    except InvalidRequestError:
        raise
    except ValueError as error:
        raise InvalidRequestError(f"the body is not JSON: {error}", "", "invalid_json") from None
    if not isinstance(found, dict):
        raise InvalidRequestError(f"the body must be a JSON object, got {type(found).__name__}", "", "invalid_type")
    return found


def _too_slow() -> HttpError:
    message = "the body did not arrive in time; send it faster, or raise --body-seconds of the server"
    return HttpError(408, message, code="request_timeout", headers={"Connection": "close"})


def _too_large(most: int) -> HttpError:
    return HttpError(413, f"the body is larger than {most} bytes", code="body_too_large")
