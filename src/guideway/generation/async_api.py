"""The async functions `agenerate`, `acomplete`, `aextract`, `astream`, `astream_values`.

They have the arguments, results and errors of the functions without "a", with these differences: `progress` has no
effect on a model that this library runs. `astream` and `astream_values` return async iterators without the attributes
of `Stream`, and check the arguments when the first item is requested. Concurrent calls of a model that this library
runs share its batches; cancelling the task of a call removes its sequences from the batch.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from guideway import background
from guideway.generation.async_loop import Call, loop_of
from guideway.generation.extraction import EXTRACTION_OPTIONS, ExtractionOptions, extraction_job
from guideway.generation.options import BaseOptions, Options, Prompt, Prompts, with_options
from guideway.generation.plan import GenerationRequest, Job
from guideway.generation.protocol import AnyModel, as_model_base, dispatched
from guideway.generation.results import Generation
from guideway.generation.scheduler import Row
from guideway.generation.streams import PartialValue, TextChunk, only_values, pieces_of, values_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar, Unpack

    from guideway.constraints import Constraint

    T = TypeVar("T", default=str)
    """The value type of the output; str without a constraint."""

__all__ = ["acomplete", "aextract", "agenerate", "astream", "astream_values", "results_of", "rounds_of"]


# fmt: off
@overload
async def agenerate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> T: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[T]: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[T]: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[list[T]]: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> T | None: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[T | None]: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[T | None]: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[list[T | None]]: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: bool = False, return_exceptions: Literal[True],
                    **options: Unpack[BaseOptions]) -> T | Exception | None: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: bool = False, return_exceptions: Literal[True],
                    **options: Unpack[BaseOptions]) -> list[T | Exception | None]: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: bool = False, return_exceptions: Literal[True],
                    **options: Unpack[BaseOptions]) -> list[T | Exception | None]: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: bool = False, return_exceptions: Literal[True],
                    **options: Unpack[BaseOptions]) -> list[list[T | Exception | None]]: ...
@overload
async def agenerate(model: AnyModel, prompt: Prompt | Prompts | GenerationRequest | Sequence[Prompt | GenerationRequest],
                    output: object = None, *, n: int | None = None, **options: Unpack[Options]) -> Any: ...
# fmt: on
@dispatched
@with_options()
async def agenerate(
    model: AnyModel, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """The async variant of `generate`.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        prompt: A str, a list of messages, a list of token ids or a `GenerationRequest`; or a list of those.
        output: A type or a constraint that the text must fit. None: free text.
        n: The number of values for each prompt. None: one value.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Returns:
        As `generate`.

    Raises:
        GuidewayError: As in `generate`.
        TypeError: As in `generate`.
        ValueError: As in `generate`.
    """
    return only_values(await results_of(await background.run(Job, as_model_base(model), prompt, output, n, options)))


# fmt: off
@overload
async def acomplete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> Generation[T]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[Generation[T]]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[Generation[T]]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[list[Generation[T]]]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> Generation[T | None]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[Generation[T | None]]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[Generation[T | None]]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                    **options: Unpack[BaseOptions]) -> list[list[Generation[T | None]]]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: bool = False, return_exceptions: Literal[True],
                    **options: Unpack[BaseOptions]) -> Generation[T | None] | Exception: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompt, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: bool = False, return_exceptions: Literal[True],
                    **options: Unpack[BaseOptions]) -> list[Generation[T | None] | Exception]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: None = None,
                    allow_truncation: bool = False, return_exceptions: Literal[True],
                    **options: Unpack[BaseOptions]) -> list[Generation[T | None] | Exception]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompts, output: type[T] | Constraint[T] | None = None, *, n: int,
                    allow_truncation: bool = False, return_exceptions: Literal[True],
                    **options: Unpack[BaseOptions]) -> list[list[Generation[T | None] | Exception]]: ...
@overload
async def acomplete(model: AnyModel, prompt: Prompt | Prompts | GenerationRequest | Sequence[Prompt | GenerationRequest],
                    output: object = None, *, n: int | None = None, **options: Unpack[Options]) -> Any: ...
# fmt: on
@dispatched
@with_options()
async def acomplete(
    model: AnyModel, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> Any:
    """The async variant of `complete`.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        prompt: A str, a list of messages, a list of token ids or a `GenerationRequest`; or a list of those.
        output: A type or a constraint that the text must fit. None: free text.
        n: The number of generations for each prompt. None: one generation.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Returns:
        As `complete`.

    Raises:
        GuidewayError: As in `complete`.
        TypeError: As in `complete`.
        ValueError: As in `complete`.
    """
    return await results_of(await background.run(Job, as_model_base(model), prompt, output, n, options))


# fmt: off
@overload
async def aextract(model: AnyModel, text: str, output: type[T] | Constraint[T], *,
                   allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                   **options: Unpack[ExtractionOptions]) -> T: ...
@overload
async def aextract(model: AnyModel, text: list[str], output: type[T] | Constraint[T], *,
                   allow_truncation: Literal[False] = False, return_exceptions: Literal[False] = False,
                   **options: Unpack[ExtractionOptions]) -> list[T]: ...
@overload
async def aextract(model: AnyModel, text: str, output: type[T] | Constraint[T], *,
                   allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                   **options: Unpack[ExtractionOptions]) -> T | None: ...
@overload
async def aextract(model: AnyModel, text: list[str], output: type[T] | Constraint[T], *,
                   allow_truncation: Literal[True], return_exceptions: Literal[False] = False,
                   **options: Unpack[ExtractionOptions]) -> list[T | None]: ...
@overload
async def aextract(model: AnyModel, text: str, output: type[T] | Constraint[T], *,
                   allow_truncation: bool = False, return_exceptions: Literal[True],
                   **options: Unpack[ExtractionOptions]) -> T | Exception | None: ...
@overload
async def aextract(model: AnyModel, text: list[str], output: type[T] | Constraint[T], *,
                   allow_truncation: bool = False, return_exceptions: Literal[True],
                   **options: Unpack[ExtractionOptions]) -> list[T | Exception | None]: ...
@overload
async def aextract(model: AnyModel, text: str | list[str], output: object, *,
                   allow_truncation: bool = False, return_exceptions: bool = False,
                   **options: Unpack[ExtractionOptions]) -> Any: ...
# fmt: on
@dispatched
@with_options(more=EXTRACTION_OPTIONS, typed=ExtractionOptions)
async def aextract(model: AnyModel, text: str | list[str], output: object, **options: Any) -> Any:
    """The async variant of `extract`.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        text: The text, or a list of texts.
        output: A Pydantic model, dataclass, TypedDict or another type, or a `JsonSchema`.
        **options: Generation options, see `guideway.generation.OPTIONS` and `EXTRACTION_OPTIONS`.

    Returns:
        The record; for a list of texts a list of records. With `allow_truncation`, None for a text that was cut. With
        `on_invalid="return"` and a Python type, the JSON data of a rejected record. With `return_exceptions`, the
        exception in place of a record that failed.

    Raises:
        GuidewayError: As in `extract`.
        TypeError: As in `extract`.
        ValueError: As in `extract`.
    """
    return only_values(
        await results_of(await background.run(extraction_job, as_model_base(model), text, output, options))
    )


# fmt: off
@overload
def astream(model: AnyModel, prompt: Prompt | GenerationRequest, output: object = None, *, n: None = None,
            **options: Unpack[Options]) -> AsyncIterator[str]: ...
@overload
def astream(model: AnyModel, prompt: Prompts | list[GenerationRequest], output: object = None, *,
            n: int | None = None, **options: Unpack[Options]) -> AsyncIterator[TextChunk]: ...
@overload
def astream(model: AnyModel, prompt: Prompt | GenerationRequest, output: object = None, *, n: int,
            **options: Unpack[Options]) -> AsyncIterator[TextChunk]: ...
# fmt: on
@dispatched
@with_options()
async def astream(
    model: AnyModel, prompt: Any, output: object = None, *, n: int | None = None, **options: Unpack[Options]
) -> AsyncIterator[Any]:
    """The async variant of `stream`.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        prompt: A str, a list of messages, a list of token ids or a `GenerationRequest`; or a list of those.
        output: A type or a constraint that the text must fit. None: free text.
        n: The number of texts for each prompt. None: one.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Returns:
        An async iterator of str; for a list of prompts, or with `n`, of `TextChunk`. The arguments are checked when the
        first item is requested.

    Raises:
        GuidewayError: As in `stream`.
        TypeError: As in `stream`.
        ValueError: As in `stream`.
    """
    job = await background.run(Job, as_model_base(model), prompt, output, n, options)
    single = not job.many and n is None
    async for piece in rounds_of(job, lambda moved: pieces_of(job, moved)):
        yield piece.text if single else piece


# fmt: off
@overload
def astream_values(model: AnyModel, prompt: Prompt | GenerationRequest, output: type[T] | Constraint[T],
                   **options: Unpack[Options]) -> AsyncIterator[PartialValue[T]]: ...
@overload
def astream_values(model: AnyModel, prompt: Prompt | GenerationRequest, output: object,
                   **options: Unpack[Options]) -> AsyncIterator[PartialValue[Any]]: ...
# fmt: on
@dispatched
@with_options()
async def astream_values(
    model: AnyModel, prompt: Any, output: object, **options: Unpack[Options]
) -> AsyncIterator[PartialValue[Any]]:
    """The async variant of `stream_values`.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        prompt: One prompt.
        output: A type, a `JsonSchema`, a `Reasoning` or `ToolCalls`.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Returns:
        An async iterator of `PartialValue`; the last one has the whole value. The arguments are checked when the first
        item is requested.

    Raises:
        GuidewayError: As in `stream_values`.
        TypeError: As in `stream_values`.
        ValueError: As in `stream_values`.
    """
    job = await background.run(Job, as_model_base(model), prompt, output, None, options)
    if job.many:
        raise TypeError("a stream of values takes one prompt, not a list")
    growth = values_of(job)
    async for value in rounds_of(job, lambda moved: growth.push(pieces_of(job, moved))):
        yield value
    yield growth.whole()


async def results_of(job: Job) -> Any:
    """Run a job in the model's shared loop. Returns its results as `Job.shaped`."""
    async for _ in rounds_of(job, job.finish_all):
        pass
    return job.shaped()


