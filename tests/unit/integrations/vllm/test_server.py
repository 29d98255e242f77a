"""vLLM's HTTP server on a CPU with Guideway's backend, in separate processes, with the openai client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import guideway as gw
from guideway.testing import tiny_model
from tests.helpers.vllm import ENVIRONMENT, serve
from tests.unit.integrations.vllm.test_backend import SCHEMA

pytestmark = [pytest.mark.engine("vllm", "openai"), pytest.mark.filterwarnings("default")]

TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
ASK = [{"role": "user", "content": "the crab"}]


class Person(BaseModel):
    name: str
    age: int


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3)
    tools = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    with serve(folder, *tools, "--chat-template", TEMPLATE) as address:
        yield address


@pytest.fixture
def client(server: str) -> Iterator[Any]:
    import openai

    with openai.OpenAI(base_url=server, api_key="none", max_retries=0, timeout=60) as made:
        yield made


def chat(client: Any, **options: Any) -> Any:
    given = {"model": "tiny", "messages": ASK, "max_tokens": 300, "temperature": 1.0, "seed": 3, **options}
    return client.chat.completions.create(**given)


def response_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "it", "schema": schema}}


def test_response_format(client: Any) -> None:
    for seed in range(3):
        found = chat(client, response_format=response_format(SCHEMA), seed=seed).choices[0]
        gw.JsonSchema(SCHEMA).parse(found.message.content)
        assert found.finish_reason == "stop"
    assert chat(client, response_format={"type": "json_object"}).choices[0].message.content.startswith("{")


def test_a_pydantic_type(client: Any) -> None:
    found = client.chat.completions.parse(
        model="tiny", messages=ASK, response_format=Person, seed=1, max_tokens=400, temperature=1.0
    )
    assert isinstance(found.choices[0].message.parsed, Person)


def test_streamed(client: Any) -> None:
    pieces = chat(client, response_format=response_format(SCHEMA), stream=True)
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    gw.JsonSchema(SCHEMA).parse(text)


@pytest.mark.parametrize(
    ("kind", "spec", "pattern"),
    [
        ("regex", "[a-c]{3,5}", "[a-c]{3,5}"),
        ("choice", ["red", "green"], "red|green"),
        ("grammar", 'root ::= "a" root | "b"', "a*b"),
    ],
)
def test_structured_outputs_and_xargs(client: Any, kind: str, spec: Any, pattern: str) -> None:
    texts = [
        chat(client, extra_body=body).choices[0].message.content
        for body in (
            {"structured_outputs": {kind: spec}},
            {"vllm_xargs": {f"guideway_{kind}": spec if isinstance(spec, str) else json.dumps(spec)}},
        )
    ]
    assert re.fullmatch(pattern, texts[0])
    assert texts[0] == texts[1]


def test_completions_take_them_too(client: Any) -> None:
    body = {"structured_outputs": {"regex": "[a-c]{3}"}}
    found = client.completions.create(model="tiny", prompt="x", max_tokens=9, extra_body=body)
    assert re.fullmatch("[a-c]{3}", found.choices[0].text)


def test_tool_arguments_satisfy_their_schema(client: Any) -> None:
    """A tool choice by name: vLLM makes a structural tag of it, and includes the schema only if `strict` is true."""
    tool = {"type": "function", "function": {"name": "enter", "parameters": SCHEMA, "strict": True}}
    choice = {"type": "function", "function": {"name": "enter"}}
    found = chat(client, tools=[tool], tool_choice=choice).choices[0]
    gw.JsonSchema(SCHEMA).parse(found.message.tool_calls[0].function.arguments)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({"response_format": response_format({"type": "integer", "minimum": 5, "maximum": 3})}, "/minimum"),
        ({"structured_outputs": {"regex": "a("}}, "position 1"),
        ({"structured_outputs": {"grammar": "root ::= nothing"}}, "nothing"),
        ({"vllm_xargs": {"guideway_regex": "a("}}, "position 1"),
        ({"vllm_xargs": {"guideway_yaml": "a"}}, "unknown argument guideway_yaml"),
        ({"structured_outputs": {"json": "[" * 5000}}, "JSON"),
    ],
)
def test_a_bad_constraint_is_a_bad_request(client: Any, body: dict[str, Any], what: str) -> None:
    import openai

    with pytest.raises(openai.BadRequestError, match=re.escape(what)):
        chat(client, extra_body=body)
    gw.JsonSchema(SCHEMA).parse(chat(client, response_format=response_format(SCHEMA)).choices[0].message.content)


AMBIGUOUS = 'root ::= s\ns ::= s s | "a" | "b" s | s "c" | [a-z ] | ""'
WIDE = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(20_000)}}
PRODUCT = {"allOf": [{"anyOf": [{"type": "object", "required": [f"p{i}{j}"]} for j in range(12)]} for i in range(12)]}
HOSTILE: dict[str, tuple[dict[str, Any], tuple[int | None, ...]]] = {
    "no pattern": ({"structured_outputs": {"regex": "(a|b" * 40}}, (400,)),
    "too many alternatives": ({"structured_outputs": {"json": PRODUCT}}, (400,)),
    "a wide schema": ({"structured_outputs": {"json": WIDE}}, (None,)),
    "a long choice": ({"structured_outputs": {"choice": [f"number {i}" for i in range(20_000)]}}, (None,)),
    "nothing is left": ({"structured_outputs": {"regex": "a+b"}, "allowed_token_ids": [100]}, (500,)),
    "ambiguous": ({"structured_outputs": {"grammar": AMBIGUOUS}}, (None, 500)),  # the result depends on the time limit
}
"""What a request asks for, and the status that answers it (None: a text)."""


async def asked(made: Any, index: int) -> tuple[str, Any]:
    """One of several concurrent requests: its name, and its answer or error."""
    options: dict[str, Any] = {"model": "tiny", "messages": ASK, "seed": index, "temperature": 1.0, "max_tokens": 300}
    kind = ("good", "cancelled", list(HOSTILE)[index // 4 % len(HOSTILE)], "free")[index % 4]
    if kind in HOSTILE:
        options["extra_body"] = HOSTILE[kind][0]
    elif kind == "free":
        options["max_tokens"] = 8
    else:
        options["response_format"] = response_format(SCHEMA if kind == "good" else {"type": "array", "minItems": 80})
    task = asyncio.ensure_future(made.chat.completions.create(**options))
    if kind == "cancelled":
        await asyncio.sleep(0.3)
        task.cancel()
    return kind, (await asyncio.gather(task, return_exceptions=True))[0]


def test_many_at_once_some_cancelled_some_hostile(server: str) -> None:
    """Cancelled in the middle, hostile, free and constrained requests together; those that are good are good."""
    import openai

    async def all_of_them() -> list[tuple[str, Any]]:
        async with openai.AsyncOpenAI(base_url=server, api_key="none", max_retries=0, timeout=120) as made:
            return await asyncio.gather(*(asked(made, index) for index in range(48)))

    for kind, found in asyncio.run(all_of_them()):
        if kind == "good":
            gw.JsonSchema(SCHEMA).parse(found.choices[0].message.content)
        elif kind == "free":
            assert found.choices[0].finish_reason == "length"
        elif kind == "cancelled":
            assert isinstance(found, asyncio.CancelledError)
        else:
            assert getattr(found, "status_code", None) in HOSTILE[kind][1], (kind, found)


def test_a_start_logs_no_failed_registration() -> None:
    environment = {**os.environ, **ENVIRONMENT}
    command = [sys.executable, "-c", "import vllm.config; from vllm.plugins import load_general_plugins as f; f()"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "cannot register" not in found.stdout + found.stderr


def test_compiling_does_not_hold_up_the_event_loop() -> None:
    """The check of a request sleeps here. The event loop continues, and the request is added after the check."""
    from types import SimpleNamespace

    from guideway.integrations.vllm.checks import ahead

    done: list[str] = []
    params = SimpleNamespace(structured_outputs="one", extra_args=None)
    params._validate_structured_outputs = lambda *given: (time.sleep(0.3), done.append("checked"))
    outputs = SimpleNamespace(backend="guideway")
    config = SimpleNamespace(structured_outputs_config=outputs, model_config=None)
    engine = SimpleNamespace(vllm_config=config, input_processor=SimpleNamespace(tokenizer=None))

    async def add(request: str, prompt: str, given: Any) -> str:
        done.append("added")
        return request + prompt

    async def both() -> None:
        task = asyncio.ensure_future(ahead(add, engine, "a", "b", params))
        await asyncio.sleep(0.05)
        done.append("meanwhile")
        assert await task == "ab"

    asyncio.run(both())
    assert done == ["meanwhile", "checked", "added"]
