"""The steps of a conversation: replies of the model, and calls of Python functions.

A generator yields the steps of a turn. `drive` and `adrive` run them; `pieces` and `apieces` also yield the text of
replies.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar, cast

from guideway import background
from guideway.arguments import short_repr
from guideway.constraints import ToolCalls
from guideway.constraints.tools import ToolCall
from guideway.generation.async_api import results_of, rounds_of
from guideway.generation.options import Options
from guideway.generation.plan import Job
from guideway.generation.protocol import GeneratingModel
from guideway.generation.results import Generation
from guideway.generation.streams import moving, pieces_of, run, values_of
from guideway.sessions import ModelBase, Session

__all__ = [
    "CallTool",
    "ModelReply",
    "RemoteReply",
    "Step",
    "Steps",
    "adrive",
    "apieces",
    "drive",
    "pieces",
    "tool_result",
]

T = TypeVar("T")

MAX_ERROR = 2000
"""The maximum number of characters of an exception in a tool result."""


class Step(Protocol):
    """One step: a reply, or the call of a function.

    `run` and `arun` return the result. `stream` and `astream` yield the text in chunks, or growing values if `values`;
    afterwards `result` is the result. `shown`: whether a stream of the turn includes this step.
    """

    shown: bool

    def run(self) -> Any: ...

    async def arun(self) -> Any: ...

    def stream(self, values: bool) -> Iterator[Any]: ...

    def astream(self, values: bool) -> AsyncIterator[Any]: ...

    @property
    def result(self) -> Any: ...


Steps = Generator[Step, Any, T]


class ModelReply:
    """A reply of a model that this library runs, after the tokens of a session."""

    def __init__(
        self, model: ModelBase, session: Session, output: object, options: Mapping[str, Any], *, shown: bool = True
    ) -> None:
        self._arguments = model, session, output, dict(options)
        self.shown = shown
        self._job: Job | None = None

    def _made(self) -> Job:
        model, session, output, options = self._arguments
        self._job = Job(model, "", output, None, cast(Options, options), session=session)
        return self._job

    def run(self) -> Generation[Any]:
        found: Generation[Any] = run(self._made())
        return found

    async def arun(self) -> Generation[Any]:
        found: Generation[Any] = await results_of(await background.run(self._made))
        return found

    def stream(self, values: bool) -> Iterator[Any]:
        job = self._made()
        growth = values_of(job) if values else None
        for moved in moving(job):
            chunks = pieces_of(job, moved)
            yield from (chunk.text for chunk in chunks) if growth is None else growth.push(chunks)
        if growth is not None:
            yield growth.whole()

    async def astream(self, values: bool) -> AsyncIterator[Any]:
        job = await background.run(self._made)
        growth = values_of(job) if values else None
        read: Callable[..., Any] = (
            (lambda moved: [chunk.text for chunk in pieces_of(job, moved)])
            if growth is None
            else (lambda moved: growth.push(pieces_of(job, moved)))
        )
        async for item in rounds_of(job, read):
            yield item
        if growth is not None:
            yield growth.whole()

    @property
    def result(self) -> Generation[Any]:
        if self._job is None:
            raise RuntimeError("the step was not run")
        found: Generation[Any] = self._job.shaped()
        return found


class RemoteReply:
    """A reply of a `GeneratingModel`."""

    shown = True

    def __init__(self, model: GeneratingModel, messages: list[dict[str, Any]], output: object, options: Any) -> None:
        self._model, self._arguments, self._options = model, (messages, output), dict(options)
        self._result: Any = None

    def run(self) -> Any:
        self._result = self._model.complete(*self._arguments, **self._options)
        return self._result

    async def arun(self) -> Any:
        self._result = await self._model.acomplete(*self._arguments, **self._options)
        return self._result

    def stream(self, values: bool) -> Iterator[Any]:
        if values:
            raise TypeError("a chat with a model served by an API streams text, not values")
        stream: Any = self._model.stream(*self._arguments, **self._options)
        yield from stream
        self._result = stream.results

    async def astream(self, values: bool) -> AsyncIterator[Any]:
        if values:
            raise TypeError("a chat with a model served by an API streams text, not values")
        # `GeneratingModel.astream` yields only text and gives no result, but `result` must return one
        found = await self.arun()
        yield found.text

    @property
    def result(self) -> Any:
        return self._result


class CallTool:
    """The call of the function of a tool. The result is the content of the message for the model.

    `raises`: whether an exception of the function is raised; otherwise the content is "Error: " with its class and
    message. `special`: as in `tool_result`.
    """

    shown = False

    def __init__(self, tools: ToolCalls, call: ToolCall, *, raises: bool, special: tuple[str, ...]) -> None:
        self._function = next((one.function for one in tools.tools if one.name == call.name), None)
        self._call, self._raises, self._special = call, raises, special
        self._content = ""

    def run(self) -> str:
        try:
            value = self._called()
            if inspect.isawaitable(value):
                if inspect.iscoroutine(value):
                    value.close()
                raise TypeError(f"the function of the tool {short_repr(self._call.name)} is async: use Chat.arun")
        except Exception as error:
            return self._failed(error)
        return self._finished(value)

    async def arun(self) -> str:
        try:
            if inspect.iscoroutinefunction(self._function):
                value = await self._called()
            else:
                value = await asyncio.to_thread(self._called)
                value = await value if inspect.isawaitable(value) else value
        except Exception as error:
            return self._failed(error)
        return self._finished(value)

    def _called(self) -> Any:
        if self._function is None:
            raise ValueError(f"the tool {short_repr(self._call.name)} has no function")
        arguments = self._call.arguments
        return self._function(**arguments) if isinstance(arguments, dict) else self._function(arguments)

    def _failed(self, error: Exception) -> str:
        if self._raises:
            raise error
        try:
            text = f"{type(error).__name__}: {error}"
        except Exception:  # `__str__` of the user's exception failed
            text = type(error).__name__
        return self._finished(f"Error: {text[:MAX_ERROR]}")

    def _finished(self, value: object) -> str:
        self._content = tool_result(value, self._special)
        return self._content

    def stream(self, values: bool) -> Iterator[Any]:
        self.run()
        return iter(())

    async def astream(self, values: bool) -> AsyncIterator[Any]:
        await self.arun()
        nothing: tuple[Any, ...] = ()
        for one in nothing:
            yield one

    @property
    def result(self) -> str:
        return self._content


def tool_result(value: object, special: tuple[str, ...] = ()) -> str:
    """Return the result of a function as the text of a message.

    A str is used as it is. Other values are written as JSON, or with `str` if that fails. Then a zero-width space is
    inserted after the first character of each marker of the template, so that a result cannot end its message or begin
    another one.

    Args:
        value: The value.
        special: The markers: names of special tokens, and texts such as "<tool_call>".
    """
    text = value if isinstance(value, str) else _as_json(value)
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate becomes "?"
    for name in special:
        if name in text:
            text = text.replace(name, f"{name[:1]}\u200b{name[1:]}")
    return text


def _as_json(value: object) -> str:
    from pydantic_core import to_jsonable_python

    try:
        return json.dumps(to_jsonable_python(value, by_alias=True), ensure_ascii=False, allow_nan=False)
    except Exception:  # methods of the user's objects may raise anything
        pass
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


class _Turn(Generic[T]):
    """The steps of a turn while they run. The end of the `with` block closes the generator of the steps.

    Attributes:
        sent: The result of the last step.
        value: The value of the turn. It is set after the last step.
    """

    value: T

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self.sent: Any = None

    def __enter__(self) -> _Turn[T]:
        return self

    def __exit__(self, *error: object) -> None:
        self._steps.close()

    def next(self) -> Step | None:
        """Return the next step; None: there is none."""
        try:
            return self._steps.send(self.sent)
        except StopIteration as end:
            self.value = end.value
            return None


def drive(steps: Steps[T]) -> T:
    """Run the steps. Returns the value of the turn."""
    with _Turn(steps) as turn:
        while step := turn.next():
            turn.sent = step.run()
    return turn.value


async def adrive(steps: Steps[T]) -> T:
    """The async variant of `drive`."""
    with _Turn(steps) as turn:
        while step := turn.next():
            turn.sent = await step.arun()
    return turn.value


def pieces(steps: Steps[T], *, values: bool = False) -> Generator[Any, None, T]:
    """Run the steps, and yield the text of their replies, or their growing values. Returns the value of the turn."""
    with _Turn(steps) as turn:
        while step := turn.next():
            if step.shown:
                yield from step.stream(values)
                turn.sent = step.result
            else:
                turn.sent = step.run()
    return turn.value


async def apieces(steps: Steps[T], *, values: bool = False) -> AsyncIterator[Any]:
    """The async variant of `pieces`. It does not return the value of the turn."""
    with _Turn(steps) as turn:
        while step := turn.next():
            if step.shown:
                async for item in step.astream(values):
                    yield item
                turn.sent = step.result
            else:
                turn.sent = await step.arun()
