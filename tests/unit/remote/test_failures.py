"""What happens after an answer that does not fit, and limits of requests."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import guideway as gw
from guideway.errors import (
    AuthenticationError,
    ConnectionLostError,
    InvalidTextError,
    LimitExceededError,
    ModelNotFoundError,
    OverloadedError,
    RateLimitError,
    RefusalError,
    RemoteError,
    RemoteNotFoundError,
    TruncatedError,
    UnsupportedError,
)
from guideway.remote import Prices, RateLimit
from guideway.remote.adapters import Event as Part, Request
from guideway.remote.answer_text import Echo
from guideway.remote.capabilities import Capabilities
from guideway.remote.dialogue import Dialogue, FailureSettings
from guideway.remote.fragments import SCHEMA_FORMS, schema_in
from guideway.remote.repair import repaired
from guideway.testing import Answer, ProviderRequest
from tests.helpers.remote_clients import SECRET, TEXT, Event, model_of, served


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=401, message=f"bad key {SECRET}"), AuthenticationError),
        (Answer(status=403), AuthenticationError),
        (Answer(status=404), RemoteNotFoundError),
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
        if error is RemoteNotFoundError:
            assert isinstance(found.value, ModelNotFoundError)
            assert found.value.provider
            assert found.value.status == 404
        if error is RateLimitError:
            assert isinstance(found.value, RateLimitError)
            assert found.value.retry_after == pytest.approx(0.01)


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


def test_a_repaired_text_has_no_white_space_around_it() -> None:
    assert repaired('/* a */ "x" // note') == ('"x"', ("comment",))
    assert repaired('Here:\n{"a": "b\\\n"}') == ('{"a": "b\\\n"}', ("text around the value",))


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


@pytest.mark.parametrize("route", SCHEMA_FORMS)
@pytest.mark.parametrize("name", ["openai", "anthropic", "google"])
def test_the_schema_of_a_fragment_is_found(route: str, name: str) -> None:
    schema = {"type": "object", "properties": {"value": {"type": "string"}, "schema": {}}}
    assert schema_in(SCHEMA_FORMS[route](Capabilities(name), schema)) == schema


def _streamed(**options: Any) -> Dialogue:
    """Return a dialogue that has shown the beginning of an answer to its caller."""
    schema = gw.JsonSchema({"type": "array", "items": {"type": "integer"}})
    request = Request(({"role": "user", "content": "numbers"},), max_tokens=10)
    dialogue = Dialogue(request, schema, gw.plan("openai", schema), streaming=True, **options)
    dialogue.plan = gw.plan("unknown", schema)
    dialogue._begin("first", dialogue._first_messages(), "")
    dialogue.take([Part("text", "[1, 2, ")])
    assert dialogue.shown() == "[1, 2,"
    return dialogue


def test_a_shown_text_is_not_replaced_by_another_route() -> None:
    dialogue = _streamed(
        settings=FailureSettings(attempts=3), size_errors=("too large",), next_plan=lambda _: gw.plan("unknown", int)
    )
    assert dialogue.plan is not None
    dialogue.plan = replace(dialogue.plan, sent={"response_format": {}})
    dialogue.ended(RemoteError("the grammar is too large", status=400))
    assert dialogue.request() is None
    with pytest.raises(LimitExceededError):
        dialogue.outcome()


def test_a_cut_answer_that_cannot_be_continued_names_the_limit_of_its_request() -> None:
    dialogue = _streamed(settings=FailureSettings(attempts=5, max_tokens="double"), continues=True)
    dialogue.ended(ConnectionLostError("lost", retryable=True))
    assert dialogue.request() is not None
    dialogue.take([Part("finish", "length")])
    dialogue.ended()
    with pytest.raises(TruncatedError, match="max_tokens=10;"):
        dialogue.outcome()


def test_the_responses_api_refuses_stop_strings() -> None:
    with served(Answer("a b c")) as provider:
        with pytest.raises(UnsupportedError, match="stop strings"):
            model_of("responses", provider.url).generate("letters", stop=["b"])
        assert not provider.requests


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


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_timeout_counts_the_waiting_for_a_rate_limit(asynchronous: bool) -> None:
    with served(Answer(TEXT)) as provider:
        limit = RateLimit(requests=1)
        model = model_of("chat", provider.url, asynchronous=asynchronous, rate_limit=limit, timeout=5)
        started = time.monotonic()
        calls = [model.generate("an event", Event)]
        with pytest.raises(RateLimitError, match="longer than `timeout` allows"):
            calls.append(model.generate("an event", Event))
        assert time.monotonic() - started < 4
        assert len(calls) == len(provider.requests) == 1
