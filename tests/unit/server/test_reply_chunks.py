"""The chunks of a chat completion: together they are the message that a request without a stream gets."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import guideway as gw
from guideway.batch.answers import chat_message
from guideway.batch.bodies import read_body
from guideway.batch.replies import reply_of
from guideway.constraints.tools import FAMILIES
from guideway.grammar.recognizer import fits
from guideway.server.chunks import ChatChunks
from guideway.server.response_events import ResponseEvents
from guideway.server.running import Part
from tests.helpers.counts import counts
from tests.unit.constraints.tools.test_calls import WRITERS

NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CALL = {**NAMED, "properties": {"name": {"enum": ["find"]}, "parameters": {"type": "object"}}}
LIST = {"type": "array", "items": {"type": "integer"}}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find",
            "parameters": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
        },
    }
]


def streamed(chunks: ChatChunks, text: str, result: Any, rng: random.Random) -> dict[str, Any]:
    """The message that the chunks of a text give together."""
    cuts = sorted(rng.choices(range(len(text) + 1), k=rng.choice([0, 1, 3, len(text)])))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    parts = [Part(0, piece) for piece in pieces]
    parts[-1] = parts[-1]._replace(result=result)
    made: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    for line in chunks.events(parts).decode().split("\n\n")[:-1]:
        delta = json.loads(line.removeprefix("data: "))["choices"][0]["delta"]
        for key in ("content", "reasoning_content"):
            if delta.get(key):
                made[key] = made.get(key, "") + delta[key]
        for call in delta.get("tool_calls", ()):
            if call["index"] == len(calls):
                calls.append(dict(call["function"]))
            else:
                calls[call["index"]]["arguments"] += call["function"]["arguments"]
    return made | ({"tool_calls": calls} if calls else {})


def message(request: Any, result: Any) -> dict[str, Any]:
    given, _ = chat_message(request, result)
    made = {key: given[key] for key in ("content", "reasoning_content") if given.get(key)}
    calls = [dict(call["function"]) for call in given.get("tool_calls", ())]
    return made | ({"tool_calls": calls} if calls else {})


@counts(30, 1_000)
@pytest.mark.parametrize("name", WRITERS)
def test_chunks_are_the_message(name: str, count: int) -> None:
    """Answers can begin as calls do, and calls can begin in place of the reasoning."""
    rng, model, compared = random.Random(name), gw.load("tiny"), 0
    for _ in range(count):
        family = FAMILIES[name]
        begin, end = family.thoughts or ("", "")
        if family.thoughts and not family.answer:
            family = replace(family, thoughts=rng.choice([(begin, end), ("", end), None]))
        schema = rng.choice([NAMED, CALL, LIST, {"enum": ["<tool_call>", "[TOOL_CALLS]x", 1]}, None])
        body: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS}
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        if schema is None or rng.random() < 0.3:
            body["tool_choice"] = rng.choice(["auto", "required", "none"])
        request = read_body("/v1/chat/completions", "x", body)
        constraint = reply_of(request, family)
        assert constraint is not None
        answers = [
            '{"name": "a"}',
            '{"name": "find"}',
            '{"name": "find", "parameters": {}}',
            "[1, 2]",
            "[]",
            "1",
            '"<tool_call>"',
        ]
        answers += [
            '{"name": "<tool_call>"}',
            '{"name": "[TOOL_CALLS]"}',
            '{"name": "find", "parameters": {"words": ""}}',
        ]
        written = WRITERS[name]("", [("find", {"words": rng.choice(["", "a", "{", "<tool_call>"])})])
        rest = rng.choice([family.answer + rng.choice(answers), written, written])
        before, after = family.thoughts or ("", "")
        text = rng.choice(["", before + rng.choice(["Hm", " \n", ""]) + after + rng.choice(["", "\n", "\n\n"])]) + rest
        is_open = family.thoughts is not None and not before and after not in text
        if not fits(constraint.grammar(), text) or (is_open and text != written):
            continue  # a text without the end of the reasoning that the prompt began: it is streamed as reasoning
        compared += 1
        result: Any = SimpleNamespace(text=text, value=constraint.parse(text), finish_reason="stop")
        found = streamed(ChatChunks(model, request, family), text, result, rng)
        assert found == message(request, result), (family, body.get("response_format"), body.get("tool_choice"), text)
    assert compared > count // 5


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("llama", '{"name": "find"}'),
        (
            "harmony",
            "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>[1, 2]",
        ),
    ],
)
def test_text_that_is_only_in_the_result_is_sent_as_a_delta_of_a_response(name: str, text: str) -> None:
    body: dict[str, Any] = {"model": "tiny", "input": "x", "tools": [{"type": "function", **TOOLS[0]["function"]}]}
    schema = NAMED if name == "llama" else LIST
    body["text"] = {"format": {"type": "json_schema", "name": "a", "schema": schema}}
    request = read_body("/v1/responses", "x", body)
    constraint = reply_of(request, FAMILIES[name])
    assert constraint is not None
    value = constraint.parse(text)
    result: Any = SimpleNamespace(
        text=text, value=value, finish_reason="stop", steps=(), prompt_tokens=1, cached_tokens=0, tokens=[1]
    )
    events = ResponseEvents(gw.load("tiny"), request, FAMILIES[name])
    data = events.events([Part(0, text[:3]), Part(0, text[3:], result=result)]) + events.closing([[result]])
    found = [json.loads(line[6:]) for line in data.decode().split("\n") if line.startswith("data: {")]
    deltas = {
        kind: "".join(one["delta"] for one in found if one["type"] == f"response.{kind}.delta")
        for kind in ("output_text", "reasoning_text")
    }
    assert deltas == {"output_text": text.rpartition("|>")[2], "reasoning_text": "Hm" if name == "harmony" else ""}
    assert events.final is not None
    done = [one["item"] for one in found if one["type"] == "response.output_item.done"]
    assert done == events.final["output"]
