"""Remote models with the official SDKs against `Provider`, a real HTTP server on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from pydantic import BaseModel

import guideway as gw
from guideway.errors import (
    AuthenticationError,
    InvalidTextError,
    UnsupportedError,
)
from guideway.remote import Usage, remote
from guideway.testing import Answer, Provider, ProviderRequest
from tests.helpers.remote_clients import HONEST, SECRET, TEXT, Event, Named, model_of, served


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


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        *(({"stop": value}, TypeError, "stop must be a string or strings") for value in (5, None, ["a", 5], {"a": 1})),
        *(({"stop": value}, ValueError, "stop must be a string or strings") for value in ("", ["\ud800"])),
        ({"temperature": "hot"}, TypeError, "temperature must be a number"),
        ({"temperature": float("nan")}, ValueError, "temperature must be"),
        ({"top_p": 2}, ValueError, "top_p must be"),
        ({"top_p": "most"}, TypeError, "top_p must be a number"),
    ],
)
def test_options_with_wrong_values(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with served() as provider:
        with pytest.raises(error, match=words):
            model_of("chat", provider.url).generate("x", **options)
        assert provider.requests == []


@pytest.mark.parametrize(
    "options", [{"top_p": 0.9}, {"top_p": 0}, {"top_p": 0.5, "temperature": 0}, {"temperature": 2.5}]
)
def test_temperature_and_top_p_are_sent_as_given(options: dict[str, Any]) -> None:
    with served() as provider:
        model_of("chat", provider.url).generate("x", **options)
        body = provider.requests[0].body
        assert {name: body[name] for name in ("temperature", "top_p") if name in body} == options


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
    with pytest.raises(ValueError, match=r"^device= has no effect"):
        gw.load("openai:m", device="cuda")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(AuthenticationError, match="no API key is set"):
        gw.load("openai:m")


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


def test_unknown_clients() -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="client"):
        remote(object(), "m")


def test_messages_with_several_parts(kind: str) -> None:
    """The instructions of a plan are one more part of the last message."""
    parts = [{"type": "text", "text": "an "}, {"type": "text", "text": "event"}]
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]
    with served(Answer(TEXT)) as provider:
        model = model_of(kind, provider.url, dialect=gw.remote.capabilities("unknown"))
        assert model.generate([messages], Event)[0].seats == 3
        sent = json.dumps(provider.requests[0].body)
        assert "'type'" not in sent
        assert "Answer only with a JSON value" in sent
        assert "Be brief." in sent
        if kind == "google":
            picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
            with pytest.raises(UnsupportedError, match="text only"):
                model.generate([picture], Event)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_endpoint_that_streams_no_constrained_answers(asynchronous: bool) -> None:
    def script(request: ProviderRequest) -> Answer:
        if request.streams and "response_format" in request.body:
            return Answer(status=400, message="response_format does not support streaming")
        return Answer(TEXT, reasoning="")

    with served(script) as provider:
        model = model_of("chat", provider.url, dialect="groq", asynchronous=asynchronous)
        if asynchronous:
            result = asyncio.run(gw.acomplete(model, "an event", Event))
        else:
            result = gw.complete(model, "an event", Event)
        assert (result.value.seats, len(result.attempts)) == (3, 1)
        assert (result.usage.input, result.usage.output) == (provider.input_tokens, provider.output_tokens)
        assert "".join(gw.stream(model, "an event", Event)) == result.text
        assert "".join(gw.stream(model, "say ok"))
        assert [one.streams for one in provider.requests] == [False, False, True]


def test_no_prompts() -> None:
    async def asynchronous() -> None:
        assert await gw.acomplete(model, [], Event) == []

    with served() as provider:
        model = model_of("chat", provider.url)
        assert gw.complete(model, [], Event) == []
        assert gw.generate(model, [], Event, n=2) == []
        asyncio.run(asynchronous())
        assert provider.requests == []


def test_samplers() -> None:
    seen: list[dict[str, Any]] = []

    def completion(**given: Any) -> Any:
        seen.append(given)
        return {"choices": [{"message": {"content": "7"}, "finish_reason": "stop"}]}

    model = remote(completion, "m")
    model.generate("n", int, sampler=gw.Sampler(0.5, top_p=0.9))
    assert (seen[0]["temperature"], seen[0]["top_p"]) == (0.5, 0.9)
    model.generate("n", int, sampler=gw.Sampler(0.0))
    assert seen[1]["temperature"] == 0
    assert "top_p" not in seen[1]
    with pytest.raises(UnsupportedError, match="the stage 'top_k' of the sampler has no effect"):
        model.generate("n", int, sampler=gw.Sampler(1.0, top_k=5))
    with pytest.raises(ValueError, match="sampler= and top_p= exclude each other"):
        model.generate("n", int, sampler=gw.Sampler(1.0), top_p=0.5)
    with pytest.raises(TypeError, match=r"sampler must be a guideway\.Sampler"):
        model.generate("n", int, sampler="greedy")
    assert len(seen) == 2


def test_a_wrong_guarantee_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="require must be 'exact', 'checked', 'narrowed' or 'any', got 'most'"):
        remote(lambda **_: None, "m", require="most")  # type: ignore[arg-type]  # wrong on purpose


def test_functions_that_return_whole_answers() -> None:
    class Whole(BaseModel):
        choices: list[Any]
        usage: dict[str, int]

    choice = {"message": {"content": "7", "reasoning_content": "hm"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 2, "completion_tokens": 3}
    for answer in (Whole(choices=[choice], usage=usage), {"choices": [choice, choice], "usage": usage}):
        result = gw.complete(remote(lambda answer=answer, **_: answer, "m"), "n", int)
        assert (result.value, result.reasoning, result.usage.output) == (7, "hm", 3)


def test_cancelling_before_the_answer_begins_closes_the_connection(kind: str) -> None:
    async def run(provider: Provider) -> None:
        model = model_of(kind, provider.url)
        task = asyncio.ensure_future(model.agenerate("an event", Event))
        while not provider.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert model.usage.aborted == 1

    with served(Answer(TEXT, delay=0.3, chunk=1, pause=0.1)) as provider:
        asyncio.run(run(provider))
        deadline = time.monotonic() + 3
        while not provider.aborted and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(provider.aborted) == 1
