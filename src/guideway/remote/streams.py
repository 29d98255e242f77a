"""Runs a `Dialogue` (the requests for one result) in a thread or an event loop. Its streams are always closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import contextmanager
from typing import Any, TypeVar

from guideway.errors import GuidewayError
from guideway.remote.adapters import Adapter, Request
from guideway.remote.adapters.base import get
from guideway.remote.adapters.http import ends_at
from guideway.remote.dialogue import Dialogue
from guideway.remote.usage import RateLimit

__all__ = ["arun", "ask", "run"]

T = TypeVar("T")


_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []  # empty, or the one loop that `_loop` has started


def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that serves calls from threads to asynchronous clients."""
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            try:
                threading.Thread(target=loop.run_forever, name="guideway-remote", daemon=True).start()
            except RuntimeError:  # the system refuses threads
                loop.close()
                raise
            _loops.append(loop)
        return _loops[0]


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the loop of `_loop` and return its result. An interrupt of the calling thread cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _estimate(request: Request) -> int:
    return sum(len(str(one.get("content", ""))) for one in request.messages) // 4 + request.max_tokens


def run(
    adapter: Adapter, dialogue: Dialogue, limit: RateLimit, provider: str, *, shown: bool = False
) -> Generator[str, None, None]:
    """Run a `Dialogue` from a thread. Yields its valid text while it arrives if `shown`, otherwise nothing."""
    if not adapter.runs_sync:
        work = arun(adapter, dialogue, limit, provider, shown=shown)
        try:
            while (text := _wait(_next(work))) is not None:
                yield text
        finally:
            _wait(_ended(work))
        return
    try:
        while (request := dialogue.request()) is not None:
            with limit.slot(_estimate(request), dialogue.ends):
                yield from _one(adapter, dialogue, request, limit, provider, shown)
            if shown and (text := dialogue.shown()):
                yield text
    finally:
        dialogue.cancelled()


def _one(
    adapter: Adapter, dialogue: Dialogue, request: Request, limit: RateLimit, provider: str, shown: bool
) -> Iterator[str]:
    stream, opened = None, False
    try:
        method, arguments = adapter.call(request, asynchronous=False)
        with _until(dialogue.ends):
            stream = method(**arguments)
        opened = True
        limit.observe(get(stream, "response", "headers"))
        if _is_whole(stream):
            dialogue.take(adapter.whole(stream))
        else:
            for chunk in _timed(stream, dialogue.ends):
                if dialogue.take(adapter.events(chunk)):
                    break
                if shown and (text := dialogue.shown()):
                    yield text
    except Exception as problem:
        error = adapter.unreadable(problem, provider) if opened else adapter.error(problem, provider)
        _paused(limit, error, problem)
        dialogue.ended(error)
        return
    finally:
        if stream is not None:
            _quietly(lambda: adapter.close(stream))
    dialogue.ended()


def _is_whole(answer: Any) -> bool:
    """Return whether an answer is not a stream: it has `choices`, or it cannot be iterated.

    The second test alone is not enough: an answer that is a dict or a pydantic object can be iterated.
    """
    return get(answer, "choices") is not None or not (hasattr(answer, "__iter__") or hasattr(answer, "__aiter__"))


@contextmanager
def _until(ends: float | None) -> Iterator[None]:
    """Set `ends_at` for the requests in a block: their answers must have arrived by this time; None: no limit."""
    token = ends_at.set(ends)
    try:
        yield
    finally:
        ends_at.reset(token)


def _timed(chunks: Iterable[Any], ends: float | None) -> Iterator[Any]:
    """Yield the chunks.

    `ends_at` is set while each one is read, because some SDKs send the request at the first read.
    """
    if ends is None:
        yield from chunks
        return
    items, end = iter(chunks), object()
    while True:
        with _until(ends):
            chunk = next(items, end)
        if chunk is end:
            return
        yield chunk


async def _atimed(chunks: AsyncIterable[Any], ends: float | None) -> AsyncIterator[Any]:
    """Do the same as `_timed` in an event loop."""
    items, end = aiter(chunks), object()
    while True:
        with _until(ends):
            chunk = await anext(items, end)
        if chunk is end:
            return
        yield chunk


