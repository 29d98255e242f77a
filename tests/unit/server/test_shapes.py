"""Every body and every event has exactly the type of the package `openai`."""

import json
from typing import Any

import httpx
import pytest

from tests.helpers.openai_shapes import check_body, check_event, events_of
from tests.helpers.serving import LiveServer

SAY = [{"role": "user", "content": "Ada Lovelace, 36, lives in London."}]
CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": CITY, "strict": True}}
FLAT = {"type": "function", "name": "weather", "parameters": CITY, "strict": True}
GRAMMAR = {"syntax": "regex", "definition": "a|b"}
CUSTOM = {"type": "custom", "custom": {"name": "word", "format": {"type": "grammar", "grammar": GRAMMAR}}}
FLAT_CUSTOM = {"type": "custom", "name": "word", "format": {"type": "grammar", "syntax": "regex", "definition": "a|b"}}

CHAT: list[dict[str, Any]] = [
    {},
    {"n": 2, "logprobs": True, "top_logprobs": 2, "stop": ["z"]},
    {"response_format": FORM},
    {"response_format": {"type": "json_object"}},
    {"tools": [TOOL], "tool_choice": "required"},
    {"tools": [TOOL, CUSTOM], "tool_choice": "required", "n": 4, "temperature": 2},
    {"tools": [TOOL], "response_format": FORM},
    {"structured_outputs": {"choice": ["a", "b"]}},
    {"guideway": True},
]
TEXT: list[dict[str, Any]] = [
    {},
    {"logprobs": 2, "n": 2},
    {"prompt": ["a", "b"], "regex": "[0-9]{3}"},
    {"echo": True, "logprobs": 1, "max_tokens": 2},
    {"echo": True, "logprobs": 0, "max_tokens": 0, "guideway": True},
]
RESPONSES: list[dict[str, Any]] = [
    {},
    {"text": {"format": {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}}},
    {"tools": [FLAT, FLAT_CUSTOM], "tool_choice": "required", "metadata": {"a": "b"}},
    {"tools": [FLAT_CUSTOM], "tool_choice": "required"},
    {"top_logprobs": 2, "include": ["message.output_text.logprobs"], "instructions": "Be short."},
]


def post(server: LiveServer, url: str, body: dict[str, Any]) -> httpx.Response:
    found = httpx.post(server.url + url, json={"model": "tiny", **body}, timeout=60)
    assert found.status_code == 200, found.text
    return found


@pytest.mark.parametrize("fields", CHAT)
def test_chat_completions(server: LiveServer, fields: dict[str, Any]) -> None:
    body = {"messages": SAY, "max_tokens": 60, "seed": 1, **fields}
    check_body(post(server, "/v1/chat/completions", body).json())
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    for chunk in events_of(post(server, "/v1/chat/completions", {**body, **stream}).text):
        check_body(chunk)


@pytest.mark.parametrize("fields", TEXT)
def test_completions(server: LiveServer, fields: dict[str, Any]) -> None:
    body = {"prompt": "Ada was", "max_tokens": 8, "seed": 1, **fields}
    check_body(post(server, "/v1/completions", body).json())
    for chunk in events_of(post(server, "/v1/completions", {**body, "stream": True}).text):
        check_body(chunk)


@pytest.mark.parametrize("fields", RESPONSES)
def test_responses(server: LiveServer, fields: dict[str, Any]) -> None:
    body = {"input": "Ada was", "max_output_tokens": 60, "seed": 1, **fields}
    check_body(post(server, "/v1/responses", body).json())
    for found in events_of(post(server, "/v1/responses", {**body, "stream": True}).text):
        check_event(found)


def test_models(server: LiveServer) -> None:
    for model in httpx.get(f"{server.url}/v1/models").json()["data"]:
        check_body(model)


def test_a_property_too_many_is_found() -> None:
    body: dict[str, Any] = {"id": "a", "object": "chat.completion", "created": 1, "model": "a", "choices": []}
    check_body(body)
    with pytest.raises(AssertionError, match="no such property"):
        check_body({**body, "text": ""})
    with pytest.raises(AssertionError, match="needs"):
        check_body({name: value for name, value in body.items() if name != "id"})
    assert json.dumps(body)