async def rounds_of(job: Job, read: Callable[[list[Row]], Iterable[Any]]) -> AsyncIterator[Any]:
    """Run a job in the model's shared loop. Yields the items that `read` returns for the rows of each round.

    `read` is called in the thread of the loop. For finished rows with a constraint and without `retries`, it is usually
    called in other threads, so calls for different rows can run at the same time. Closing the generator early removes
    the rows from the loop. Raises the errors of the rows, of `read` and of the engine.
    """
    here = asyncio.get_running_loop()
    queue: asyncio.Queue[list[Any] | BaseException | None] = asyncio.Queue()

    guard = threading.Lock()
    reading = 0  # the number of calls of `finish` that have not ended
    ends: list[BaseException | None] = []  # what `done` received before these calls had ended

    outbox = loop_of(job.model).outbox

    def send(item: list[Any] | BaseException | None) -> None:
        outbox.call(here, lambda: queue.put_nowait(item), lost)

    def lost() -> None:
        """The event loop of the caller is closed."""
        call.cancelled = True

    def moved(rows: list[Row]) -> None:
        nonlocal reading
        over = [row for row in rows if row.is_over and job.has_values(row)]
        if (rest := [row for row in rows if row not in over]) and (items := list(read(rest))):
            send(items)
        if not over:
            return
        with guard:
            reading += 1
        try:
            background.submit(lambda: finish(over))
        except RuntimeError:  # no thread can be started
            finish(over)

    def finish(rows: list[Row]) -> None:
        """Send what `read` returns for finished rows.

        This runs in another thread if possible, because making the values can take long.
        """
        nonlocal reading
        try:
            send(list(read(rows)))
        except BaseException as error:
            call.cancelled = True
            send(error)
        with guard:
            reading -= 1
            last = [] if reading else list(ends)
        for end in last:
            send(end)

    def done(error: BaseException | None) -> None:
        with guard:
            if reading:
                ends.append(error)
                return
        send(error)

    call = Call(job, moved, done)
    loop_of(job.model).add(call)
    try:
        while (items := await queue.get()) is not None:
            if isinstance(items, BaseException):
                raise items
            for item in items:
                yield item
    finally:
        call.cancelled = True
