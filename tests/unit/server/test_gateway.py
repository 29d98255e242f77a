"""A server in front of another endpoint: errors in the answers of that endpoint never reach a client."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx
import openai
import pytest
from pydantic import BaseModel, Field

import guideway as gw
from guideway.errors import AuthenticationError, LeaseTimeoutError, RemoteError
from guideway.generation import Model
from guideway.pool import ModelSpec, Pool
from guideway.remote import probe
from guideway.server import FixedModels, JoinedModels, PooledModels, UpstreamModels, load_served, upstream_models
from guideway.server.gateway import UpstreamJob, UpstreamRequest
from guideway.testing import Answer, Provider, ProviderRequest
from tests.helpers.serving import live_server

SAY: list[Any] = [{"role": "user", "content": "Ada Lovelace, 36, lives in London."}]


class Person(BaseModel):
    name: str = Field(max_length=12)
    age: int = Field(le=120)


SCHEMA = {"type": "json_schema", "json_schema": {"name": "person", "schema": Person.model_json_schema()}}


@contextmanager
def gateway(script: Any, **options: Any) -> Iterator[tuple[Any, Provider]]:
    """A client of a gateway, and the provider that answers it."""
    with Provider(script) as provider:
        models = UpstreamModels(
            openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="-", max_retries=0), ["far"], options=options
        )
        with (
            live_server(models) as live,
            openai.OpenAI(base_url=f"{live.url}/v1", api_key="none", max_retries=0) as client,
        ):
            yield client, provider


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.chat.completions.create(**{"model": "far", "messages": SAY, "max_tokens": 60, **fields})


def test_free_text_and_usage_pass_through() -> None:
    with gateway(Answer("Hello, wörld", input_tokens=9, output_tokens=4)) as (client, _):
        found = ask(client, temperature=0.5, seed=3)
        assert found.choices[0].message.content == "Hello, wörld"
        assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (9, 4)
        parts = list(ask(client, stream=True, stream_options={"include_usage": True}))
        assert "".join(part.choices[0].delta.content or "" for part in parts if part.choices) == "Hello, wörld"
        assert len([part for part in parts if part.choices and part.choices[0].delta.content]) > 1
        assert parts[-1].usage.completion_tokens == 4


def test_the_constraint_is_sent_and_checked() -> None:
    with gateway(Answer(), dialect="vllm") as (client, provider):
        found = client.chat.completions.parse(model="far", messages=SAY, response_format=Person, max_tokens=60)
        assert isinstance(found.choices[0].message.parsed, Person)
        assert provider.requests[-1].body["model"] == "far"
        assert provider.requests[-1].constraint() is not None
        text = "".join(part.choices[0].delta.content or "" for part in ask(client, response_format=SCHEMA, stream=True))
        Person.model_validate_json(text)


def test_several_texts() -> None:
    with gateway(Answer(), dialect="vllm") as (client, provider):
        found = ask(client, response_format=SCHEMA, n=3, seed=1)
        assert [choice.index for choice in found.choices] == [0, 1, 2]
        assert len(provider.requests) == 3
        texts = [""] * 3
        for part in ask(client, response_format=SCHEMA, n=3, stream=True):
            texts[part.choices[0].index] += part.choices[0].delta.content or ""
        for text in texts:
            Person.model_validate_json(text)


MISBEHAVIOURS = {
    "prose": Answer("The name is Ada and the age is 36."),
    "fence": Answer('```json\n{"name": "Ada", "age": 36}\n```'),
    "trailing comma": Answer('{"name": "Ada", "age": 36,}'),
    "wrong type": Answer('{"name": "Ada", "age": "thirty-six"}'),
    "other language": Answer("<person><name>Ada</name></person>"),
    "empty": Answer(""),
    "endless": Answer(" and so on" * 200, chunk=1000, endless=True),
}


@pytest.mark.parametrize("name", MISBEHAVIOURS)
@pytest.mark.parametrize("streams", [False, True])
def test_no_invalid_text_reaches_a_client(name: str, streams: bool) -> None:
    with gateway(MISBEHAVIOURS[name], dialect="unknown", attempts=2) as (client, _):
        try:
            found = ask(client, response_format=SCHEMA, stream=streams)
            parts = [part.choices[0].delta.content or "" for part in found] if streams else None
            text = found.choices[0].message.content if parts is None else "".join(parts)
        except openai.APIError as error:
            assert error.code == "invalid_text"  # noqa: PT017  # an answer that fits is right, too
            assert name not in ("fence", "trailing comma") or streams, "syntax is repaired"
        else:
            Person.model_validate_json(text)


@pytest.mark.parametrize("name", MISBEHAVIOURS)
@pytest.mark.parametrize("streams", [False, True])
def test_with_a_formatter_every_answer_fits(name: str, streams: bool, tiny: Model) -> None:
    with gateway(MISBEHAVIOURS[name], dialect="unknown", attempts=1, formatter=tiny) as (client, _):
        found = ask(client, response_format=SCHEMA, stream=streams)
        text = (
            "".join(part.choices[0].delta.content or "" for part in found)
            if streams
            else found.choices[0].message.content
        )
        Person.model_validate_json(text)


def test_a_cut_answer_is_marked() -> None:
    with gateway(Answer('{"name": "Ada", "a', finish="length"), dialect="vllm") as (client, _):
        found = ask(client, response_format=SCHEMA)
        assert found.choices[0].finish_reason == "length"
        with pytest.raises(openai.LengthFinishReasonError):
            client.chat.completions.parse(model="far", messages=SAY, response_format=Person)


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (Answer(status=401, message="wrong key sk-abcdefghijklmnop"), 502, "upstream_authentication"),
        (Answer(status=429, message="slow down", retry_after="7"), 429, "rate_limit_exceeded"),
        (Answer(status=404, message="no such model"), 404, None),
        (Answer(drop_after=1, text="some text"), 502, "connection_lost"),
        (Answer("I cannot answer that.", finish="refusal"), 502, "refusal"),
    ],
)
def test_errors_of_the_endpoint(answer: Answer, status: int, code: str | None) -> None:
    with gateway(answer) as (client, _), pytest.raises(openai.APIStatusError) as caught:
        ask(client)
    assert caught.value.status_code == status
    assert code is None or caught.value.code == code
    assert "sk-abc" not in str(caught.value)
    if status == 429:
        assert caught.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"extra_body": {"top_k": 5}}, "top_k"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"logprobs": True}, "logprobs"),
        ({"temprature": 1}, "temprature"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}, "tools"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "no"}}}}, None),
    ],
)
def test_fields_without_effect_are_refused(fields: dict[str, Any], param: str | None) -> None:
    fields = dict(fields)
    body = {"model": "far", "messages": SAY, **fields.pop("extra_body", {}), **fields}
    with gateway(Answer("x")) as (client, provider):
        found = httpx.post(f"{client.base_url}chat/completions", json=body)
        assert found.status_code == 400
        error = found.json()["error"]
        assert param is None or error["param"] == param, error
        assert not provider.requests, "nothing is sent"


def test_a_client_that_leaves_closes_the_connection() -> None:
    with gateway(Answer("word ", endless=True, pause=0.01)) as (client, provider):
        for number, _ in enumerate(ask(client, stream=True)):
            if number == 3:
                break
    assert len(provider.aborted) == 1


def wrong_answers(request: ProviderRequest) -> Answer:
    """What a model writes that ignores each constraint of `probe`."""
    last = request.messages()[-1][1]
    marker = "Write only this JSON: "
    return Answer(last.partition(marker)[2].partition("\n")[0] if marker in last else "hello")


def test_probe_reports_enforced_for_every_route(tiny: Model) -> None:
    with Provider(wrong_answers) as provider:
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
        direct = probe(gw.remote(client, "far", dialect="vllm"))
        assert {one.verdict for one in direct.verdicts} & {"ignored", "loosened"}
        far = openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="-", max_retries=0)
        models = UpstreamModels(far, ["far"], options={"dialect": "vllm", "formatter": tiny})
        with live_server(models) as live:
            client = openai.OpenAI(base_url=f"{live.url}/v1", api_key="none", max_retries=0)
            found = probe(gw.remote(client, "far", dialect="vllm"))
    assert {one.verdict for one in found.verdicts} == {"enforced"}, str(found)
    assert len(found.verdicts) > 10


def test_names_come_from_the_endpoint_and_local_models_are_beside_it(tiny: Model) -> None:
    with live_server(FixedModels({"far": tiny})) as far:
        pool = Pool(None, {"near": ModelSpec("tiny", load=load_served)})
        models = JoinedModels(PooledModels(pool), upstream_models(f"{far.url}/v1", {"dialect": "vllm"}))
        with live_server(models) as live, openai.OpenAI(base_url=f"{live.url}/v1", api_key="-") as client:
            assert [one.id for one in client.models.list()] == ["near", "far"]
            for name in ("near", "far"):
                found = client.chat.completions.parse(model=name, messages=SAY, response_format=Person, max_tokens=60)
                assert isinstance(found.choices[0].message.parsed, Person)
            pools: Any = httpx.get(f"{live.url}/guideway/models").json()
            assert [one["name"] for one in pools["data"]] == ["near"]


def test_all_models_are_stopped_although_one_is_in_use(tiny: Model) -> None:
    class Client:
        is_closed = False

        async def close(self) -> None:
            self.is_closed = True

    async def run() -> None:
        pool, client = Pool(None, {"near": lambda: tiny}), Client()
        models = JoinedModels(PooledModels(pool, close_seconds=0.05), UpstreamModels(client, ["far"]))
        held = pool.lease("near")
        await held.aacquire()
        with pytest.raises(LeaseTimeoutError, match="leases of near have not ended"):
            await models.stop()
        assert client.is_closed

    asyncio.run(run())


def test_all_fixed_models_are_closed_although_the_engine_of_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [load_served("tiny") for _ in range(3)]

    def fail() -> None:
        raise OSError("the device does not answer")

    async def run() -> None:
        models = FixedModels({str(number): partial(made.__getitem__, number) for number in range(3)})
        await models.start()
        monkeypatch.setattr(made[1].engine, "close", fail)
        with pytest.raises(OSError, match="the device does not answer"):
            await models.stop()
        assert all(model.is_closed for model in made)

    asyncio.run(run())


def test_sources_of_upstreams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
    (card,) = upstream_models("openai:gpt-x").cards()
    assert (card.name, card.source, card.details["bytes"]) == ("gpt-x", "openai:gpt-x", 0)
    with pytest.raises(RemoteError, match="Invalid port"):
        upstream_models("http://localhost:port/v1")
    with pytest.raises(ValueError, match="an upstream must be a URL or the name of a model of an API"):
        upstream_models("tiny")
    with monkeypatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", "http://localhost:port")
        with pytest.raises(RemoteError, match="no client for openai can be made: Invalid port"):
            upstream_models("openai:gpt-x")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(AuthenticationError, match="no API key is set"):
        upstream_models("openai:gpt-x")


def test_a_request_can_be_cancelled_from_outside() -> None:
    async def run() -> tuple[int, list[Any]]:
        async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="-", max_retries=0) as client:
            job = UpstreamJob(gw.remote(client, "far"), ["hi"], None, {"max_tokens": 5}, [], None, [[None]])
            running = UpstreamRequest(job, streams=True)
            parts = 0
            async for found in running.parts():
                parts += len(found)
                if parts == 3:
                    running.cancel()
            return parts, job.results

    with Provider(Answer("word ", endless=True, pause=0.01)) as provider:
        parts, results = asyncio.run(asyncio.wait_for(run(), 30))
    assert parts >= 3
    assert results == [[None]]
