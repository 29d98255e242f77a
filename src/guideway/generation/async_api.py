"""`agenerate` and its kin: the same as their namesakes, awaited. Calls that run at once share the model's rounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any

from guideway.generation.async_loop import Call, loop_of
from guideway.generation.options import Options
from guideway.generation.plan import Job
from guideway.generation.scheduler import Row
from guideway.generation.streams import PartialValue, only_values, pieces_of, values_of
from guideway.sessions import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["acomplete", "agenerate", "astream", "astream_values"]


async def agenerate(
    model: Model, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """As `generate`. Cancelling it takes its rows out of the batch."""
    return only_values(await acomplete(model, prompt, output, n=n, **options))


async def acomplete(
    model: Model, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """As `complete`."""
    job = await asyncio.to_thread(Job, model, prompt, output, n, options)
    async for _ in _rounds(job, job.finish_all):
        pass
    return job.shaped()


async def astream(
    model: Model, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> AsyncIterator[Any]:
    """As `stream`: pieces of text, or `TextChunk` for a list of prompts or with `n=`."""
    job = await asyncio.to_thread(Job, model, prompt, output, n, options)
    single = not job.many and n is None
    async for piece in _rounds(job, lambda moved: pieces_of(job, moved)):
        yield piece.text if single else piece


async def astream_values(
    model: Model, prompt: Any, output: object, **options: Unpack[Options]
) -> AsyncIterator[PartialValue[Any]]:
    """As `stream_values`."""
    job = await asyncio.to_thread(Job, model, prompt, output, None, options)
    growth = values_of(job)
    async for value in _rounds(job, lambda moved: growth.push(pieces_of(job, moved))):
        yield value
    yield growth.whole()


async def _rounds(job: Job, read: Callable[[list[Row]], Iterable[Any]]) -> AsyncIterator[Any]:
    """What `read` makes of the rows of each round, in the model's loop. Leaving early takes the rows out."""
    here = asyncio.get_running_loop()
    queue: asyncio.Queue[list[Any] | BaseException | None] = asyncio.Queue()

    def send(item: list[Any] | BaseException | None) -> None:
        try:
            here.call_soon_threadsafe(queue.put_nowait, item)
        except RuntimeError:  # whoever waited is gone, and its event loop too
            call.cancelled = True

    call = Call(job, lambda moved: send(list(read(moved))), send)
    loop_of(job.model).add(call)
    try:
        while (items := await queue.get()) is not None:
            if isinstance(items, BaseException):
                raise items
            for item in items:
                yield item
    finally:
        call.cancelled = True