async def _in_thread(adapter: Adapter, method: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Open a stream in a thread. If the caller is cancelled meanwhile, the stream is closed as soon as it is open."""
    lock, found, cancelled = threading.Lock(), [], False

    def open_stream() -> Any:
        stream = method(**arguments)
        with lock:
            found.append(stream)
            if cancelled:
                _quietly(lambda: adapter.close(stream))
        return stream

    try:
        return await asyncio.to_thread(open_stream)
    except asyncio.CancelledError:
        with lock:
            cancelled = True
            for stream in found:
                _quietly(lambda stream=stream: adapter.close(stream))  # type: ignore[misc]  # bound for the linter
        raise


def ask(adapter: Adapter, request: Request, kind: str, option: str, limit: RateLimit, provider: str) -> Any:
    """Send one request for log-probabilities, not streamed, and return the answer. See `Adapter.logprobs_call`.

    Raises:
        RemoteError: The endpoint failed.
    """
    # Only an error is reported to `limit`: the SDK returns the parsed body of an answer, without the headers.
    try:
        with limit.slot(_estimate(request)):
            if adapter.runs_sync:
                method, arguments = adapter.logprobs_call(request, kind, option)
                return method(**arguments)

            async def call() -> Any:
                method, arguments = adapter.logprobs_call(request, kind, option)
                return await method(**arguments)

            return _wait(call())
    except GuidewayError:
        raise
    except Exception as problem:
        error = adapter.unreadable(problem, provider)
        _paused(limit, error, problem)
    raise error


def _paused(limit: RateLimit, error: Exception, problem: Exception) -> None:
    """Pass to `limit` what an error response says: how many requests and tokens are left, and how long to wait.

    `problem` is the exception of the SDK; the headers of its response are read. `error` is the error of Guideway for
    it; its `retry_after` is the time to wait.
    """
    limit.observe(get(problem, "response", "headers"))
    seconds = getattr(error, "retry_after", None)
    if isinstance(seconds, float):
        limit.pause(seconds)


def _quietly(close: Callable[[], None]) -> None:
    """Call `close` and suppress its exceptions, so that they do not replace the result or the error of the request."""
    try:
        close()
    except Exception:
        return


async def _next(work: AsyncIterator[str]) -> str | None:
    return await anext(work, None)


async def _ended(work: Any) -> None:
    await work.aclose()


async def arun(
    adapter: Adapter, dialogue: Dialogue, limit: RateLimit, provider: str, *, shown: bool = False
) -> AsyncGenerator[str, None]:
    """Do the same as `run` from an event loop. Cancellation closes the connection."""
    try:
        while (request := dialogue.request()) is not None:
            async with limit.aslot(_estimate(request), dialogue.ends):
                pieces = _aone(adapter, dialogue, request, limit, provider, shown)
                try:
                    async for text in pieces:
                        yield text
                finally:
                    await pieces.aclose()
            if shown and (text := dialogue.shown()):
                yield text
    finally:
        dialogue.cancelled()


async def _aone(
    adapter: Adapter, dialogue: Dialogue, request: Request, limit: RateLimit, provider: str, shown: bool
) -> Any:
    stream: Any = None
    opened = False
    try:
        method, arguments = adapter.call(request, asynchronous=adapter.runs_async)
        with _until(dialogue.ends):
            stream = method(**arguments) if adapter.runs_async else await _in_thread(adapter, method, arguments)
            if hasattr(stream, "__await__"):
                stream = await stream
        opened = True
        limit.observe(get(stream, "response", "headers"))
        if _is_whole(stream):
            dialogue.take(adapter.whole(stream))
        else:
            chunks = stream if adapter.runs_async else _threaded(iter(stream))
            async for chunk in _atimed(chunks, dialogue.ends):
                if dialogue.take(adapter.events(chunk)):
                    break
                if shown and (text := dialogue.shown()):
                    yield text
    except Exception as problem:
        error = adapter.unreadable(problem, provider) if opened else adapter.error(problem, provider)
        _paused(limit, error, problem)
        await _judged(dialogue, error)
        return
    finally:
        if stream is not None:
            try:
                if adapter.runs_async:
                    await adapter.aclose(stream)
                else:
                    adapter.close(stream)
            except Exception:  # must not replace the result or the error of the request
                pass
    await _judged(dialogue)


async def _judged(dialogue: Dialogue, error: Exception | None = None) -> None:
    """Call `dialogue.ended`: in a thread if the dialogue has a formatter, because the formatter is a local model."""
    if dialogue.has_formatter:
        await asyncio.to_thread(dialogue.ended, error)
    else:
        dialogue.ended(error)


async def _threaded(chunks: Iterator[Any]) -> AsyncIterator[Any]:
    """Yield the items of a synchronous iterator. Each one is read in a thread, so the event loop is not blocked."""
    end = object()
    while (chunk := await asyncio.to_thread(next, chunks, end)) is not end:
        yield chunk
