"""`GenerationEndpoint`: the ASGI application of chat completions and completions, and base class of similar ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from guideway import background
from guideway.arguments import short_repr
from guideway.batch.answer_parts import usage_object
from guideway.batch.answers import answer_body
from guideway.batch.bodies import read_body
from guideway.batch.jobs import job_of
from guideway.batch.requests import BatchRequest
from guideway.constraints.tools import Family
from guideway.errors import InvalidRequestError
from guideway.generation import Generation, Model
from guideway.generation.plan import Job
from guideway.remote import RemoteModel
from guideway.server.bodies import read_json_and_size
from guideway.server.chunks import ChatChunks, CompletionChunks
from guideway.server.echo import PromptEcho, echo_of, report_of
from guideway.server.errors import HttpError, error_response, status_and_object, stopped
from guideway.server.gateway import UpstreamJob, UpstreamRequest, upstream_job
from guideway.server.ids import new_id
from guideway.server.response_events import ResponseEvents
from guideway.server.running import ServedRequest
from guideway.server.sse import Client, ClientLeft, EventStream
from guideway.server.state import LOG, ServerState

__all__ = ["GenerationEndpoint", "Outcome", "Prepared", "prepare"]

_CHUNKS: dict[str, Callable[..., Any]] = {
    "/v1/chat/completions": ChatChunks,
    "/v1/completions": CompletionChunks,
    "/v1/responses": ResponseEvents,
}


def _unchanged(request: BatchRequest) -> BatchRequest:
    return request


@dataclass
class Prepared:
    """The state of a request while it is answered. `prepare` sets `request` and `family` as soon as they are known.

    Attributes:
        request: The request; None: its body has not been read.
        family: The notation of the model's replies; None: it is not known, or the replies are not divided by it.
        echo: The prompts, if each text begins with its prompt (field `echo` of the request); otherwise None.
        complete: Returns a request with data of the server added, such as the messages of a stored response.
    """

    request: BatchRequest | None = None
    family: Family | None = None
    echo: PromptEcho | None = None
    complete: Callable[[BatchRequest], BatchRequest] = _unchanged


def prepare(
    found: Prepared, model: Model | RemoteModel, name: str, url: str, body: Mapping[str, Any], settings: Any
) -> Job | UpstreamJob:
    """Read a body and make its job: compile the constraint, encode the prompt. Call it in a background thread.

    Args:
        found: Its `request` is set and, for a local model, its `family`. Its `complete` is called.
        model: The model.
        name: The name of the model for clients.
        url: The endpoint.
        body: The body.
        settings: The settings of the server.

    Returns:
        The job.

    Raises:
        GuidewayError: The body is not valid, or its constraint cannot be compiled.
        ValueError: An option is out of range.
    """
    request = read_body(url, new_id(), body)
    request = replace(request, details={**request.details, "model": name, "created": time.time()})
    found.request = request = found.complete(request)
    options = {**settings.options, "batch_size": settings.max_num_seqs}
    if isinstance(model, RemoteModel):
        if request.details.get("echo"):
            raise InvalidRequestError("a model served by an API has no 'echo'", "echo", "unsupported_parameter")
        return upstream_job(model, request, options)
    if request.options.get("max_tokens") == 0:  # the answer has only the prompt; one token is generated and discarded
        request = replace(request, options={**request.options, "max_tokens": 1})
    made = job_of(model, request, options, return_exceptions=False)
    found.family = made.family
    return made.job


def tokens_of(job: Job | UpstreamJob) -> int:
    """Return the maximum number of tokens of a job; 0 for a job at another endpoint. Each prompt is counted once."""
    if isinstance(job, UpstreamJob):
        return 0
    samples = job.n or 1
    total = 0
    for plan, session in job.prepared:
        room = session.context_size - len(session)
        total += len(session) + samples * min(plan.limits.max_tokens, room)
    return total


class Outcome(NamedTuple):
    """How the generation for a request ended.

    Attributes:
        answer: The body of the answer. For a stream, it is the last response object of the Responses API, or None for
            chat completions and completions. None, too, if there is no answer.
        one: The result of the first text; None if this text failed or is not complete.
        error: The exception that ended the request, also `ClientLeft` and `asyncio.CancelledError`; None: there is
            none, it was sent as an event of a stream, or the client of a stream disconnected.
    """

    answer: dict[str, Any] | None
    one: Generation[Any] | None
    error: BaseException | None


class GenerationEndpoint:
    """An ASGI application that generates an answer to each request.

    Args:
        state: The state of the server.
        url: The path of the endpoint. `prepare` needs a key of `guideway.batch.bodies.ENDPOINTS`.
        preparing: A function like `prepare`, which reads a body and makes its job.
        chunks: The class that makes the events of streams; None: the class for `url` in `_CHUNKS`.
    """

    def __init__(
        self,
        state: ServerState,
        url: str,
        *,
        preparing: Callable[..., Job | UpstreamJob] = prepare,
        chunks: Callable[..., Any] | None = None,
    ) -> None:
        self._state, self._url = state, url
        self._prepare, self._chunks = preparing, chunks or _CHUNKS[url]

    def complete_request(self, request: BatchRequest, key: str) -> BatchRequest:
        """Return a request with data of the server added. `key`: the name of its API key.

        Subclasses override it. This method returns the request unchanged.
        """
        return request

    def begun(self, request: BatchRequest, key: str, running: ServedRequest | UpstreamRequest) -> None:
        """Do nothing. Subclasses override this method, which is called when generation for a request begins."""

    def ended(self, request: BatchRequest, key: str, outcome: Outcome) -> None:
        """Do nothing. Subclasses override this method, which is called once after `begun`, at the end of generation.

        Args:
            request: The request.
            key: The name of its API key.
            outcome: How generation ended.
        """

    def accepted(self, request: BatchRequest) -> dict[str, Any] | None:
        """Return the body that is sent at once if the request runs in the background; None: it does not.

        Subclasses override it. This method returns None.
        """
        return None

    def answer(
        self, model: Model | RemoteModel, request: BatchRequest, found: Sequence[Sequence[Generation[Any]]]
    ) -> dict[str, Any]:
        """Return the body of an answer that is not a stream. `found`: the results of each prompt."""
        return answer_body(model, request, found)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        state, begun, found = self._state, time.perf_counter(), Prepared()
        client, status, sent = Client(receive), 499, False

        async def sending(message: Any) -> None:
            nonlocal sent, status
            if message["type"] == "http.response.start":
                sent, status = True, message["status"]
            await send(message)

        try:
            key = state.key_of(Headers(scope=scope).get("authorization"))
            found.complete = partial(self.complete_request, key=key)
            with state.admitted(key) as admission:
                body, size = await read_json_and_size(scope, receive, state.settings)
                name = model_name(body)
                async with AsyncExitStack() as held:
                    model = await client.unless_left(held.enter_async_context(state.models.lease(name)))
                    shown = name or state.models.cards()[0].name
                    if isinstance(model, Model):
                        state.uses(model)
                    job = await self._job(found, model, shown, body, size, client)
                    if found.family is not None and isinstance(model, Model):
                        state.families[model] = found.family
                    state.metrics.observe("request_prepare_seconds", time.perf_counter() - begun, model=shown)
                    admission.reserve(tokens_of(job))
                    if isinstance(job, Job) and found.request is not None and found.request.details.get("echo"):
                        reading = background.run(echo_of, model, job, found.request.options.get("logprobs"))
                        found.echo = await client.unless_left(reading, cancels=False)
                    await self._generate(model, found, job, key, client, sending)
        except ClientLeft:
            state.metrics.count("requests_cancelled_total")
        except asyncio.CancelledError:
            if state.draining and not sent:
                status = 503  # for the log and the metrics; `_AnsweredAtShutdown` in `app.py` sends it
            raise
        except Exception as error:
            if not sent:
                await error_response(error, found.request)(scope, receive, sending)
            if status >= 500:
                self._log_failure(error)
        finally:
            client.close()
            self._record(found, status, time.perf_counter() - begun)

    async def _job(
        self,
        found: Prepared,
        model: Model | RemoteModel,
        shown: str,
        body: dict[str, Any],
        size: int,
        client: Client,
    ) -> Job | UpstreamJob:
        """Return the job of a body. `shown`: the name of the model. `size`: the number of bytes of the body."""
        state = self._state
        making = partial(self._prepare, found, model, shown, self._url, body, state.settings)
        if isinstance(model, Model):
            translating = state.workers.translate(self._url, body, state.families.get(model), size)
            await client.unless_left(translating, cancels=False)
        return await client.unless_left(background.run(making), cancels=False)

    def _log_failure(self, error: Exception) -> None:
        """Log an error. The message of an `HttpError` is left out, because it may quote an answer."""
        if isinstance(error, HttpError):
            LOG.error("%s failed: %s %s", self._url, error.status, error.code)
        else:
            LOG.exception("%s failed", self._url)

    async def _generate(
        self, model: Any, found: Prepared, job: Job | UpstreamJob, key: str, client: Client, send: Send
    ) -> None:
        request = found.request
        assert request is not None  # noqa: S101  # `prepare` has set it
        streams = bool(request.details.get("stream"))
        running: ServedRequest | UpstreamRequest
        if isinstance(job, UpstreamJob):
            running = UpstreamRequest(job, streams=streams)
        else:
            running = ServedRequest(job, streams=streams)
        self.begun(request, key, running)
        answer: dict[str, Any] | None = None
        failure: BaseException | None = None
        try:
            if (accepted := self.accepted(request)) is not None:
                await _send_json(accepted, send)
                results = await running.results()  # even if the client has disconnected
            elif streams:
                chunks = self._chunks(model, request, found.family)
                if found.echo is not None:
                    chunks.echo = found.echo
                await self._stream(request, running, chunks, client, send)
                answer = getattr(chunks, "final", None)
                return
            else:
                results = await client.unless_left(running.results())
            if _is_incomplete(job):
                raise HttpError(409, "the response was cancelled", code="cancelled")
            self._observe(request, results, running)
            answer = self.answer(model, request, results)
            if found.echo is not None:
                found.echo.add_to(model, request, answer)
            if request.details.get("report"):
                answer["guideway"] = report_of(request, results)
            if accepted is None:
                await _send_json(answer, send)
        except BaseException as error:
            failure = error
            raise
        finally:
            running.cancel()
            one = job.results[0][0] if job.results else None
            self.ended(request, key, Outcome(answer, one if isinstance(one, Generation) else None, failure))
            failure = None  # its traceback holds this frame, which would keep the KV caches until garbage collection

    async def _stream(
        self,
        request: BatchRequest,
        running: ServedRequest | UpstreamRequest,
        chunks: Any,
        client: Client,
        send: Send,
    ) -> None:
        events, settings = self._events(request, running, chunks), self._state.settings
        first = await client.unless_left(_first(events))
        response = EventStream(
            first,
            events,
            running.poke,
            headers={"x-request-id": request.custom_id},
            keep_alive_seconds=settings.keep_alive_seconds,
            send_seconds=settings.send_seconds,
        )
        try:
            await response.send(client, send)
        except asyncio.CancelledError:
            if self._state.draining:  # the drain time is over
                await response.end(chunks.failed(status_and_object(stopped())[1]), send)
            raise

    async def _events(
        self, request: BatchRequest, running: ServedRequest | UpstreamRequest, chunks: Any
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events of a stream. An error before the first part is raised; a later one becomes an event."""
        begun = False
        try:
            async for parts in running.parts():
                data = chunks.events(parts)
                begun = begun or bool(parts)
                yield data
        except Exception as error:
            if not begun:
                raise
            status, found = status_and_object(error, request)
            if status >= 500:
                self._log_failure(error)
            yield chunks.failed(found)
            return
        if _is_incomplete(running.job):
            yield chunks.cancelled()
            return
        results: list[list[Generation[Any]]] = running.job.results  # type: ignore[assignment]  # there is no exception
        self._observe(request, results, running)
        yield chunks.closing(results)

    def _observe(
        self, request: BatchRequest, results: list[list[Generation[Any]]], running: ServedRequest | UpstreamRequest
    ) -> None:
        """Count a request that succeeded in the metrics."""
        metrics, model = self._state.metrics, str(request.details["model"])
        texts = [one for group in results for one in group]
        count = usage_object(results, ("prompt", "completion"))["completion"]
        prompt = sum(group[0].prompt_tokens for group in results)
        metrics.count("prompt_tokens_total", prompt, model=model)
        metrics.count("generation_tokens_total", count, model=model)
        metrics.count("forced_tokens_total", sum(one.forced for one in texts), model=model)
        metrics.observe("request_prompt_tokens", prompt, model=model)
        metrics.observe("request_generation_tokens", count, model=model)
        for one in texts:
            metrics.count("request_success_total", model=model, finished_reason=one.finish_reason)
        seconds = time.perf_counter() - running.begun
        if running.first is not None:
            metrics.observe("time_to_first_token_seconds", running.first, model=model)
            if count > len(texts):
                each = (seconds - running.first) / (count - len(texts)) * len(texts)
                metrics.observe("time_per_output_token_seconds", each, model=model)

    def _record(self, found: Prepared, status: int, seconds: float) -> None:
        """Log a request and count it in the metrics. Its prompt is logged only if the setting `log_prompts` is true."""
        model = "" if found.request is None else str(found.request.details["model"])
        self._state.metrics.count("http_requests_total", handler=self._url, status=str(status))
        self._state.metrics.observe("e2e_request_latency_seconds", seconds, model=model)
        extra: dict[str, Any] = {"route": self._url, "status": status, "model": model, "seconds": round(seconds, 4)}
        if found.request is not None:
            extra["request_id"] = found.request.custom_id
            if self._state.settings.log_prompts:
                extra["prompt"] = found.request.prompt
        LOG.info("request", extra={"fields": extra})


def _is_incomplete(job: Job | UpstreamJob) -> bool:
    """Return whether a text of a job that has ended is not complete, because the request was cancelled."""
    return any(one is None for group in job.results for one in group)


async def _send_json(body: dict[str, Any], send: Send) -> None:
    """Send a body with status 200."""
    response = JSONResponse(body)
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body})


async def _first(events: AsyncGenerator[bytes, None]) -> bytes:
    """Return the first bytes that are not empty; b"" if there are none."""
    async for data in events:
        if data:
            return data
    return b""


def model_name(body: Mapping[str, Any]) -> str | None:
    """Return the field "model" of a body; None if the field is missing or null.

    Raises:
        InvalidRequestError: The field is not a string.
    """
    name = body.get("model")
    if name is not None and not isinstance(name, str):
        raise InvalidRequestError(f"'model' must be a string, got {short_repr(name)}", "model", "invalid_type")
    return name
