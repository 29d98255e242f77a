"""OpenAI's batch format: chat completions, completions and Responses, answers and errors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.batch import BatchResult
from guideway.batch.bodies import request_of
from guideway.errors import InvalidRequestError, OverloadedError
from guideway.testing import Answer, Provider, ProviderRequest
from tests.helpers.small_model import write_model
from tests.packaging.repository import PACKAGE

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
FORM = {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": SCHEMA}}
CHAT, TEXT, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
HELLO = [{"role": "user", "content": "Hello"}]
HERMES = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% endfor %}"
    "{% if tools %}{{ tools | tojson }} <tool_call> </tool_call> {% endif %}<|assistant|>"
)


def line(url: str, **body: Any) -> dict[str, Any]:
    return {"custom_id": "a", "method": "POST", "url": url, "body": {"model": "any", **body}}


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[gw.Model]:
    """The model with a chat template that shows the family of its tool calls."""
    folder = tmp_path_factory.mktemp("chat") / "model"
    shutil.copytree(PACKAGE / "tiny", folder)
    (folder / "chat_template.jinja").write_text(HERMES, "utf-8")
    with gw.load(f"onnx:{folder}") as model:
        yield model


def one(model: Any, given: dict[str, Any], **options: Any) -> dict[str, Any]:
    (found,) = gw.batch(model, [given], **options)
    made = found.line()
    assert json.loads(json.dumps(made)) == made
    return made


def body_of(made: dict[str, Any]) -> dict[str, Any]:
    assert made.keys() == {"id", "custom_id", "response", "error"}
    assert made["error"] is None
    assert made["response"]["status_code"] == 200, made
    body: dict[str, Any] = made["response"]["body"]
    return body


def test_chat(chat: gw.Model) -> None:
    body = body_of(one(chat, line(CHAT, messages=HELLO, response_format=FORM, n=2, max_completion_tokens=20)))
    assert body["object"] == "chat.completion"
    assert [choice["finish_reason"] for choice in body["choices"]] == ["stop", "stop"]
    assert all(isinstance(json.loads(choice["message"]["content"])["ok"], bool) for choice in body["choices"])
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_chat_with_parts_and_logprobs(chat: gw.Model) -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    plain = body_of(one(chat, line(CHAT, messages=HELLO, max_tokens=4)))
    body = body_of(one(chat, line(CHAT, messages=parts, max_tokens=4, logprobs=True, top_logprobs=2)))
    choice = body["choices"][0]
    assert choice["message"]["content"] == plain["choices"][0]["message"]["content"]
    tokens = choice["logprobs"]["content"]
    assert len(tokens) == 4
    assert all(len(token["top_logprobs"]) == 2 and token["logprob"] <= 0 for token in tokens)
    assert b"".join(bytes(token["bytes"]) for token in tokens).decode() == choice["message"]["content"]


def test_tools(chat: gw.Model) -> None:
    tool = {"type": "function", "function": {"name": "check", "parameters": {**SCHEMA, "additionalProperties": False}}}
    fields = {"tools": [tool], "tool_choice": "required", "parallel_tool_calls": False}
    body = body_of(one(chat, line(CHAT, messages=HELLO, max_tokens=60, **fields)))
    choice = body["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    call = choice["message"]["tool_calls"][0]
    assert call["function"]["name"] == "check"
    assert call["id"]
    assert isinstance(json.loads(call["function"]["arguments"])["ok"], bool)
    history = [*HELLO, choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "yes"}]
    assert body_of(one(chat, line(CHAT, messages=history, max_tokens=3)))["choices"]


def test_completions(tiny: gw.Model) -> None:
    given = line(TEXT, prompt=["Born on ", [5, 6, 7]], n=2, structured_outputs={"regex": "[0-9]{4}"}, logprobs=1)
    body = body_of(one(tiny, given))
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    assert all(choice["text"].isdigit() and len(choice["text"]) == 4 for choice in body["choices"])
    assert len({choice["text"] for choice in body["choices"]}) > 1
    logprobs = body["choices"][0]["logprobs"]
    assert len(logprobs["tokens"]) == len(logprobs["token_logprobs"]) == len(logprobs["text_offset"])
    free = body_of(one(tiny, line(TEXT, prompt="a")))
    assert free["usage"]["completion_tokens"] <= 16  # the default of OpenAI's API


def test_responses(chat: gw.Model) -> None:
    text = {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}
    given = line(RESPONSES, input="Hello", instructions="Be short.", text=text, max_output_tokens=20)
    body = body_of(one(chat, given))
    assert (body["object"], body["status"]) == ("response", "completed")
    assert isinstance(json.loads(body["output"][0]["content"][0]["text"])["ok"], bool)
    items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]
    cut = body_of(one(chat, line(RESPONSES, input=items, max_output_tokens=2)))
    assert (cut["status"], cut["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_a_constraint_as_a_document(tiny: gw.Model) -> None:
    document = gw.to_wire(gw.Choice(["blue"]) + "!")
    for field in ({"constraint": document}, {"structured_outputs": {"grammar": json.dumps(document)}}):
        assert body_of(one(tiny, line(TEXT, prompt="a", **field)))["choices"][0]["text"] == "blue!"


def test_sampling_options_have_an_effect(tiny: gw.Model) -> None:
    greedy = body_of(one(tiny, line(TEXT, prompt="The weather is", temperature=0)))["choices"][0]["text"]
    drawn = {body_of(one(tiny, line(TEXT, prompt="The weather is", seed=n)))["choices"][0]["text"] for n in range(4)}
    assert len(drawn) > 2
    token_id = tiny.complete("The weather is", max_tokens=1).tokens[0]
    biased = line(TEXT, prompt="The weather is", temperature=0, logit_bias={str(token_id): -100})
    other = body_of(one(tiny, biased))["choices"][0]["text"]
    assert token_id not in tiny.tokenizer.encode(other)
    assert other != greedy


@pytest.mark.parametrize(
    ("url", "body", "param", "code"),
    [
        (CHAT, {}, "messages", "missing_parameter"),
        (CHAT, {"messages": []}, "messages", "invalid_type"),
        (CHAT, {"messages": HELLO, "mesages": 1}, "mesages", "unknown_parameter"),
        (CHAT, {"messages": [{"role": 3}]}, "messages[0].role", "invalid_type"),
        (CHAT, {"messages": [{"role": "user"}]}, "messages[0].content", "invalid_type"),
        (
            CHAT,
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content[0].type",
            "invalid_value",
        ),
        (CHAT, {"messages": HELLO, "stream": True}, "stream", "unsupported_parameter"),
        (CHAT, {"messages": HELLO, "temperature": "1"}, "temperature", "invalid_type"),
        (CHAT, {"messages": HELLO, "temperature": True}, "temperature", "invalid_type"),
        (CHAT, {"messages": HELLO, "n": 0}, "n", "invalid_type"),
        (CHAT, {"messages": HELLO, "max_tokens": 2**70}, "max_tokens", "invalid_type"),
        (CHAT, {"messages": HELLO, "stop": ["a", 3]}, "stop[1]", "invalid_type"),
        (CHAT, {"messages": HELLO, "logit_bias": {"a": 1}}, "logit_bias", "invalid_type"),
        (CHAT, {"messages": HELLO, "guided_json": {}}, "guided_json", "unsupported_parameter"),
        (CHAT, {"messages": HELLO, "audio": {}}, "audio", "unsupported_parameter"),
        (CHAT, {"messages": HELLO, "top_logprobs": 3}, "top_logprobs", "invalid_value"),
        (CHAT, {"messages": HELLO, "tool_choice": "required"}, "tool_choice", "invalid_value"),
        (CHAT, {"messages": HELLO, "tools": [{"type": "function"}]}, "tools[0].function", "invalid_type"),
        (CHAT, {"messages": HELLO, "response_format": {"type": "yaml"}}, "response_format.type", "invalid_value"),
        (
            CHAT,
            {"messages": HELLO, "response_format": {"type": "json_schema"}},
            "response_format.json_schema",
            "invalid_type",
        ),
        (
            CHAT,
            {
                "messages": HELLO,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"properties": {"a": {"type": "strin"}}}},
                },
            },
            "response_format.json_schema.schema/properties/a/type",
            "invalid_constraint",
        ),
        (TEXT, {"prompt": [1, "a"]}, "prompt[1]", "invalid_type"),
        (TEXT, {"prompt": 3}, "prompt", "invalid_type"),
        (TEXT, {"prompt": "a", "best_of": 4}, "best_of", "unsupported_parameter"),
        (TEXT, {"prompt": "a", "echo": True}, "echo", "unsupported_parameter"),
        (
            TEXT,
            {"prompt": "a", "structured_outputs": {"regex": "a", "choice": ["b"]}},
            "structured_outputs",
            "invalid_value",
        ),
        (TEXT, {"prompt": "a", "structured_outputs": {"regex": "("}}, "structured_outputs.regex", "invalid_constraint"),
        (TEXT, {"prompt": "a", "constraint": {"guideway": 1}}, "constraint", "invalid_constraint"),
        (RESPONSES, {"input": "a", "previous_response_id": "x"}, "previous_response_id", "unsupported_parameter"),
        (RESPONSES, {"input": "a", "tools": [{}]}, "tools[0].name", "invalid_type"),
        (
            CHAT,
            {
                "messages": [{"role": "user", "content": "a"}],
                "tools": [{"type": "function", "function": {"name": "my tool"}}],
            },
            "tools[0].function.name",
            "invalid_value",
        ),
        (RESPONSES, {"input": "a", "tools": [{"type": "custom", "name": "my tool"}]}, "tools[0].name", "invalid_value"),
        (RESPONSES, {"input": [{"type": "computer_call"}]}, "input[0].type", "invalid_value"),
        (RESPONSES, {"input": "a", "text": {"formatt": {}}}, "text.formatt", "unknown_parameter"),
        (
            RESPONSES,
            {"input": "a", "text": {"format": {"type": "json_schema", "schema": 3}}},
            "text.format.schema",
            "invalid_type",
        ),
    ],
)
def test_malformed_bodies(tiny: gw.Model, url: str, body: dict[str, Any], param: str, code: str) -> None:
    made = one(tiny, line(url, **body))
    assert (made["custom_id"], made["error"]) == ("a", None)
    assert made["response"]["status_code"] == 400
    error = made["response"]["body"]["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)


def test_fields_of_the_line() -> None:
    with pytest.raises(InvalidRequestError, match="did you mean 'body'"):
        request_of({**line(TEXT, prompt="a"), "bodyy": {}})
    with pytest.raises(InvalidRequestError, match="POST"):
        request_of({**line(TEXT, prompt="a"), "method": "get"})


def test_a_model_without_a_chat_template(tmp_path: Path) -> None:
    made = one(gw.load(f"onnx:{write_model(tmp_path)}"), line(CHAT, messages=HELLO))
    assert made["response"]["status_code"] == 400
    assert made["response"]["body"]["error"]["code"] == "chat_template"


def failing(request: ProviderRequest) -> Answer:
    return Answer(status=503, message="busy") if request.messages()[-1][1] == "fail" else Answer()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_model_served_by_an_api() -> None:
    openai = pytest.importorskip("openai", reason="the official SDK is tested")
    with Provider(failing) as provider:
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="-", max_retries=0)
        model = gw.remote(client, "served", dialect="vllm")
        given = [{**line(CHAT, messages=HELLO, response_format=FORM, seed=3), "custom_id": f"c{n}"} for n in range(6)]
        given.append({**line(CHAT, messages=[{"role": "user", "content": "fail"}]), "custom_id": "fails"})
        given.append({**line(CHAT, messages=HELLO, presence_penalty=1), "custom_id": "penalty"})
        own = {"custom_id": "own", "prompt": "Yes?", "regex": "yes|no"}
        found: dict[Any, BatchResult] = {made.custom_id: made for made in gw.batch(model, [*given, own], batch_size=3)}
        sent = {request.body.get("seed") for request in provider.requests}
        client.close()
    assert len(found) == 9
    assert 3 in sent
    assert len(sent) == 3  # those of "own" and "fails" are derived from the identifiers
    for number in range(6):
        body = body_of(found[f"c{number}"].line())
        assert isinstance(json.loads(body["choices"][0]["message"]["content"])["ok"], bool)
        assert body["model"] == "served"
        assert body["usage"]["prompt_tokens"] == 7
    assert found["own"].value in ("yes", "no")
    assert isinstance(found["fails"].error, OverloadedError)
    assert found["fails"].line()["response"]["status_code"] == 503
    error = found["penalty"].line()["response"]["body"]["error"]
    assert (error["param"], error["code"]) == ("presence_penalty", "unsupported_parameter")
