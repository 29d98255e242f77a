"""Remote models with the official SDKs against `Provider`, a real HTTP server on the loopback interface."""

from __future__ import annotations

import asyncio
import copy
import gc
import gzip
import json
import math
import pickle
import random
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import guideway as gw
from guideway.errors import (
    AuthenticationError,
    ConnectionLostError,
    GuidewayError,
    InvalidFileError,
    InvalidTextError,
    LimitExceededError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
    RefusalError,
    RemoteError,
    TruncatedError,
    UnsupportedError,
)
from guideway.remote import Prices, RateLimit, RemoteModel, Usage, probe, remote
from guideway.remote.adapters import Event as Event_, Request
from guideway.remote.answer_text import Echo
from guideway.remote.dialogue import Dialogue, FailureSettings
from guideway.remote.first_tokens import most_probable
from guideway.testing import Answer, Provider, ProviderRequest

# Asynchronous clients of the SDKs cannot be closed once their event loop has ended; Python reports their sockets. Where
# aiohttp is installed (Ray and Dask need it), google-genai uses it, and inherits from a class of it that warns.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> Iterator[None]:
    """Exclude the objects of other modules from the collections below, which would take half a second each."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _collected(_frozen: None) -> Iterator[None]:
    """Collect the clients of a test before the next test, in which the warnings are errors."""
    yield
    gc.collect()


SECRET = "sk-a-very-secret-key-1234567890"
HONEST = Answer()
CLIENTS = ["chat", "responses", "anthropic", "google", "mistral"]


class Event(BaseModel):
    title: str
    seats: int
    note: str | None = None


class Named(BaseModel):
    title: str


TEXT = '{"title": "Talk", "seats": 3, "note": null}'


def model_of(kind: str, url: str, *, asynchronous: bool = False, **options: Any) -> RemoteModel:
    if kind in ("chat", "responses"):
        openai = pytest.importorskip("openai", reason="the official SDK is tested")
        client = (openai.AsyncOpenAI if asynchronous else openai.OpenAI)(
            base_url=f"{url}/v1", api_key=SECRET, max_retries=0
        )
        return remote(client, "m", **{"dialect": "openai", "api": kind, **options})
    if kind == "anthropic":
        anthropic = pytest.importorskip("anthropic", reason="the official SDK is tested")
        client = (anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic)(
            base_url=url, api_key=SECRET, max_retries=0
        )
        return remote(client, "m", **{"dialect": "anthropic", **options})
    if kind == "google":
        genai = pytest.importorskip("google.genai", reason="the official SDK is tested")
        client = genai.Client(api_key=SECRET, http_options={"base_url": url})
        return remote(client, "m", **{"dialect": "google", **options})
    mistral = pytest.importorskip("mistralai.client", reason="the official SDK is tested")
    return remote(mistral.Mistral(api_key=SECRET, server_url=url), "m", **{"dialect": "mistral", **options})


@contextmanager
def served(script: Any = HONEST) -> Iterator[Provider]:
    with Provider(script) as provider:
        yield provider


@pytest.fixture(params=CLIENTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_function(kind: str) -> None:
    with served() as provider:
        model = model_of(kind, provider.url)
        event = gw.generate(model, "an event", Event)
        assert isinstance(event, Event)
        assert isinstance(gw.extract(model, "Ada speaks to 20 people", Event), Event)
        assert gw.generate(model, "say ok") == "ok"
        assert gw.generate(model, "pick", gw.Choice(["a"])) == "a"
        assert isinstance("".join(gw.stream(model, "n", int)), str)
        values = list(gw.stream_values(model, "an event", Event))
        assert isinstance(values[-1].value, Event)
        results = gw.complete(model, ["a", "b"], Event, n=2)
        assert [[type(one.value) for one in group] for group in results] == [[Event, Event], [Event, Event]]
        total = sum((one.usage for group in results for one in group), Usage())
        assert total.requests == 4
        assert model.usage.input == provider.input_tokens
        assert model.usage.output == provider.output_tokens


def test_every_asynchronous_function(kind: str) -> None:
    async def run(provider: Provider) -> None:
        model = model_of(kind, provider.url, asynchronous=True)
        assert isinstance(await gw.agenerate(model, "an event", Event), Event)
        assert isinstance(await gw.aextract(model, "text", Event), Event)
        assert len(await gw.acomplete(model, ["a", "b", "c"], Event)) == 3
        assert "".join([one async for one in gw.astream(model, "say ok")]) == "ok"
        last = [one async for one in gw.astream_values(model, "an event", Event)][-1]
        assert isinstance(last.value, Event)

    with served() as provider:
        asyncio.run(run(provider))


def test_a_synchronous_call_of_an_asynchronous_client() -> None:
    with served() as provider:
        model = model_of("chat", provider.url, asynchronous=True)
        assert isinstance(model.generate("an event", Event), Event)
        assert "".join(model.stream("say ok")) == "ok"


def test_a_function_with_the_signature_of_litellm() -> None:
    seen: list[dict[str, Any]] = []

    def completion(**given: Any) -> Any:
        seen.append(given)
        for piece in ("12", "3"):
            yield {"choices": [{"delta": {"content": piece}}]}
        yield {
            "choices": [{"delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 2, "completion_tokens": 3},
        }

    async def acompletion(**given: Any) -> Any:
        return {"choices": [{"message": {"content": "7"}, "finish_reason": "stop"}]}

    result = gw.complete(remote(completion, "x/y"), "n", int)
    assert (result.value, result.usage.output) == (123, 3)
    assert seen[0]["model"] == "x/y"
    assert asyncio.run(gw.agenerate(remote(acompletion, "x/y"), "n", int)) == 7


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=401, message=f"bad key {SECRET}"), AuthenticationError),
        (Answer(status=403), AuthenticationError),
        (Answer(status=404), ModelNotFoundError),
        (Answer(status=429, retry_after="0.01"), RateLimitError),
        (Answer(status=529), OverloadedError),
        (Answer(status=503), OverloadedError),
        (Answer(status=500), RemoteError),
        (Answer(TEXT, drop_after=0), ConnectionLostError),
        (Answer(TEXT, drop_after=2), ConnectionLostError),
        (Answer(TEXT, finish=""), ConnectionLostError),
        (Answer(TEXT[:20], finish="length"), TruncatedError),
        (Answer("", finish="refusal"), RefusalError),
        (Answer("I would rather not."), InvalidTextError),
        (Answer('{"title": 3'), InvalidTextError),
    ],
)
def test_errors(kind: str, answer: Answer, error: type[Exception]) -> None:
    with served(answer) as provider:
        model = model_of(kind, provider.url, resume=False)
        with pytest.raises(error) as found:
            model.generate("an event", Event)
        assert type(found.value) is error
        shown = f"{found.value} {found.value!r} {found.value.__cause__} {vars(found.value)}"
        assert SECRET not in shown
        if isinstance(found.value, (RemoteError, InvalidTextError, TruncatedError)):
            assert found.value.usage.requests == len(provider.requests) == len(found.value.attempts)
        if error is RateLimitError:
            assert isinstance(found.value, RateLimitError)
            assert found.value.retry_after == pytest.approx(0.01)


HEADER = "a-header-with-a-secret-0987654321"


def everything_shown(thing: Any) -> str:
    """Return what logs, messages, traces and pickles show of an object."""
    shown = [repr(thing), str(thing), repr(vars(thing)) if hasattr(thing, "__dict__") else ""]
    if isinstance(thing, BaseException):
        shown.append("".join(traceback.format_exception(thing)))
    try:
        shown.append(pickle.dumps(thing).decode("latin-1"))
    except (TypeError, AttributeError, pickle.PicklingError):
        shown.append("not pickled")
    return "\n".join(shown)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_keys_are_shown_nowhere(kind: str, asynchronous: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")  # the SDKs and their HTTP libraries, too
    echo = f"the key {SECRET} and {HEADER}"
    answers = [
        Answer(),
        Answer(status=401, message=echo),
        Answer(status=400, message=f"Bearer {SECRET}"),
        Answer(status=429, message=echo, headers={"x-request-id": "request-1"}),
        Answer(status=500, raw=echo.encode()),
        Answer(echo),
        Answer(f'{{"title": "{SECRET}", "seats": "{HEADER}"'),
        Answer(echo, finish="refusal"),
        Answer(status=307, headers={"location": f"http://{SECRET}.example.com/{SECRET}"}),
        Answer(raw=f"data: {{{echo}\n\n".encode()),
        Answer(TEXT, drop_after=0),
    ]
    with served() as provider:
        model = model_of(kind, provider.url, asynchronous=asynchronous)
        headers = getattr(model._adapter.client, "_custom_headers", None)
        if headers is not None:
            model._adapter.client._custom_headers = {**headers, "X-Auth-Token": HEADER}
        shown = [everything_shown(one) for one in (model, model._adapter, model.plan(Event), model.usage)]
        for answer in answers:
            provider.script = answer
            try:
                if answer == answers[0]:
                    shown.append(everything_shown(model.complete("an event", Event)))
                    assert SECRET not in caplog.text  # the HTTP library logs what the endpoint sends, but not this
                elif asynchronous:
                    shown.append(everything_shown(asyncio.run(gw.acomplete(model, "an event", Event))))
                else:
                    shown.append(everything_shown(model.complete("an event", Event)))
            except GuidewayError as problem:
                texts = [getattr(one, "text", None) for one in getattr(problem, "attempts", ())]
                problem.__dict__.pop("attempts", None)  # the texts of the model are data
                problem.__dict__.pop("text", None)
                assert texts or answer.status != 200
                shown.append(everything_shown(problem))
        assert len(shown) == 4 + len(answers)
        for one in shown:
            assert SECRET not in one, one[max(one.index(SECRET) - 200, 0) : one.index(SECRET) + 60]
            if headers is not None:
                assert HEADER not in one
        logged = "".join(repr(vars(record)) for record in caplog.records if "guideway" in record.name)
        assert SECRET not in logged
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(model)
        with pytest.raises(TypeError, match="pickled"):
            copy.deepcopy(model._adapter)
        received = {value for request in provider.requests for value in request.headers.values()}
        assert any(SECRET in value for value in received)  # the endpoint does get it


def test_a_probe_shows_no_password_of_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as provider:
        url = provider.url.replace("http://", f"http://user:{HEADER}@")
        found = probe(model_of("chat", url, dialect="openai"))
        assert found.base_url == f"{provider.url}/v1/"
        assert HEADER not in str(found) + json.dumps(found.to_json()) + repr(found)


def test_the_request_ends_at_the_first_impossible_byte(kind: str) -> None:
    bad = '{"title": "Talk", "seats": "many' + "!" * 20000
    with served(Answer(bad, chunk=4, pause=0.001)) as provider:
        model = model_of(kind, provider.url, attempts=1, repair=False)
        with pytest.raises(InvalidTextError, match="not valid after 27 characters") as found:
            model.generate("an event", Event)
        assert found.value.usage.aborted == 1
        time.sleep(0.3)
        assert len(provider.aborted) == 1
        assert len(found.value.attempts[0].text) < 100


def test_streams_show_only_valid_text(kind: str) -> None:
    with served(Answer('[1, 2, "x"]', chunk=2)) as provider:
        model = model_of(kind, provider.url, dialect="unknown")
        shown = ""

        def read() -> None:
            nonlocal shown
            for piece in model.stream("numbers", list[int]):
                shown += piece

        with pytest.raises(InvalidTextError):
            read()
        assert shown == "[1, 2, "[: len(shown)]
        assert len(shown) >= 5
        assert len(provider.requests) == 1  # shown text cannot be taken back


def test_split_characters(kind: str) -> None:
    with served(Answer('{"title": "日本語é😀", "seats": 1, "note": null}', chunk=3, split_bytes=1)) as provider:
        assert model_of(kind, provider.url).generate("an event", Event).title == "日本語é😀"


def test_cancelling_closes_the_connection() -> None:
    async def run(provider: Provider) -> float:
        model = model_of("chat", provider.url, asynchronous=True)
        task = asyncio.ensure_future(gw.agenerate(model, "an event", Event))
        while not provider.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not provider.aborted and time.monotonic() - started < 5:
            await asyncio.sleep(0.005)
        return provider.aborted[0] - started

    with served(Answer(TEXT, chunk=2, stall_after=3)) as provider:
        assert asyncio.run(run(provider)) < 1.0  # the bar of 50 ms is measured by tests.campaigns.remote_load


def test_closing_a_stream_closes_the_connection(kind: str) -> None:
    with served(Answer(TEXT, chunk=2, stall_after=8)) as provider:
        stream = model_of(kind, provider.url, dialect="unknown").stream("an event", Event)
        next(iter(stream))
        stream.close()
        deadline = time.monotonic() + 5
        while not provider.aborted and time.monotonic() < deadline:
            time.sleep(0.01)
        assert provider.aborted


# -- the steps after an answer that does not fit


def test_ask_again_names_the_place_and_not_the_whole_text() -> None:
    bad = '{"title": "Talk", "seats": "many", "note": "' + "x" * 5000
    with served([Answer(bad), Answer(TEXT)]) as provider:
        result = model_of("chat", provider.url, repair=False).complete("an event", Event)
        assert [one.kind for one in result.attempts] == ["first", "ask again"]
        assert result.value.seats == 3
        words = provider.requests[1].messages()[-1][1]
        assert '{"title": "Talk", "seats": ' in words
        assert "'0'" in words
        assert "xxxx" not in str(provider.requests[1].body)


def test_repair_is_recorded() -> None:
    text = "Here you are:\n```json\n{title: 'x'}\n```"
    with served(Answer('Sure!\n```json\n{"title": "a\nb", seats: 3, // three\n "note": None,}\n```\n')) as provider:
        result = model_of("chat", provider.url, dialect="unknown").complete("an event", Event)
        assert result.value == Event(title="a\nb", seats=3)
        assert set(result.repairs) >= {"code fence", "trailing comma", "comment", "key without quotes"}
        assert len(provider.requests) == 1
        provider.script = Answer(text)
        with pytest.raises(InvalidTextError):
            model_of("chat", provider.url, dialect="unknown", attempts=1).complete("an event", Event)
        provider.script = Answer('{"title": "a", "seats": 3')  # a cut text is never completed
        with pytest.raises(InvalidTextError):
            model_of("chat", provider.url, dialect="unknown", attempts=1).complete("an event", Event)


class Mood(BaseModel):
    mood: Literal["Fine", "Tired"]
    seats: int
    tags: list[bool]
    note: str


def test_values_with_one_reading_are_repaired() -> None:
    with served(Answer('{"mood": "fine ", "seats": "3", "tags": ["True", false], "note": 7}')) as provider:
        result = model_of("chat", provider.url, dialect="unknown", attempts=1).complete("an event", Mood)
        assert result.value == Mood(mood="Fine", seats=3, tags=[True, False], note="7")
        assert result.repairs == (
            '/mood: "Fine" for "fine "',
            '/seats: 3 for "3"',
            '/tags/0: true for "True"',
            '/note: "7" for 7',
        )
        assert result.text == '{"mood": "Fine", "seats": 3, "tags": [true, false], "note": "7"}'
        for seats in ('"three"', "null", '"3.5"', "[3]"):
            provider.script = Answer(f'{{"mood": "Fine", "seats": {seats}, "tags": [], "note": ""}}')
            with pytest.raises(InvalidTextError):
                model_of("chat", provider.url, dialect="unknown", attempts=1).complete("an event", Mood)
        provider.script = Answer('{"mood": "fine", "seats": 3, "tags": [], "note": ""}')
        with pytest.raises(InvalidTextError):
            model_of("chat", provider.url, dialect="unknown", attempts=1, repair=False).complete("an event", Mood)


@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_a_cut_answer_is_requested_once_with_twice_as_many_tokens(kind: str) -> None:
    with served([Answer(TEXT[:20], finish="length"), Answer(TEXT)]) as provider:
        result = model_of(kind, provider.url, max_tokens="double").complete("an event", Event, max_tokens=30)
        assert result.value.seats == 3
        assert [one.kind for one in result.attempts] == ["first", "more tokens"]
        asked = [one.body.get("max_tokens", one.body.get("max_completion_tokens")) for one in provider.requests]
        assert asked == [30, 60]
        provider.script = Answer(TEXT[:20], finish="length")
        model = model_of(kind, provider.url, max_tokens="double", attempts=5)
        with pytest.raises(TruncatedError, match="max_tokens=60") as caught:
            model.complete("an event", Event, max_tokens=30)
        assert len(caught.value.attempts) == 2
        provider.script = Answer("12", finish="length")
        shown = model_of(kind, provider.url, dialect="unknown", max_tokens="double").stream("how many", int)
        with pytest.raises(TruncatedError) as caught:  # shown text cannot be written again
            list(shown)
        assert len(caught.value.attempts) == 1
    with pytest.raises(ValueError, match="max_tokens must be"):
        model_of(kind, "http://127.0.0.1:1", max_tokens=5)


def test_an_answer_that_nothing_can_follow_is_not_cut(kind: str) -> None:
    with served(Answer(TEXT, finish="length")) as provider:
        assert model_of(kind, provider.url).generate("an event", Event).seats == 3
        unknown = model_of(kind, provider.url, dialect="unknown")
        provider.script = Answer(f"{TEXT}\n", finish="length")
        assert unknown.generate("an event", Event).seats == 3
        provider.script = Answer("12", finish="length")  # "123" may have been meant
        with pytest.raises(TruncatedError):
            unknown.generate("a number", int)


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("split", [3, 200])
def test_resume_continues_the_longest_valid_beginning(echo: bool, split: int) -> None:
    def script(request: ProviderRequest) -> Answer:
        if not request.prefill():
            return Answer('{"title": "Talk", "seats": many')
        assert request.prefill() == '{"title": "Talk", "seats": '
        return Answer('7, "note": null}', echo=echo, chunk=split)

    given = gw.remote.capabilities("vllm").override(routes=("prompt",))
    with served(script) as provider:
        model = model_of("chat", provider.url, dialect=given, repair=False)
        result = model.complete("an event", Event)
        assert result.value == Event(title="Talk", seats=7)
        assert [one.kind for one in result.attempts] == ["first", "resume"]
        assert provider.requests[1].body["continue_final_message"] is True


def test_repetitions_are_left_out_in_linear_time() -> None:
    for text, parts, expected in (
        (b"", [b"a", b"b"], b"ab"),
        (b"abc", [b"abc", b"d"], b"d"),
        (b"abc", [b"a", b"b", b"cd"], b"d"),
        (b"abc", [b"ab", b"x"], b"abx"),
        (b"abc", [b"x"], b"x"),
        (b"abc", [b"ab"], b"ab"),
        (b"aa", [b"a", b"aa"], b"aaa"),
    ):
        echo = Echo(text)
        found = b"".join(echo.without(part, lambda data: data == b"aa") for part in parts)
        assert found + echo.rest() == expected, (text, parts)
    echo, started = Echo(b"x" * 4_000_000), time.process_time()
    for _ in range(40_000):
        assert echo.without(b"x", lambda _: False) == b""
    assert time.process_time() - started < 2  # copying what came before for each part would take minutes


def test_a_text_that_may_repeat_itself_is_no_echo() -> None:
    given = gw.remote.capabilities("vllm").override(routes=("prompt",))
    with served([Answer("abX"), Answer("ab.")]) as provider:
        model = model_of("chat", provider.url, dialect=given, repair=False)
        assert model.generate("letters", gw.Regex(r"(ab)+\.")) == "abab."
        assert provider.requests[1].prefill() == "ab"


def test_an_enforced_answer_is_requested_again_and_a_shown_one_continued() -> None:
    """An endpoint applies a constraint to the text that it adds, so a continuation is sent without it."""
    lost = Answer(TEXT, chunk=4, drop_after=5)
    for kind, dialect in (("chat", "vllm"), ("mistral", "mistral")):
        with served([lost, Answer()]) as provider:
            result = model_of(kind, provider.url, dialect=dialect).complete("an event", Event)
            assert [one.kind for one in result.attempts] == ["first", "again"]
            assert isinstance(result.value, Event)
            assert not provider.requests[1].prefill()
            assert provider.requests[1].constraint() is not None
    with served([lost, Answer(TEXT[20:], echo=True)]) as provider:
        stream = model_of("chat", provider.url, dialect="vllm").stream("an event", Event)
        assert "".join(stream) == TEXT
        assert [one.kind for one in stream.results.attempts] == ["first", "resume"]
        assert provider.requests[1].prefill() == TEXT[:20]
        assert provider.requests[1].constraint() is None
        assert "JSON Schema" in provider.requests[1].messages()[0][1]
    with served([lost, Answer()]) as provider, pytest.raises(ConnectionLostError):
        model_of("chat", provider.url, dialect="vllm", resume=False).complete("an event", Event)


def test_the_formatter_always_gives_a_valid_value() -> None:
    local = gw.load("tiny")
    with served(Answer("The talk has three seats, I think.")) as provider:
        model = model_of("chat", provider.url, dialect="unknown", formatter=local, attempts=1)
        result = model.complete("an event", Event, max_tokens=200)
        assert isinstance(result.value, Event)
        assert result.repairs == ("formatter",)
        assert [one.kind for one in result.attempts] == ["first", "formatter"]


def test_a_refused_schema_takes_the_next_route() -> None:
    def script(request: ProviderRequest) -> Answer:
        if "output_config" in request.body:
            return Answer(status=400, message="The compiled grammar is too large")
        return Answer(TEXT)

    with served(script) as provider:
        result = model_of("anthropic", provider.url).complete("an event", Event)
        assert result.plan is not None
        assert result.plan.route == "prompt"
        assert [one.kind for one in result.attempts] == ["first", "other route"]
        with pytest.raises(LimitExceededError, match="heaviest parts"):
            model_of("anthropic", provider.url, require="exact").complete(
                "an event", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
            )


def test_attempts_and_cost_are_bounded() -> None:
    with served(Answer("no")) as provider:
        for attempts in (1, 3):
            before = len(provider.requests)
            with pytest.raises(InvalidTextError) as found:
                model_of("chat", provider.url, attempts=attempts).generate("an event", Event)
            assert len(provider.requests) - before == attempts == found.value.usage.requests
        provider.script = Answer(TEXT, output_tokens=1000)
        model = model_of("chat", provider.url, prices=Prices(1.0, 10.0), max_cost=0.015)
        model.generate("an event", Event)
        model.generate("an event", Event)
        with pytest.raises(LimitExceededError, match="max_cost"):
            model.generate("an event", Event)


def test_rate_limits() -> None:
    with served(Answer(TEXT, delay=0.05)) as provider:
        model = model_of("chat", provider.url, rate_limit=RateLimit(max_concurrency=1))
        started = time.monotonic()
        model.generate(["a", "b", "c"], Event)
        assert time.monotonic() - started >= 0.15
        provider.script = [Answer(status=429, retry_after="0.4"), Answer(TEXT)]
        model = model_of("chat", provider.url)
        with pytest.raises(RateLimitError):
            model.generate("a", Event)
        started = time.monotonic()
        model.generate("a", Event)
        assert time.monotonic() - started >= 0.3  # the next request waits as Retry-After demands
    with pytest.raises(ValueError, match="requests"):
        RateLimit(requests=0)


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("chat", {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "400ms"}),
        ("chat", {"x-ratelimit-remaining-tokens": "20", "x-ratelimit-reset-tokens": "0m0.4s"}),
        ("anthropic", {"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "LATER"}),
    ],
)
@pytest.mark.parametrize("status", [200, 429])
def test_limits_in_headers_are_obeyed(kind: str, headers: dict[str, str], status: int) -> None:
    later = (datetime.now(timezone.utc) + timedelta(seconds=1.5)).isoformat(timespec="milliseconds")
    headers = {name: value.replace("LATER", later.replace("+00:00", "Z")) for name, value in headers.items()}
    with served([Answer(TEXT, status=status, headers=headers), Answer(TEXT)]) as provider:
        model = model_of(kind, provider.url)
        started = time.monotonic()
        model.generate(["a"], Event, return_exceptions=True)
        model.generate("b", Event, max_tokens=100)
        assert time.monotonic() - started >= 0.35
        provider.script = Answer(TEXT, headers={name: value for name, value in headers.items() if "remaining" in name})
        model.generate("c", Event)  # without a time, there is nothing to wait for
        reset = next(name for name in headers if "reset" in name)
        provider.script = Answer(TEXT, headers={**headers, reset: "1h0m0s"})
        model.generate("d", Event)
        with pytest.raises(RateLimitError, match=r"demands to wait for 3,[56]"):
            model.generate("e", Event)


@pytest.mark.parametrize(
    "value", ["", "soon", "-5s", "1e9s", "9" * 90, "inf", "nan", "2026-99-99T00:00:00Z", "\u0663s"]
)
def test_hostile_limits_in_headers(value: str) -> None:
    limit = RateLimit(max_wait=1e12)
    for name in ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"):
        other = {"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "1s"}
        limit.observe({**other, name: value})
        with limit.slot(1):
            pass
    limit.observe(None)
    limit.observe({"x-ratelimit-reset-requests": ["1s"]})


def test_options() -> None:
    with served() as provider:
        model = model_of("chat", provider.url)
        with pytest.raises(UnsupportedError, match="logprobs"):
            model.generate("x", int, logprobs=2)
        with pytest.raises(TypeError, match="unknown options"):
            model.generate("x", int, max_token=2)
        with pytest.raises(TypeError, match="token ids"):
            model.generate([1, 2], int)
        with pytest.raises(ValueError, match="exclude"):
            model.generate("x", int, stop="a")
        with pytest.raises(UnsupportedError, match="probabilities"):
            gw.score(model_of("anthropic", provider.url), "x", ["a", "b"])
        with pytest.raises(UnsupportedError, match="end token"):
            gw.score(model, "x", ["a", "b"], end=True)
        with pytest.raises(UnsupportedError, match="chat"):
            gw.score(model_of("responses", provider.url), "x", ["a", "b"])
        with pytest.raises(ValueError, match="different"):
            gw.score(model, "x", ["a", "a"])
        assert provider.requests == []
        errors = gw.generate(model, ["a", "b"], gw.Regex("(a|b)"), return_exceptions=True)
        assert set(errors) <= {"a", "b"}
        gw.generate(model, [gw.GenerationRequest("a", int, temperature=0.5), gw.GenerationRequest("b")], Event, seed=3)
        assert {request.body.get("temperature") for request in provider.requests} == {None, 0.5}


def test_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with served() as provider:
        model = gw.load("openai:m", base_url=f"{provider.url}/v1", dialect="openai")
        assert isinstance(gw.generate(model, "an event", Event), Event)
    with pytest.raises(TypeError, match="base_url"):
        gw.load("tiny", base_url="http://x")
    with pytest.raises(ValueError, match="no effect"):
        gw.load("openai:m", device="cuda")


@pytest.mark.parametrize(
    ("kind", "route", "tool"),
    [
        ("chat", "strict_tool", "function"),
        ("chat", "custom_tool", "custom"),
        ("responses", "strict_tool", "function"),
        ("responses", "custom_tool", "custom"),
        ("anthropic", "strict_tool", "tool"),
    ],
)
def test_answers_as_the_input_of_a_tool(kind: str, route: str, tool: str) -> None:
    given = gw.remote.capabilities("anthropic" if kind == "anthropic" else "openai").override(routes=(route,))
    with served(HONEST if route == "strict_tool" else Answer('{"title": "Talk"}')) as provider:
        model = model_of(kind, provider.url, dialect=given)
        assert isinstance(model.generate("an event", Named), Named)
        assert provider.requests[-1].tool() == tool
        assert "".join(model.stream("an event", Named)).startswith("{")
        provider.script = Answer('{"title": 3}')
        with pytest.raises(InvalidTextError):
            model_of(kind, provider.url, dialect=given, attempts=1).generate("an event", Named)


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
@pytest.mark.parametrize("separator", [None, "\n"])
def test_structural_tags(dialect: str, separator: str | None) -> None:
    given = gw.remote.capabilities(dialect).override(routes=(f"{dialect}_structural_tag", "prompt"))
    tags = [gw.Tag("<call>", {"type": "object"}, "</call>"), gw.Tag("<n>", gw.Regex("[0-9]{3}"), "</n>")]
    constraint = gw.Tags(tags, separator=separator, least=int(separator is not None))
    with served([Answer(seed=seed) for seed in range(6)]) as provider:
        model = model_of("chat", provider.url, dialect=given)
        plan = gw.plan(model, constraint)
        assert (plan.route, plan.guarantee) == (f"{dialect}_structural_tag", "checked")
        assert gw.plan(model, gw.Tags(tags[1:], separator=separator)).guarantee == "exact"
        assert gw.plan(model, gw.Tags(tags, separator=separator, least=2)).route == "prompt"
        found = [model.complete("call", constraint) for _ in range(6)]
        assert {one.plan.route for one in found} == {plan.route}
        provider.script = Answer("<n>123</n>")
        (tagged,) = model.generate("call", constraint)
        assert tagged.value == "123"
        provider.script = Answer("<n>12</n>")
        with pytest.raises(InvalidTextError):
            model_of("chat", provider.url, dialect=given, resume=False, attempts=1).generate("call", constraint)


def test_tgi() -> None:
    with served() as provider:
        model = model_of("chat", provider.url, dialect="tgi")
        assert isinstance(model.generate("an event", Event), Event)
        assert set(model.generate("letters", gw.Regex("[ab]{3}"))) <= set("ab")


def test_a_probe_is_stored(tmp_path: Path) -> None:
    with served() as provider:
        found = probe(model_of("chat", provider.url, dialect="vllm"))
        found.save(tmp_path / "probe.json")
        assert gw.remote.Probe.load(tmp_path / "probe.json") == found
        given = found.capabilities(gw.remote.capabilities("vllm"))
        plan = gw.plan(model_of("chat", provider.url, dialect=given), Event)
        assert plan.evidence[-1].kind == "probe"
    for text in ("", "[]", "{}", "{" * 10_000, '{"base_url": 1}', json.dumps({**found.to_json(), "verdicts": [[1]]})):
        (tmp_path / "probe.json").write_text(text, "utf-8")
        with pytest.raises(InvalidFileError):
            gw.remote.Probe.load(tmp_path / "probe.json")
    for path in (tmp_path, tmp_path / "missing" / "probe.json"):
        with pytest.raises(InvalidFileError):
            found.save(path)
        with pytest.raises(InvalidFileError):
            gw.remote.Probe.load(path)


def test_the_probe_tells_what_the_endpoint_does() -> None:
    with served() as provider:
        found = probe(model_of("chat", provider.url, dialect="vllm"))
        assert found.enforced("json_schema")
        assert found.enforced("vllm_grammar")
        assert found.usage.requests == len(provider.requests)
        provider.script = Answer("Paris is the capital of France.")
        ignored = probe(model_of("chat", provider.url, dialect="vllm"))
        assert {one.verdict for one in ignored.verdicts} == {"ignored"}
        assert not ignored.enforced("json_schema")
        assert "prompt" in ignored.capabilities(model_of("chat", provider.url, dialect="vllm").capabilities).routes

        def refusing(request: ProviderRequest) -> Answer:
            return Answer("Paris.") if request.constraint() is None else Answer(status=400, message="unknown member")

        provider.script = refusing
        assert probe(model_of("chat", provider.url)).verdicts[0].verdict == "refused"

        def loosened(request: ProviderRequest) -> Answer:
            words = request.messages()[-1][1]
            if "this JSON: " in words and any(name in words for name in ("code", '"l"', '"n"', '"s"')):
                return Answer(words.partition("this JSON: ")[2])
            return Answer() if request.constraint() is not None else Answer("Paris.")

        provider.script = loosened
        verdicts = {one.case: one.verdict for one in probe(model_of("chat", provider.url, dialect="openai")).verdicts}
        assert verdicts["structure"] == "enforced"
        assert verdicts["pattern"] == verdicts["minItems"] == verdicts["maximum"] == "loosened"
        provider.script = Answer(status=401)
        with pytest.raises(AuthenticationError):
            probe(model_of("chat", provider.url))


MODES: list[tuple[str, Any, str]] = [
    ("honest", {}, "enforced"),
    ("reasons", {"reasoning": "A city."}, "enforced"),
    ("divides characters", {"split_bytes": 1}, "enforced"),
    ("reports no tokens", {"usage": "never"}, "enforced"),
    ("ignores", {"text": "Paris is the capital."}, "ignored"),
    ("prose around JSON", {"text": 'Sure: {"city": "Paris"}'}, "ignored"),
    ("code fence", {"text": '```json\n{"city": "Paris"}\n```'}, "ignored"),
    ("another type", {"text": '{"city": 1}'}, "ignored"),
    ("cut", {"text": '{"city": "Par', "finish": "length"}, "unclear"),
    ("cut prose", {"text": "Paris is", "finish": "length"}, "ignored"),
    ("refuses to answer", {"text": "I cannot.", "finish": "refusal"}, "error"),
    ("ends without a finish reason", {"text": '{"city": "Par', "finish": ""}, "error"),
    ("drops the connection", {"text": '{"city": "Paris"}', "chunk": 4, "drop_after": 2}, "error"),
    ("unknown member", {"status": 400}, "refused"),
    ("invalid schema", {"status": 422}, "refused"),
    ("crashes", {"status": 500}, "error"),
    ("overloaded", {"status": 529}, "error"),
    ("no JSON", {"raw": b"data: {\n\n"}, "error"),
]


def test_the_probe_is_right_about_each_mode(kind: str) -> None:
    given: dict[str, Any] = {}

    def script(request: ProviderRequest) -> Answer:
        return Answer("The capital is Paris.") if request.constraint() is None else Answer(**given)

    with served(script) as provider:
        model = model_of(kind, provider.url)
        for name, options, expected in MODES:
            given = options
            found = probe(model)
            assert found.verdicts[0].case == "structure"
            assert found.verdicts[0].verdict == expected, (name, found)
            assert found.enforced("json_schema") == (expected == "enforced"), (name, found)


def test_the_probe_takes_no_luck_for_enforcement() -> None:
    def script(request: ProviderRequest) -> Answer:
        """Enforces types only. The model writes small numbers for any prompt."""
        return Answer('{"n": 3}') if '"n"' in request.messages()[-1][1] else Answer()

    with served(script) as provider:
        verdicts = {one.case: one.verdict for one in probe(model_of("chat", provider.url)).verdicts}
        assert verdicts["maximum"] == "unclear"
        assert verdicts["enum"] == "enforced"


def test_the_probe_judges_each_route() -> None:
    def script(request: ProviderRequest) -> Answer:
        is_regex = "regex" in request.body.get("structured_outputs", {})
        return Answer() if is_regex else Answer("Paris.")

    with served(script) as provider:
        found = probe(model_of("chat", provider.url, dialect="vllm"))
        assert {one.route for one in found.verdicts if one.verdict == "enforced"} == {"vllm_regex"}
        assert found.capabilities(gw.remote.capabilities("vllm")).routes == ("vllm_regex", "prompt")


@pytest.mark.parametrize(
    "dialect", ["vllm", "sglang", "llama-server", "tgi", "fireworks", "deepseek", "openai", "azure", "guideway", "xai"]
)
def test_the_probe_measures_every_route(dialect: str) -> None:
    given = gw.remote.capabilities(dialect)
    unmeasured = {"prompt", "json_object"}
    with served() as provider:
        found = probe(model_of("chat", provider.url, dialect=given))
        assert {one.route for one in found.verdicts} >= set(given.routes) - unmeasured
        assert {one.verdict for one in found.verdicts if one.case == "text"} == {"enforced"}
        assert found.capabilities(given).routes == given.routes
        provider.script = Answer("Paris is the capital of France.")
        assert set(probe(model_of("chat", provider.url, dialect=given)).capabilities(given).routes) <= unmeasured


def test_the_command_probe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from guideway.cli import main

    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with served() as provider:
        arguments = ["probe", "--model", "m", "--base-url", f"{provider.url}/v1", "--dialect", "openai"]
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        shown = capsys.readouterr().out
        assert ended.value.code == 0, shown
        assert "json_schema" in shown
        assert SECRET not in shown
        provider.script = Answer("Paris.")
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--json"])
        assert ended.value.code == 1
        assert '"ignored"' in capsys.readouterr().out


def test_unknown_clients() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="client"):
        remote(object(), "m")


# -- hosts and event loops


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_request_goes_to_another_host(kind: str, asynchronous: bool, status: int) -> None:
    with served() as other:

        def script(request: ProviderRequest) -> Answer:
            return Answer(status=status, headers={"location": other.url + request.path})

        with served(script) as provider:
            model = model_of(kind, provider.url, asynchronous=asynchronous)
            with pytest.raises(RemoteError, match=r"redirects the request to another host, 127\.0\.0\.1:") as found:
                asyncio.run(gw.agenerate(model, "an event", Event)) if asynchronous else model.generate("x", Event)
            assert provider.requests
            assert other.requests == []
            assert not found.value.retryable
            assert found.value.usage.requests == 1


def test_a_redirect_of_the_same_host_is_followed() -> None:
    def script(request: ProviderRequest) -> Answer:
        if request.path.startswith("/v2"):
            return Answer(TEXT)
        return Answer(status=307, headers={"location": request.path.replace("/v1", "/v2")})

    with served(script) as provider:
        assert model_of("chat", provider.url).generate("an event", Event).seats == 3


def test_one_asynchronous_client_in_several_event_loops(kind: str) -> None:
    with served([Answer(status=400), Answer(TEXT), Answer(status=400)] * 3 + [Answer(TEXT)]) as provider:
        model = model_of(kind, provider.url, asynchronous=True)

        async def calls() -> list[object]:
            found: list[object] = await gw.agenerate(
                model, ["a", "b", "c"], Event, batch_size=1, return_exceptions=True
            )
            return [type(one) for one in found]

        for _ in range(3):
            assert asyncio.run(calls()) == [RemoteError, Event, RemoteError]
        assert isinstance(model.generate("an event", Event), Event)
        assert isinstance(asyncio.run(gw.agenerate(model, "an event", Event)), Event)


def test_a_client_with_a_custom_http_client_serves_one_event_loop() -> None:
    openai = pytest.importorskip("openai", reason="the official SDK is tested")
    with served(Answer(TEXT)) as provider:
        client = openai.AsyncOpenAI(
            base_url=f"{provider.url}/v1", api_key=SECRET, max_retries=0, http_client=openai.DefaultAsyncHttpxClient()
        )
        model = remote(client, "m", dialect="openai")
        assert isinstance(asyncio.run(gw.agenerate(model, "an event", Event)), Event)
        with pytest.raises(UnsupportedError, match="event loop"):
            asyncio.run(gw.agenerate(model, "an event", Event))


# -- hostile endpoints


def sse(*events: Any) -> bytes:
    lines = [f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in events]
    return "".join(lines).encode("utf-8", "surrogatepass")


WRONG: list[Any] = [None, True, -1, 1e400, "x", [], {}, [[]], [{}], {"a": 1}, "é" * 100, 10**30, -(10**400)]


def mutated(value: Any, draw: random.Random) -> Any:
    """Return a JSON value with one part of another type."""
    places: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        one = todo.pop()
        for key in list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ():
            places.append((one, key))
            todo.append(one[key])
    holder, key = draw.choice(places)
    holder[key] = draw.choice(WRONG)
    return value


@pytest.mark.parametrize("seed", range(2))
def test_wrong_types_in_every_field(kind: str, seed: int) -> None:
    """Every answer of a wrong form ends in a value or in an error of this package."""
    from guideway.testing.provider import _events

    draw = random.Random(seed)
    forms: dict[str, Any] = {"chat": "chat", "responses": "responses", "anthropic": "anthropic", "google": "google"}

    def script(request: ProviderRequest) -> Answer:
        answer = Answer(TEXT, output_tokens=5, top_logprobs=[("a", -1.0), ("b", -2)])
        events, final = _events(forms.get(kind, "chat"), answer, [TEXT[:20], TEXT[20:]], "")
        made = []
        for _, data in [*events, *final]:
            head, _, body = data.decode().partition("data: ")
            changed = body.strip()
            if changed.startswith("{") and draw.random() < 0.4:
                changed = json.dumps(mutated(json.loads(changed), draw))
            made.append(f"{head}data: {changed}\n\n")
        return Answer(raw="".join(made).encode())

    with served(script) as provider:
        model = model_of(kind, provider.url, attempts=1)
        given = gw.remote.capabilities("unknown").override(routes=("scored_choice",))
        scored = model_of(kind, provider.url, attempts=1, dialect=given)
        for number in range(60):
            try:
                if number >= 40 and kind == "chat":
                    result = scored.complete("an event", gw.Choice(["a", "b"]))
                else:
                    result = model.complete("an event", Event)
            except GuidewayError as problem:
                shown = str(problem)
            else:
                shown = repr(result)
                assert isinstance(result.value, Event) or result.value in ("a", "b")
                assert all(type(number) is int and number >= 0 for number in vars(result.usage).values())
            assert SECRET not in shown


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(raw=sse('{"a": ' * 5000)), RemoteError),
        (Answer(raw=b"data: \xff\xfe{\n\n"), RemoteError),
        (Answer(raw=b"\x00" * 1000), RemoteError),
        (Answer(raw=sse({"error": {"message": "busy", "type": "overloaded_error"}})), RemoteError),
        (
            Answer(raw=b'{"error": {"message": "no", "code": 429}}', headers={"content-type": "application/json"}),
            RemoteError,
        ),
        (Answer(raw=b"<html>login</html>", headers={"content-type": "text/html"}), RemoteError),
        (Answer(raw=b"not gzip", headers={"content-encoding": "gzip"}), RemoteError),
        (Answer(raw=b"anything", headers={"content-encoding": "zstd"}), LimitExceededError),
        (Answer(raw=gzip.compress(b"data: " + b"0" * 5_000_000)), RemoteError),
        (
            Answer(raw=gzip.compress(b"data: " + b"0" * 5_000_000), headers={"content-encoding": "gzip"}),
            GuidewayError,
        ),
        (Answer(raw=b"data: " + b"x" * 300_000), LimitExceededError),
        (Answer(status=500, message="x" * 100_000), RemoteError),
        (Answer(status=204, raw=b""), RemoteError),
    ],
)
def test_answers_of_a_wrong_form(
    kind: str, answer: Answer, expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guideway.remote.adapters.http.MAX_BODY", 200_000)
    monkeypatch.setattr("guideway.remote.adapters.http.MAX_COMPRESSED", 2_000)
    with served(answer) as provider:
        with pytest.raises(expected) as found:
            model_of(kind, provider.url, attempts=1).generate("an event", Event)
        assert len(str(found.value)) < 5000


def test_errors_inside_a_stream_have_their_class() -> None:
    with served() as provider:
        model = model_of("chat", provider.url, attempts=1)
        for error, code in ((OverloadedError, "overloaded_error"), (RateLimitError, 429), (AuthenticationError, 401)):
            provider.script = Answer(raw=sse({"error": {"message": f"no {SECRET}", "code": code}}))
            with pytest.raises(error) as found:
                model.generate("an event", Event)
            assert SECRET not in str(found.value)


@pytest.mark.parametrize("member", ["text", "reasoning", "nothing"])
def test_endless_streams_end(kind: str, member: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guideway.remote.dialogue.MAX_EVENTS", 300)
    monkeypatch.setattr("guideway.remote.dialogue.MAX_ANSWER", 100_000)
    text = {"text": "x" * 1000, "reasoning": "", "nothing": ""}[member]
    answer = Answer(text, chunk=1000, endless=True, reasoning="r" * 200_000 if member == "reasoning" else "")
    with served(answer) as provider:
        model = model_of(kind, provider.url)
        with pytest.raises(LimitExceededError, match="more than"):
            model.generate("a text", max_tokens=1)
        assert model.usage.aborted == 1


def test_streams_take_linear_time() -> None:
    """The work for each chunk does not depend on what came before."""

    def seconds(text: str) -> float:
        constraint = gw.JsonSchema({"type": "array", "items": {"type": "string"}})
        request = Request(({"role": "user", "content": "x"},), max_tokens=10_000)
        dialogue = Dialogue(request, constraint, gw.plan("unknown", constraint), FailureSettings(), streaming=True)
        shown = []
        started = time.process_time()
        for at in range(0, len(text), 4):
            assert not dialogue.take([Event_("text", text[at : at + 4])])
            shown.append(dialogue.shown())
        used = time.process_time() - started
        dialogue.take([Event_("finish", "stop")])
        dialogue.ended()
        assert "".join([*shown, dialogue.shown()]) == text.removeprefix("```json\n").removesuffix("\n```").strip()
        return used

    for before, piece, after in (
        ('["', "a", '"]'),
        ("[", " ", '"a"]'),
        ('```json\n["', "`", '"]\n```'),
        (" ", "\n", "[]"),
    ):
        small, large = (seconds(before + piece * size + after) for size in (25_000, 200_000))
        assert large < 30 * small + 0.2, (piece, small, large)  # 8 times as much; 64 times if the work were quadratic


@pytest.mark.parametrize(
    "value", ["1000000000", "-5", "nan", "inf", "-inf", "Fri, 31 Dec 99999 23:59:59 GMT", "", "soon"]
)
def test_hostile_retry_after(value: str) -> None:
    with served([Answer(status=429, retry_after=value), Answer(TEXT)]) as provider:
        model = model_of("chat", provider.url)
        started = time.monotonic()
        with pytest.raises(RateLimitError):
            model.generate("an event", Event)
        if value == "1000000000":
            with pytest.raises(RateLimitError, match="max_wait") as found:
                model.generate("an event", Event)
            assert found.value.retry_after is not None
            assert len(provider.requests) == 1
        else:
            assert model.generate("an event", Event).seats == 3
        assert time.monotonic() - started < 5


# -- scores


@pytest.mark.parametrize("asynchronous", [False, True])
def test_scores_of_first_tokens(asynchronous: bool) -> None:
    top = [("yes", -0.25), ("no", -1.75), ("maybe", -4.0)]
    with served(Answer("yes", top_logprobs=top, input_tokens=9, output_tokens=1)) as provider:
        model = model_of("chat", provider.url, asynchronous=asynchronous)
        no, yes = gw.score(model, "Is it?", ["no", "yes"])
        assert (no.option, no.logprob, yes.logprob) == ("no", -1.75, -0.25)
        assert yes.probability == pytest.approx(math.exp(-0.25) / (math.exp(-0.25) + math.exp(-1.75)))
        assert provider.requests[0].body["top_logprobs"] == 20
        assert provider.requests[0].body.get("stream") is not True
        assert (model.usage.requests, model.usage.input, model.usage.output) == (1, 9, 1)
        with pytest.raises(UnsupportedError, match="'perhaps' is not one of the 3"):
            gw.score(model, "Is it?", ["yes", "perhaps"])
        assert len(gw.score(model, ["Is it?", "And now?"], ["yes", "no"])) == 2
        provider.script = Answer("yes")
        with pytest.raises(UnsupportedError, match="gave no log-probabilities"):
            gw.score(model, "Is it?", ["yes", "no"])
        provider.script = Answer("yes", top_logprobs=[("yes", 3.0), ("no", -1.0)])
        with pytest.raises(RemoteError, match="as a log-probability"):
            gw.score(model, "Is it?", ["yes", "no"])
        provider.script = Answer(status=529)
        with pytest.raises(OverloadedError):
            gw.score(model, "Is it?", ["yes", "no"])


def test_scores_of_whole_options() -> None:
    def script(request: ProviderRequest) -> Answer:
        tokens = {"certainly": [("certain", -1.0), ("ly", -0.5)], "no": [("no", -2.0)], "é": [("\ufffd", -1.0)]}
        assert request.body["continue_final_message"] is True
        prompt = [("<s>", 0.0), ("user", -3.0), ("\n", -0.1)]
        return Answer("x", prompt_logprobs=[*prompt, *tokens[request.prefill()]], input_tokens=5, output_tokens=1)

    with served(script) as provider:
        model = model_of("chat", provider.url, dialect="vllm")
        certainly, no = gw.score(model, "Is it?", ["certainly", "no"])
        assert (certainly.logprob, no.logprob) == (-1.5, -2.0)
        assert certainly.probability + no.probability == pytest.approx(1)
        assert model.usage.requests == 2
        with pytest.raises(UnsupportedError, match="first token begins before"):
            gw.score(model, "Is it?", ["é", "no"])


@pytest.mark.parametrize(
    ("tokens", "options", "expected"),
    [
        ([("yes", -0.25), ("no", -1.75)], ["no", "yes"], "yes"),
        ([("ye", -0.1), ("no", -2.0)], ["no", "yes"], None),  # "yes" may be more probable than "no"
        ([("ye", -3.0), ("no", -2.0)], ["no", "yes"], "no"),
        ([("no", -2.0), ("x", -1.0)], ["no", "perhaps"], None),  # "perhaps" may be as probable as "no"
        ([("no", -1.0), ("x", -2.0)], ["no", "perhaps"], "no"),
        ([("yes", -1.0), ("x", -2.0)], ["yes", "yesterday"], None),
        ([("x", -1.0)], ["no", "yes"], None),
        ([], ["no", "yes"], None),
        ([("yes", float("nan")), ("no", True), ("no", None), ("yes", "1"), ("yes", 5.0)], ["no", "yes"], None),
    ],
)
def test_the_most_probable_option(tokens: list[tuple[str, Any]], options: list[str], expected: str | None) -> None:
    assert most_probable(tokens, options) == expected


def test_a_choice_by_first_tokens() -> None:
    given = gw.remote.capabilities("unknown").override(routes=("scored_choice", "prompt"))
    options = gw.Choice(["no", "yes"])
    clear = Answer("Well", finish="length", top_logprobs=[("Well", -0.1), ("yes", -3.0), ("no", -4.0)])
    unclear = Answer("Well", finish="length", top_logprobs=[("Well", -0.1)])
    with served(clear) as provider:
        model = model_of("chat", provider.url, dialect=given)
        assert gw.plan(model, options).guarantee == "checked"
        result = model.complete("Is it?", options, temperature=0.5)
        assert (result.value, result.finish_reason, result.usage.requests) == ("yes", "stop", 1)
        body = provider.requests[0].body
        assert (body["max_tokens"], body["temperature"], body["logprobs"], body["top_logprobs"]) == (1, 1.0, True, 20)
        assert list(model.stream("Is it?", options)) == ["yes"]
        assert gw.plan(model, gw.Choice([str(number) for number in range(21)])).route == "prompt"
        assert gw.plan(model, Event).route == "prompt"
        provider.script = [unclear, Answer("no")]
        result = model.complete("Is it?", options)
        assert (result.value, [one.kind for one in result.attempts]) == ("no", ["first", "other route"])
        provider.script = [unclear]
        provider._left = None
        with pytest.raises(InvalidTextError) as found:
            model_of("chat", provider.url, dialect=given, attempts=1).complete("Is it?", options)
        assert found.value.usage == Usage(7, 0, 1, 0, 1)
        provider.script = Answer("no")  # an endpoint that ignores `logprobs`
        assert model.generate("Is it?", options) == "no"
