"""Requests for models served by another endpoint: planned before the call, checked while the answer streams.

`UpstreamRequest` has the interface of `ServedRequest`, so the endpoints answer both alike. The guarantee of a remote model
holds: the text fits the constraint, or the request fails.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

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
from guideway.loading import is_remote, load
from guideway.remote import RemoteGeneration, RemoteModel, remote
from guideway.server.errors import HttpError
from guideway.server.models import ModelCard, ServedModels, known_name
from guideway.server.running import Part

__all__ = ["JoinedModels", "UpstreamJob", "UpstreamModels", "UpstreamRequest", "upstream_job", "upstream_models"]

_OPTIONS = {"max_tokens", "temperature", "top_p", "seed", "stop"}
"""Generation options that are passed on to the endpoint."""

_MOST_MODELS = 64
"""Models of an endpoint that are kept, with the plans of their constraints."""


@dataclass
class UpstreamJob:
    """A request for a remote model: its prompts, its constraint and its options.

    Attributes:
        model: The model.
        prompts: The prompts.
        output: The constraint; None: free text.
        options: Generation options.
        seeds: The seed of each prompt.
        n: The number of texts for each prompt; None: one.
        results: The results of each prompt, as they come.
    """

    model: RemoteModel
    prompts: list[Any]
    output: Any
    options: dict[str, Any]
    seeds: list[int]
    n: int | None
    results: list[list[Any]] = field(default_factory=list)


def upstream_job(model: RemoteModel, request: BatchRequest, call: Mapping[str, Any]) -> UpstreamJob:
    """Return the job of a request. Its constraint is planned.

    Args:
        model: The model.
        request: The request.
        call: Options for requests that do not have them.

    Raises:
        InvalidRequestError: A field has no effect on a remote model.
        ConstraintError: The constraint is not valid, or no route has the guarantee.
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
    """A job that runs at another endpoint. See `ServedRequest`.

    Args:
        job: The job.
        streams: Whether parts are given as they arrive; else only results.
    """

    def __init__(self, job: UpstreamJob, *, streams: bool) -> None:
        self.job = job
        self.begun = time.perf_counter()
        self.first: float | None = None
        # A text that was sent cannot be written again, so with a formatter each text is one part.
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
        """End the request. The connections are closed."""
        for task in self._tasks:
            task.cancel()
        if self._left:
            self._left = 0
            self.poke()  # `parts` ends, if it waits

    def poke(self) -> None:
        """Let `parts` yield an empty list."""
        self._parts.put_nowait(None)

    async def parts(self) -> AsyncGenerator[list[Part], None]:
        """Yield the parts of the answers as they arrive, each in a list. Yields an empty list after `poke`.

        Raises:
            Exception: The generation of an answer raised it.
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
        """Return the results of each prompt."""
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
    """Return the error that a client of the gateway gets."""
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
    """Models of an endpoint.

    Args:
        client: A client of an SDK; closed by `stop`.
        names: The models; None: those that an endpoint with the API of OpenAI lists when the server starts.
        shown: What to show as the source, such as a URL.
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
        """Ask the endpoint for its models."""
        if self._names is None:
            listed = await self._client.models.list()
            self._names = [one.id for one in listed.data]

    async def stop(self) -> None:
        """Close the connections."""
        close = getattr(self._client, "close", None)
        found = close() if close is not None else None
        if found is not None:
            await found

    def cards(self) -> list[ModelCard]:
        """Return the card of each model."""
        details = {"bytes": 0, "upstream": True}
        return [
            ModelCard(name, "ready", self._shown, created=self._created, details=details) for name in self._names or ()
        ]

    @asynccontextmanager
    async def lease(self, name: str | None) -> AsyncIterator[RemoteModel]:
        """Give the model of a name."""
        found = known_name(name, self._names or [])
        model = self._models.get(found)
        if model is None:
            while len(self._models) >= _MOST_MODELS:
                self._models.pop(next(iter(self._models)))
            model = self._models[found] = remote(self._client, found, **self._options)
        yield model


def upstream_models(source: str, options: Mapping[str, Any] | None = None) -> UpstreamModels:
    """Return the models of an endpoint. Keys come from the environment.

    Args:
        source: The URL of an endpoint with the API of OpenAI, such as "http://127.0.0.1:8000/v1", or the name of a model
            of an API, such as "openai:NAME" or "anthropic:NAME".
        options: Options of `guideway.remote`, such as `dialect` and `formatter`.

    Raises:
        ValueError: The source is neither.
        MissingDependencyError: The package of the provider is not installed.
    """
    kind, _, name = source.partition(":")
    if kind in ("http", "https"):
        key = os.environ.get("OPENAI_API_KEY") or "none"
        client = _module("openai", "openai").AsyncOpenAI(base_url=source, api_key=key, max_retries=0)
        return UpstreamModels(client, shown=_without_secrets(source), options=options)
    if not is_remote(source):
        raise ValueError(
            f"an upstream must be a URL or the name of a model of an API, such as openai:NAME, got {source!r}"
        )
    if kind in ("openai", "anthropic"):
        maker = "AsyncOpenAI" if kind == "openai" else "AsyncAnthropic"
        client = getattr(_module(kind, kind), maker)(max_retries=0)
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
    """Return a URL without a user, a password and a query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class JoinedModels:
    """The models of several sources.

    Args:
        *parts: The sources. The first one that has a name serves it.
    """

    def __init__(self, *parts: ServedModels) -> None:
        self.parts = parts

    async def start(self) -> None:
        """Start all sources."""
        for part in self.parts:
            await part.start()

    async def stop(self) -> None:
        """Stop all sources."""
        for part in self.parts:
            await part.stop()

    def cards(self) -> list[ModelCard]:
        """Return the card of each model."""
        return [card for part in self.parts for card in part.cards()]

    @asynccontextmanager
    async def lease(self, name: str | None) -> AsyncIterator[Any]:
        """Give the model of a name."""
        found = known_name(name, [card.name for card in self.cards()])
        part = next(part for part in self.parts if any(card.name == found for card in part.cards()))
        async with part.lease(found) as model:
            yield model
