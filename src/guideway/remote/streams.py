"""Runs dialogues: opens streams of an SDK in a thread or an event loop, and closes them also after errors and cancellation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from guideway.errors import GuidewayError
from guideway.remote.adapters import Adapter, Request
from guideway.remote.adapters.base import get
from guideway.remote.dialogue import Dialogue
from guideway.remote.usage import RateLimit

__all__ = ["arun", "ask", "run"]

T = TypeVar("T")


_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []  # the shared loop, once it is needed


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
    """Run a coroutine in the shared loop. An interrupt of the caller cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _estimate(request: Request) -> int:
    return sum(len(str(one.get("content", ""))) for one in request.messages) // 4 + request.max_tokens


def run(adapter: Adapter, dialogue: Dialogue, limit: RateLimit, provider: str, *, shown: bool = False) -> Iterator[str]:
    """Run a dialogue from a thread. Yields the text that may be shown."""
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
            with limit.slot(_estimate(request)):
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
        stream = method(**arguments)
        opened = True
        limit.observe(get(stream, "response", "headers"))
        if not hasattr(stream, "__iter__"):
            dialogue.take(adapter.whole(stream))
        else:
            for chunk in stream:
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


def ask(adapter: Adapter, request: Request, kind: str, option: str, limit: RateLimit, provider: str) -> Any:
    """Return the answer with log-probabilities to one request that is not streamed. See `Adapter.logprobs_call`.

    Raises:
        RemoteError: The endpoint failed.
    """
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
    """Obey the headers of an answer with an error. `problem`: the exception of the SDK."""
    limit.observe(get(problem, "response", "headers"))
    seconds = getattr(error, "retry_after", None)
    if isinstance(seconds, float):
        limit.pause(seconds)


def _quietly(close: Callable[[], None]) -> None:
    """Close a stream. An error of closing does not hide the outcome."""
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
) -> AsyncIterator[str]:
    """Run a dialogue from an event loop. Yields the text that may be shown. Cancellation closes the connection."""
    try:
        while (request := dialogue.request()) is not None:
            async with limit.aslot(_estimate(request)):
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
        if not adapter.runs_async:
            stream = await asyncio.to_thread(method, **arguments)
            chunks: AsyncIterator[Any] | None = _threaded(iter(stream))
        else:
            stream = method(**arguments)
            if hasattr(stream, "__await__"):
                stream = await stream
            chunks = aiter(stream) if hasattr(stream, "__aiter__") else None
        opened = True
        limit.observe(get(stream, "response", "headers"))
        if chunks is None:
            dialogue.take(adapter.whole(stream))
        else:
            async for chunk in chunks:
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
            except Exception:  # an error of closing does not hide the outcome
                pass
    await _judged(dialogue)


async def _judged(dialogue: Dialogue, error: Exception | None = None) -> None:
    """End a request. A formatter runs a model, so it runs in a thread."""
    if dialogue.has_formatter:
        await asyncio.to_thread(dialogue.ended, error)
    else:
        dialogue.ended(error)


async def _threaded(chunks: Iterator[Any]) -> AsyncIterator[Any]:
    """Yield the items of a synchronous iterator. Each is awaited in a thread, so the event loop is not blocked."""
    end = object()
    while (chunk := await asyncio.to_thread(next, chunks, end)) is not end:
        yield chunk
