"""`RemoteModel`: a model served by an API, with the generating functions as methods."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from guideway import constraints
from guideway.arguments import integer, short_repr
from guideway.constraints import Constraint
from guideway.errors import LimitExceededError, UnsupportedError
from guideway.generation.chat import chat
from guideway.generation.extraction import Extraction, texts_of
from guideway.generation.options import BATCH, check_names, of_request, strings_of
from guideway.generation.partial_values import progress_of
from guideway.generation.plan import GenerationRequest, is_many
from guideway.generation.protocol import GeneratingModel
from guideway.generation.results import Generation, GenerationState, Truncation
from guideway.generation.scheduler import Timings
from guideway.generation.streams import PartialValue, TextChunk, only_values
from guideway.remote.adapters import Adapter, Request, adapter_for
from guideway.remote.capabilities import Capabilities, capabilities, guessed_dialect
from guideway.remote.dialogue import Attempt, Dialogue, FailureSettings, Result
from guideway.remote.plan import RemotePlan, Require
from guideway.remote.planning import check_require, make_plan, without_route
from guideway.remote.scoring import remote_scores
from guideway.remote.streams import arun, run
from guideway.remote.usage import Prices, RateLimit, Usage
from guideway.sampling import Sampler

__all__ = ["RemoteGeneration", "RemoteModel", "plan", "remote"]

T_co = TypeVar("T_co", covariant=True)
_USED = ("max_tokens", "temperature", "top_p", "sampler", "seed", "stop", "allow_truncation")
_OF_CALLS = ("batch_size", "progress", "return_exceptions")


@dataclass(frozen=True)
class RemoteGeneration(Generation[T_co], Generic[T_co]):
    """One result of a remote model. `tokens` is empty, because an endpoint returns text.

    Attributes:
        usage: The tokens of all attempts.
        attempts: The attempts that led to the result, in their order.
        plan: The plan of the last request; None for free text.
        repairs: Descriptions of the repairs of the text; "formatter" if a local model wrote it.
        reasoning: The reasoning text; "" if the endpoint did not send it.
    """

    usage: Usage = field(default_factory=Usage)
    attempts: tuple[Attempt, ...] = ()
    plan: RemotePlan | None = None
    repairs: tuple[str, ...] = ()
    reasoning: str = ""


class RemoteModel(GeneratingModel):
    """A model served by an API. `guideway.remote` makes one.

    The functions `generate`, `complete`, `extract`, `stream`, `stream_values` and their asynchronous variants take it
    as they take a local model. It cannot be pickled, since it holds a client with a key.

    Attributes:
        name: The name of the model.
        capabilities: What the endpoint enforces.
        rate_limit: The limits of the requests to the endpoint.
        usage: The tokens of the calls of its methods that have ended.
    """

    def __init__(
        self, adapter: Adapter, given: Capabilities, settings: FailureSettings, require: Require, rate_limit: RateLimit
    ) -> None:
        self._adapter = adapter
        self.name = adapter.model
        self.capabilities = given
        self._settings = settings
        self._require: Require = require
        self.rate_limit = rate_limit
        self.usage = Usage()
        self._usage_lock = threading.Lock()
        self._plans: dict[Constraint[Any], RemotePlan] = {}

    def __repr__(self) -> str:
        return f"RemoteModel({self.name!r}, dialect={self.capabilities.name!r})"

    def __reduce__(self) -> Any:
        raise TypeError("a remote model holds a client with a key and cannot be pickled; make one in each process")

    # -- plans

    def plan(self, output: object, *, require: Require | None = None) -> RemotePlan:
        """Return how a constraint is sent. No request is made. See `guideway.plan`.

        Args:
            output: The constraint, or a value that `guideway.constraints.of` accepts.
            require: The least guarantee; None: that of the model.
        """
        constraint = constraints.of(output)
        if require is None and (known := self._plans.get(constraint)) is not None:
            return known
        made = make_plan(
            self.capabilities, constraint, require=require or self._require, on_failure=self._settings.steps()
        )
        if require is None:
            if len(self._plans) >= 256:
                self._plans.pop(next(iter(self._plans)), None)
            self._plans[constraint] = made
        return made

    def _dialogue(self, prompt: Any, output: object, options: Any, sample: int | None, streaming: bool) -> Dialogue:
        source_text = None
        if isinstance(prompt, GenerationRequest):
            prompt._check()
            own, source_text = prompt.options, prompt.source_text
            options = of_request(options, own)
            output = prompt.output if not _is_default(prompt.output) else output
            prompt = prompt.prompt
        used = {name: value for name, value in options.items() if name not in _OF_CALLS}
        if wrong := sorted(set(used) - {*_USED}):
            raise UnsupportedError(
                f"{wrong[0]} has no effect on a model served by an API; supported are {', '.join(_USED)}"
            )
        constraint = None if output is None else constraints.of(output)
        if constraint is not None and options.get("stop"):
            raise ValueError("stop and a constraint exclude each other: a constrained text is never cut")
        temperature, top_p = _sampling(options)
        request = Request(
            _messages(prompt),
            max_tokens=integer("max_tokens", options.get("max_tokens", 512), 1),
            temperature=temperature,
            top_p=top_p,
            seed=None if "seed" not in options else integer("seed", options["seed"]) + (sample or 0),
            stop=strings_of(options.get("stop", ()), "stop"),
        )
        settings = self._settings
        if settings.max_cost is not None and settings.prices is not None:
            spent = settings.prices.cost(self.usage)
            if spent >= settings.max_cost:
                raise LimitExceededError(f"the calls cost {spent:.4f} so far, and max_cost is {settings.max_cost}")
        made = Dialogue(
            request,
            constraint,
            None if constraint is None else self.plan(constraint),
            settings,
            continues=self.capabilities.continues,
            enforces=self.capabilities.enforces,
            provider=self.capabilities.title or self.capabilities.name,
            size_errors=self.capabilities.size_errors,
            whole_routes=self.capabilities.whole_routes,
            next_plan=lambda before: without_route(
                self.capabilities, constraint, before, self._require, settings.steps()
            ),
            allow_truncation=bool(options.get("allow_truncation", False)),
            streaming=streaming,
            scrubbed=self._adapter.scrubbed,
        )
        made.source_text = source_text
        return made

    def check(self, prompt: Any, output: object = None, **options: Any) -> None:
        """Raise the errors that the prompt, the constraint or the sampling options cause. No request is made."""
        self._dialogue(prompt, output, options, None, False)

    @property
    def has_formatter(self) -> bool:
        """Whether a local model writes answers again that do not fit the constraint."""
        return self._settings.formatter is not None

    def _count(self, usage: Usage) -> None:
        with self._usage_lock:
            self.usage += usage

    def _run(self, dialogue: Dialogue, *, shown: bool = False) -> Generator[str, None, None]:
        """Run a `Dialogue` from a thread, and yield its valid text while it arrives if `shown`.

        The usage of the dialogue is added to that of the model, also if the caller closes the generator.
        """
        try:
            yield from run(self._adapter, dialogue, self.rate_limit, self._provider, shown=shown)
        finally:
            self._count(dialogue.usage)

    async def _arun(self, dialogue: Dialogue, *, shown: bool) -> AsyncGenerator[str, None]:
        """Do the same as `_run` from an event loop."""
        try:
            async with aclosing(arun(self._adapter, dialogue, self.rate_limit, self._provider, shown=shown)) as pieces:
                async for text in pieces:
                    yield text
        finally:
            self._count(dialogue.usage)

    def _result(self, dialogue: Dialogue, started: float) -> RemoteGeneration[Any]:
        found: Result = dialogue.outcome()
        usage = dialogue.usage
        cut = (
            None
            if found.finish_reason == "stop"
            else Truncation("cut", "max_tokens", usage.output, None, None, len(found.text))
        )
        return RemoteGeneration(
            found.value,
            found.text,
            (),
            usage.input,
            0,
            "stop" if found.finish_reason == "stop" else "length",
            Timings(0.0, time.monotonic() - started, 0.0, 0.0),
            GenerationState((), (), dialogue.constraint),
            None,
            (),
            cut,
            b"",
            source_text=dialogue.source_text,
            usage=usage,
            attempts=tuple(dialogue.attempts),
            plan=dialogue.plan,
            repairs=found.repairs,
            reasoning=found.reasoning,
        )

    # -- synchronous calls

    def _one(self, prompt: Any, output: object, options: Any, sample: int | None) -> RemoteGeneration[Any]:
        dialogue, started = self._dialogue(prompt, output, options, sample, False), time.monotonic()
        for _ in self._run(dialogue):
            pass
        return self._result(dialogue, started)

    @property
    def _provider(self) -> str:
        return self.capabilities.title or self.capabilities.name

    def complete(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> Any:
        """Do the same as `guideway.complete`; the results are `RemoteGeneration` objects."""
        jobs, many, width, keep = _jobs(prompt, n, options)
        if not jobs:
            return _shaped([], many, n)
        if len(jobs) == 1:
            return _shaped([_kept(lambda: self._one(jobs[0][0], output, options, jobs[0][1]), keep)], many, n)
        with ThreadPoolExecutor(min(width, len(jobs))) as pool:
            futures = [
                pool.submit(_kept, partial(self._one, one, output, options, sample), keep) for one, sample in jobs
            ]
            try:
                found = [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise
        return _shaped(found, many, n)

    def generate(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> Any:
        """Do the same as `guideway.generate`."""
        return only_values(self.complete(prompt, output, n=n, **options))

    def extract(self, text: Any, output: object, **options: Any) -> Any:
        """Do the same as `guideway.extract`."""
        return only_values(self.complete_extract(text, output, **options))

    def complete_extract(self, text: Any, output: object, **options: Any) -> Any:
        """Do the same as `guideway.generation.complete_extract`; the results are `RemoteGeneration` objects."""
        prompt, source, others = _extraction(text, output, options)
        return self.complete(prompt, source, **others)

    def stream(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> RemoteStream:
        """Do the same as `guideway.stream`. Only text that is valid so far is yielded."""
        jobs, many, _, _ = _jobs(prompt, n, options)
        return RemoteStream(self, jobs, many, n, output, options)

    def stream_values(self, prompt: Any, output: object, **options: Any) -> Iterator[PartialValue[Any]]:
        """Do the same as `guideway.stream_values`."""
        if is_many(prompt):
            raise TypeError("a stream of values takes one prompt, not a list")
        growth = _Growth(output)
        stream = self.stream(prompt, output, **options)
        return _values(growth, stream)

    def stream_extract(self, text: str, output: object, **options: Any) -> Iterator[PartialValue[Any]]:
        """Do the same as `guideway.generation.stream_extract`."""
        prompt, source, others = _extraction(text, output, options)
        return self.stream_values(prompt, source, **others)

    chat = chat
    """Return a `guideway.Chat` with this model."""

    def score(self, prompt: Any, options: Any, *, end: bool = False, batch_size: int = BATCH) -> Any:
        """Do the same as `guideway.score` for an endpoint that returns log-probabilities. `Score.tokens` is empty.

        vLLM returns the log-probabilities of the tokens of a given text, so an option can be any text whose first token
        does not begin in the prompt. Other endpoints return those of the most probable first tokens, so each option
        must be one of these tokens.

        Raises:
            UnsupportedError: The endpoint does not return the log-probability of an option, or `end` is true.
        """
        if end:
            raise UnsupportedError("the end token of a model served by an API has no score; pass end=False")
        if is_many(prompt):
            return [self.score(one, options, batch_size=batch_size) for one in prompt]
        kind, width = self.capabilities.logprobs, integer("batch_size", batch_size, 1)
        request = Request(_messages(prompt), max_tokens=1)
        found, usage = remote_scores(self._adapter, request, options, kind, width, self.rate_limit, self._provider)
        self._count(usage)
        return found

    # -- asynchronous calls

    async def _aone(self, prompt: Any, output: object, options: Any, sample: int | None) -> RemoteGeneration[Any]:
        async with aclosing(self.astream_result(prompt, output, sample=sample, shown=False, **options)) as parts:
            async for part in parts:
                if not isinstance(part, str):
                    return part
        raise RuntimeError("the stream ended without a result")

    async def acomplete(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> Any:
        """Do the same as `guideway.acomplete`."""
        jobs, many, width, keep = _jobs(prompt, n, options)
        free = asyncio.Semaphore(width)

        async def one(given: Any, sample: int | None) -> Any:
            async with free:
                try:
                    return await self._aone(given, output, options, sample)
                except Exception as error:
                    if keep:
                        return error
                    raise

        tasks = [asyncio.ensure_future(one(given, sample)) for given, sample in jobs]
        try:
            found = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        return _shaped(list(found), many, n)

    async def agenerate(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> Any:
        """Do the same as `guideway.agenerate`."""
        return only_values(await self.acomplete(prompt, output, n=n, **options))

    async def aextract(self, text: Any, output: object, **options: Any) -> Any:
        """Do the same as `guideway.aextract`."""
        prompt, source, others = _extraction(text, output, options)
        return await self.agenerate(prompt, source, **others)

    async def astream(
        self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Do the same as `guideway.astream`. Several sequences are streamed one after another."""
        jobs, many, _, _ = _jobs(prompt, n, options)
        for number, (given, sample) in enumerate(jobs):
            async with aclosing(self.astream_result(given, output, sample=sample, **options)) as parts:
                async for text in parts:
                    if isinstance(text, str):
                        yield text if not many and n is None else TextChunk(number // (n or 1), number % (n or 1), text)

    async def astream_result(
        self, prompt: Any, output: object = None, *, sample: int | None = None, shown: bool = True, **options: Any
    ) -> AsyncGenerator[str | RemoteGeneration[Any], None]:
        """Stream one text, and then its result.

        Args:
            prompt: As in `acomplete`, one prompt.
            output: As in `acomplete`.
            sample: The number of the text among several of one prompt, which is added to the seed.
            shown: Whether the text is yielded while it arrives. A text that was yielded cannot be repaired.
            **options: As in `acomplete`.

        Yields:
            Text that is valid so far, if `shown`; at the end the `RemoteGeneration`.
        """
        dialogue, started = self._dialogue(prompt, output, options, sample, shown), time.monotonic()
        async with aclosing(self._arun(dialogue, shown=shown)) as pieces:
            async for text in pieces:
                yield text
        yield self._result(dialogue, started)

    async def astream_values(self, prompt: Any, output: object, **options: Any) -> AsyncIterator[PartialValue[Any]]:
        """Do the same as `guideway.astream_values`."""
        growth = _Growth(output)
        dialogue, started = self._dialogue(prompt, output, options, None, True), time.monotonic()
        async with aclosing(self._arun(dialogue, shown=True)) as pieces:
            async for text in pieces:
                for value in growth.push(text):
                    yield value
        yield growth.whole(self._result(dialogue, started))


class RemoteStream(Iterator[Any]):
    """An iterator over the text of a remote model, one sequence after another."""

    def __init__(
        self,
        model: RemoteModel,
        jobs: list[tuple[Any, int | None]],
        many: bool,
        n: int | None,
        output: object,
        options: Any,
    ) -> None:
        self._model, self._jobs, self._many, self._n, self._output, self._options = (
            model,
            jobs,
            many,
            n,
            output,
            options,
        )
        self._found: list[Any] = [None] * len(jobs)
        if jobs:
            # A wrong argument raises its error here, not when the first item is read. Only the first prompt is checked.
            model._dialogue(jobs[0][0], output, options, jobs[0][1], True)
        self._items = self._pieces()

    def _pieces(self) -> Iterator[Any]:
        model = self._model
        for number, (given, sample) in enumerate(self._jobs):
            dialogue, started = model._dialogue(given, self._output, self._options, sample, True), time.monotonic()
            with closing(model._run(dialogue, shown=True)) as pieces:
                for text in pieces:
                    one = TextChunk(number // (self._n or 1), number % (self._n or 1), text)
                    yield one if self._many or self._n is not None else text
            self._found[number] = model._result(dialogue, started)

    def __next__(self) -> Any:
        return next(self._items)

    @property
    def results(self) -> Any:
        """The results in the form that `complete` returns; None in the place of a sequence that has not ended."""
        return _shaped(self._found, self._many, self._n)

    def close(self) -> None:
        """Close the connection."""
        self._items.close()  # type: ignore[attr-defined]  # a generator


class _Growth:
    """The growing value of a text that arrives in pieces."""

    def __init__(self, output: object) -> None:
        source = constraints.of(output)
        self._progress = progress_of(source)
        self._seen = 0

    def push(self, text: str) -> Iterator[PartialValue[Any]]:
        self._progress.push(text)
        if self._progress.changes > self._seen:
            self._seen = self._progress.changes
            yield PartialValue(self._progress.data, dict(self._progress.fields))

    def whole(self, result: RemoteGeneration[Any]) -> PartialValue[Any]:
        self._progress.finish()
        return PartialValue(self._progress.data, dict(self._progress.fields), result.value)


def _values(growth: _Growth, stream: RemoteStream) -> Iterator[PartialValue[Any]]:
    try:
        for text in stream:
            yield from growth.push(text)
    finally:
        stream.close()
    yield growth.whole(stream.results)


# -- arguments


def _is_default(output: object) -> bool:
    return output is GenerationRequest("").output


def _messages(prompt: Any) -> tuple[Mapping[str, Any], ...]:
    if isinstance(prompt, str):
        return ({"role": "user", "content": prompt},)
    if isinstance(prompt, (list, tuple)) and prompt and all(isinstance(one, Mapping) for one in prompt):
        for one in prompt:
            if not isinstance(one.get("role"), str) or "content" not in one:
                raise TypeError(f"a message needs 'role' and 'content', got the keys {sorted(map(str, one))}")
        return tuple(dict(one) for one in prompt)
    raise TypeError("a model served by an API takes a str or a list of messages (dict), not token ids")


def _sampling(options: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return `temperature` and `top_p` of a request; None: the default of the endpoint.

    Raises `UnsupportedError` for a sampler with other stages, which no endpoint takes, and the errors of `Sampler`.
    """
    sampler = options.get("sampler")
    if sampler is None:
        temperature, top_p = options.get("temperature"), options.get("top_p")
        Sampler(0.0 if temperature is None else temperature)  # checks it
        if top_p is not None and (isinstance(top_p, bool) or top_p != 0):  # APIs take 0, too
            Sampler(1.0, top_p=top_p)
        return temperature, top_p
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler must be a guideway.Sampler, got {short_repr(sampler)}")
    for name in ("temperature", "top_p"):
        if options.get(name) is not None:
            raise ValueError(f"sampler= and {name}= exclude each other: set {name} in the Sampler")
    for stage in sampler.stages:
        if stage not in ("temperature", "top_p"):
            raise UnsupportedError(
                f"the stage {stage!r} of the sampler has no effect on a model served by an API; supported are"
                " temperature and top_p"
            )
    return sampler.temperature, None if sampler.top_p == 1 else sampler.top_p


def _jobs(
    prompt: Any, n: int | None, options: Mapping[str, Any]
) -> tuple[list[tuple[Any, int | None]], bool, int, bool]:
    """Return the work of a call: its sequences, whether `prompt` is a list of prompts, and two options.

    A sequence is a prompt and the number of its sample; None if `n` is None. The options are the maximum number of
    requests at one time, and whether errors are returned in the place of results.
    """
    check_names(options)
    count = None if n is None else integer("n", n, 1)
    many = is_many(prompt)
    prompts = list(prompt) if many else [prompt]
    jobs = [(one, None if count is None else sample) for one in prompts for sample in range(count or 1)]
    width = integer("batch_size", options.get("batch_size", BATCH), 1)
    return jobs, many, width, bool(options.get("return_exceptions", False))


def _kept(work: Any, keep: bool) -> Any:
    try:
        return work()
    except Exception as error:
        if keep:
            return error
        raise


def _shaped(found: list[Any], many: bool, n: int | None) -> Any:
    if n is None:
        return found if many else found[0]
    groups = [found[at : at + n] for at in range(0, len(found), n)]
    return groups if many else groups[0]


def _extraction(text: Any, output: object, options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the request for a text or the list of requests for several, the constraint, and the generation options."""
    made = Extraction(output, options)
    texts, single = texts_of(text)
    requests = [made.request(one, chat=True) for one in texts]
    return requests[0] if single else requests, made.source, made.options


# -- public functions


def remote(
    client: Any,
    name: str,
    *,
    dialect: str | Capabilities | None = None,
    api: str | None = None,
    require: Require = "checked",
    attempts: int = 2,
    resume: bool = True,
    repair: bool = True,
    ask_again: bool = True,
    formatter: Any = None,
    rate_limit: RateLimit | None = None,
    prices: Prices | None = None,
    max_cost: float | None = None,
    max_tokens: Literal["fixed", "double"] = "fixed",
    timeout: float | None = None,
) -> RemoteModel:
    """Return a model served by an API.

    Args:
        client: A client of openai, anthropic, google-genai or mistralai, synchronous or not, which the caller made with
            its key, timeouts and retries; or a function with the signature of `litellm.completion`.
        name: The name of the model.
        dialect: What the endpoint enforces: a name such as "openai", "vllm" or "llama-server", or `Capabilities`. By
            default it follows from the URL of the client; an unknown endpoint is expected to enforce nothing.
        api: "chat" or "responses", for clients of openai.
        require: The least guarantee of a constraint: "exact", "checked", "narrowed" or "any". If no route has it, a
            call raises `UnsupportedError` or `LimitExceededError` and sends nothing.
        attempts: Maximum number of requests for one result.
        resume: Let the endpoint continue the longest valid beginning, if it can continue a text.
        repair: Repair syntax and values that can be repaired in exactly one way.
        ask_again: Send the model a description of the failure, and request the whole answer again.
        formatter: A local model that writes a wrong answer again under the constraint, if no text was streamed. None:
            no model does.
        rate_limit: Limits of requests; None: only the limits that the endpoint states in its headers.
        prices: The prices by which the cost of calls is computed for `max_cost`.
        max_cost: When the calls of this model have cost this much, a new call raises `LimitExceededError`. When one
            result has cost this much, no further request is made for it. None: no limit.
        max_tokens: "double": an answer that is truncated at `max_tokens` is continued or requested again, once, with
            twice as many tokens. "fixed": it is not.
        timeout: Seconds for one result, with all its attempts and the waiting for rate limits. A slower result raises
            `ConnectionLostError`, or `RateLimitError` if it would still wait for a rate limit. None: the timeouts of
            the client apply, which count from one byte to the next.

    Raises:
        InvalidConstraintError: The client or the dialect is unknown, or `api` is wrong for the client.
        UnsupportedError: The HTTP client of this version of the SDK is not known.
        TypeError: `name` is empty, or `attempts` is not an integer.
        ValueError: Another argument has a wrong value, or `max_cost` is given without `prices`.
    """
    if not name:
        raise TypeError("name must be the name of a model, got an empty str")
    if max_cost is not None and prices is None:
        raise ValueError("max_cost needs prices")
    if max_tokens not in ("fixed", "double"):
        raise ValueError(
            f"max_tokens must be 'fixed' or 'double' here, and a number in a call, got {short_repr(max_tokens)}"
        )
    check_require(require)
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be a positive number of seconds or None, got {short_repr(timeout)}")
    adapter = adapter_for(client, name, api)
    given = capabilities(dialect or guessed_dialect(adapter.base_url, adapter.default_dialect))
    settings = FailureSettings(
        integer("attempts", attempts, 1), resume, repair, ask_again, formatter, prices, max_cost, max_tokens, timeout
    )
    return RemoteModel(adapter, given, settings, require, rate_limit or RateLimit())


def plan(model: RemoteModel | str | Capabilities, constraint: object, *, require: Require = "any") -> RemotePlan:
    """Return how a constraint is sent to a model, what the endpoint enforces and what is checked here.

    No request is made.

    Args:
        model: A remote model, or the name of a dialect such as "openai".
        constraint: The constraint, or a value that `guideway.constraints.of` accepts.
        require: The least guarantee: "exact", "checked", "narrowed" or "any".

    Raises:
        InvalidConstraintError: The dialect is unknown.
        UnsupportedError: No route has the guarantee. If a route has a lower one, the message names the keywords that
            prevent the guarantee.
        LimitExceededError: No route has the guarantee, and at least one route is excluded by a limit, such as a
            published limit of the endpoint.
        ValueError: `require` is not one of these words.
    """
    if isinstance(model, RemoteModel):
        return model.plan(constraint, require=require)
    return make_plan(capabilities(model), constraint, require=require, on_failure=FailureSettings().steps())
