"""Requests for models that another endpoint serves. A plan says how the constraint is sent; the answer is checked.

`UpstreamRequest` has the interface of `ServedRequest`, so the endpoints of the server treat both classes alike. A text
that does not fit the constraint, and is not repaired, fails the request. An answer that the other endpoint truncated
is returned with `finish_reason` "length"; it need not fit.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from guideway.arguments import short_repr
from guideway.batch.jobs import merged_options
from guideway.batch.requests import BatchRequest
from guideway.errors import (
    AuthenticationError,
    InvalidRequestError,
    InvalidTextError,
    MissingDependencyError,
    ModelNotFoundError,
    RateLimitError,
    RefusalError,
)
from guideway.loading import is_remote, load, sdk_client
from guideway.remote import RemoteGeneration, RemoteModel, remote
from guideway.server.errors import HttpError
from guideway.server.models import ModelCard, ServedModels, known_name
from guideway.server.running import Part

__all__ = ["JoinedModels", "UpstreamJob", "UpstreamModels", "UpstreamRequest", "upstream_job", "upstream_models"]

_OPTIONS = {"max_tokens", "temperature", "top_p", "seed", "stop"}
"""Generation options that are passed on to the other endpoint. Others are refused."""

_MOST_MODELS = 64
"""Maximum number of `RemoteModel` objects of an endpoint that are cached, with the plans of their constraints."""


@dataclass
class UpstreamJob:
    """A request for a remote model: its prompts, its constraint and its options.

    Attributes:
        model: The model.
        prompts: The prompts.
        output: The constraint; None: free text.
        options: Generation options.
        seeds: The seed of each prompt; empty if the request has no seed.
        n: The number of texts for each prompt; None: one.
        results: The results of each prompt; None in the place of a text that is not complete.
    """

    model: RemoteModel
    prompts: list[Any]
    output: Any
    options: dict[str, Any]
    seeds: list[int]
    n: int | None
    results: list[list[Any]] = field(default_factory=list)


def upstream_job(model: RemoteModel, request: BatchRequest, call: Mapping[str, Any]) -> UpstreamJob:
    """Return the job of a request for a remote model. Its constraint is planned, but no request is made.

    Args:
        model: The model.
        request: The request.
        call: Generation options of the server, for requests that do not set them.

    Raises:
        InvalidRequestError: The request has a field that has no effect on a remote model.
        ConstraintError: The constraint is not valid, or no route has the guarantee that the model requires.
    """
    if request.details.get("effort") is not None:
        raise InvalidRequestError(
            "the reasoning effort is not passed on to the endpoint; omit it",
            "reasoning_effort",
            "unsupported_parameter",
        )
    if request.details.get("tools"):
        raise InvalidRequestError(
            "tools are not supported for a model served by an API; describe the call as a JSON Schema in"
            " 'response_format'",
            "tools",
            "unsupported_parameter",
        )
    options = merged_options(model, request, call)
    options.pop("batch_size", None)
    if wrong := sorted(set(options) - _OPTIONS):
        raise InvalidRequestError(
            f"{wrong[0]!r} has no effect on a model served by an API; omit it", wrong[0], "unsupported_parameter"
        )
    prompts = request.prompts()
    if (instructions := request.details.get("instructions")) is not None:
        prompts = [[{"role": "system", "content": instructions}, *one] for one in prompts]
    if any(isinstance(one, list) and one and isinstance(one[0], int) for one in prompts):
        raise InvalidRequestError(
            "a model served by an API takes texts, not token ids", "prompt", "unsupported_parameter"
        )
    model.check(prompts[0], request.output, **options)
    seeds = [request.seed(part) for part in range(len(prompts))] if "seed" in request.options else []
    job = UpstreamJob(model, prompts, request.output, options, seeds, request.n)
    job.results = [[None] * (request.n or 1) for _ in prompts]
    return job


class UpstreamRequest:
    """A job that runs at another endpoint. It has the interface of `ServedRequest`.

    Args:
        job: The job.
        streams: Whether `parts` yields the text while it arrives; False: only `results` is used.
    """

    def __init__(self, job: UpstreamJob, *, streams: bool) -> None:
        self.job = job
        self.begun = time.perf_counter()
        self.first: float | None = None
        # Text that was sent to the client cannot be replaced, but a formatter (a local model that writes wrong answers
        # again) may replace text. So with a formatter each text is sent as one part, at its end.
        self._shows = streams and (job.output is None or not job.model.has_formatter)
        self._streams = streams
        self._parts: asyncio.Queue[Part | BaseException | None] = asyncio.Queue()
        n = job.n or 1
        self._tasks = [
            asyncio.ensure_future(self._run(number, sample))
            for number in range(len(job.prompts))
            for sample in range(n)
        ]
        self._left = len(self._tasks)

    def cancel(self) -> None:
        """End the request and close its connections."""
        for task in self._tasks:
            task.cancel()
        if self._left:
            self._left = 0
            self.poke()  # ends `parts`, if it is waiting

    def poke(self) -> None:
        """Make `parts` yield an empty list after the waiting parts, or end if no request is left."""
        self._parts.put_nowait(None)

    async def parts(self) -> AsyncGenerator[list[Part], None]:
        """Yield the parts of the answers as they arrive, each in a separate list; an empty list after `poke`.

        Raises:
            Exception: The error of an answer, as `_for_client` returns it.
        """
        try:
            while self._left or not self._parts.empty():
                part = await self._parts.get()
                if isinstance(part, BaseException):
                    raise part
                if part is None:
                    yield []
                elif self._streams:
                    yield [part]
        finally:
            self.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def results(self) -> list[list[Any]]:
        """Wait for the end, and return the results of each prompt."""
        async for _ in self.parts():
            pass
        return self.job.results

    async def _run(self, number: int, sample: int) -> None:
        job = self.job
        index = number * (job.n or 1) + sample
        options = dict(job.options, allow_truncation=True)
        if job.seeds:
            options["seed"] = job.seeds[number]
        try:
            parts = job.model.astream_result(
                job.prompts[number],
                job.output,
                sample=None if job.n is None else sample,
                shown=self._shows,
                **options,
            )
            async for part in parts:
                if self.first is None:
                    self.first = time.perf_counter() - self.begun
                if isinstance(part, RemoteGeneration):
                    job.results[number][sample] = part
                    self._left = max(0, self._left - 1)
                    self._parts.put_nowait(Part(index, "" if self._shows else part.text, (), part))
                else:
                    self._parts.put_nowait(Part(index, part))
        except Exception as error:
            self._left = max(0, self._left - 1)
            self._parts.put_nowait(_for_client(error))


def _for_client(error: Exception) -> Exception:
    """Return the error that the client of this server gets for an error of the other endpoint.

    An error of a class that is not named here is returned unchanged.
    """
    if isinstance(error, AuthenticationError):
        message = "the endpoint refused the key of this server, or its rights"
        return HttpError(502, message, kind="server_error", code="upstream_authentication")
    if isinstance(error, RateLimitError):
        seconds = "1" if error.retry_after is None else str(max(1, round(error.retry_after)))
        return HttpError(
            429, str(error), kind="rate_limit_error", code="rate_limit_exceeded", headers={"Retry-After": seconds}
        )
    if isinstance(error, ModelNotFoundError):
        return HttpError(404, str(error), code="model_not_found")
    if isinstance(error, RefusalError):
        return HttpError(502, str(error), kind="server_error", code="refusal")
    if isinstance(error, InvalidTextError):
        return HttpError(502, str(error), kind="server_error", code="invalid_text")
    return error


class UpstreamModels:
    """The models of another endpoint. The class implements `ServedModels`.

    Args:
        client: A client of an SDK. `stop` closes it.
        names: The names of the models; None: those that an endpoint with OpenAI's API lists when the server starts.
        shown: `ModelCard.source` of the models, such as a URL.
        options: Options of `guideway.remote`, such as `dialect` and `formatter`.
    """

    def __init__(
        self,
        client: Any,
        names: Iterable[str] | None = None,
        *,
        shown: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = client
        self._shown = shown
        self._names = None if names is None else list(names)
        self._options = dict(options or {})
        self._models: dict[str, RemoteModel] = {}
        self._created = int(time.time())

    async def start(self) -> None:
        """Get the list of models from the endpoint, if no names were given."""
        if self._names is None:
            listed = await self._client.models.list()
            self._names = [one.id for one in listed.data]

    async def stop(self) -> None:
        """Close the client."""
        close = getattr(self._client, "close", None)
        found = close() if close is not None else None
        if found is not None:
            await found

    def cards(self) -> list[ModelCard]:
        """Return the `ModelCard` of each model."""
        details = {"bytes": 0, "upstream": True}
        return [
            ModelCard(name, "ready", self._shown, created=self._created, details=details) for name in self._names or ()
        ]

    @asynccontextmanager
    async def lease(self, name: str | None) -> AsyncIterator[RemoteModel]:
        """Yield the model with this name; see `ServedModels.lease`."""
        found = known_name(name, self._names or [])
        model = self._models.get(found)
        if model is None:
            while len(self._models) >= _MOST_MODELS:
                self._models.pop(next(iter(self._models)))
            model = self._models[found] = remote(self._client, found, **self._options)
        yield model


def upstream_models(source: str, options: Mapping[str, Any] | None = None) -> UpstreamModels:
    """Return the models of an endpoint. API keys are read from environment variables, such as OPENAI_API_KEY.

    Args:
        source: The URL of an endpoint with the API of OpenAI, such as "http://127.0.0.1:8000/v1", or the name of a
            model of an API, such as "openai:NAME" or "anthropic:NAME".
        options: Options of `guideway.remote`, such as `dialect` and `formatter`.

    Raises:
        ValueError: The source is neither a URL nor such a name.
        MissingDependencyError: The package of the provider is not installed.
        AuthenticationError: No API key is set.
        RemoteError: The SDK refuses its settings, such as the URL.
    """
    kind, _, name = source.partition(":")
    if kind in ("http", "https"):
        key = os.environ.get("OPENAI_API_KEY") or "none"
        sdk = _module("openai", "openai")
        client = sdk_client("openai", lambda: sdk.AsyncOpenAI(base_url=source, api_key=key, max_retries=0))
        return UpstreamModels(client, shown=_without_secrets(source), options=options)
    if not is_remote(source):
        raise ValueError(
            f"an upstream must be a URL or the name of a model of an API, such as openai:NAME, got {short_repr(source)}"
        )
    if kind in ("openai", "anthropic"):
        maker = "AsyncOpenAI" if kind == "openai" else "AsyncAnthropic"
        module = _module(kind, kind)
        client = sdk_client(kind, lambda: getattr(module, maker)(max_retries=0))
    else:
        model: Any = load(source)
        client = model._adapter.client
    return UpstreamModels(client, [name], shown=source, options=options)


def _module(name: str, kind: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"this upstream needs the package {name}: pip install 'guideway[{kind}-api]' ({error})"
        ) from error


def _without_secrets(url: str) -> str:
    """Return a URL without user, password and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class JoinedModels:
    """The models of several `ServedModels` objects. The class implements `ServedModels`, too.

    Args:
        *parts: The objects. A request is served by the first one that has a model with the requested name.
    """

    def __init__(self, *parts: ServedModels) -> None:
        self.parts = parts

    async def start(self) -> None:
        """Start all `parts`, one after another."""
        for part in self.parts:
            await part.start()

    async def stop(self) -> None:
        """Stop all `parts`, one after another. An error of one is raised after the others are stopped."""
        async with AsyncExitStack() as stack:
            for part in reversed(self.parts):
                stack.push_async_callback(part.stop)

    def cards(self) -> list[ModelCard]:
        """Return the `ModelCard` of each model."""
        return [card for part in self.parts for card in part.cards()]

    @asynccontextmanager
    async def lease(self, name: str | None) -> AsyncIterator[Any]:
        """Yield the model with this name; see `ServedModels.lease`."""
        found = known_name(name, [card.name for card in self.cards()])
        part = next(part for part in self.parts if any(card.name == found for card in part.cards()))
        async with part.lease(found) as model:
            yield model
