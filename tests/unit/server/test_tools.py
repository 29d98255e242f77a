"""Tools: functions and custom tools, the choice among them, and streams of calls."""

import json
import re
from typing import Any

import openai
import pytest

SAY = [{"role": "user", "content": "What is the weather in Paris?"}]
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "days": {"type": "integer", "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "Weather.", "parameters": CITY}}


def custom(name: str, syntax: str, definition: str) -> dict[str, Any]:
    form = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    return {"type": "custom", "custom": {"name": name, "format": form}}


WEATHER, NEWS = function("weather"), function("news")
DATE = custom("date", "regex", r'"[0-9]{4}"\n[a-z]{2}')
SUM = custom("sum", "lark", 'start: NUMBER ("+" NUMBER)~1..3\nNUMBER: /[0-9]{1,3}/')


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    given = {"model": "tiny", "messages": SAY, "max_tokens": 120, "parallel_tool_calls": False, **fields}
    return client.chat.completions.create(**given)


def test_required_call(client: openai.OpenAI) -> None:
    for seed in range(5):
        choice = ask(client, tools=[WEATHER, NEWS], tool_choice="required", seed=seed).choices[0]
        (call,) = choice.message.tool_calls
        assert choice.finish_reason == "tool_calls"
        assert call.function.name in ("weather", "news")
        assert json.loads(call.function.arguments)["city"] in ("Paris", "Rome")
        assert choice.message.content is None


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "function": {"name": "news"}},
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "news"}}]},
        },
    ],
)
def test_named_and_allowed_tools(client: openai.OpenAI, choice: dict[str, Any]) -> None:
    for seed in range(4):
        message = ask(client, tools=[WEATHER, NEWS], tool_choice=choice, seed=seed).choices[0].message
        assert {call.function.name for call in message.tool_calls} == {"news"}


def test_no_call(client: openai.OpenAI) -> None:
    choice = ask(client, tools=[WEATHER], tool_choice="none", max_tokens=20).choices[0]
    assert not choice.message.tool_calls
    assert "<tool_call>" not in choice.message.content


def test_tools_or_an_answer_that_fits(client: openai.OpenAI) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": CITY, "strict": True}}
    kinds = set()
    for seed in range(8):
        message = ask(client, tools=[NEWS], response_format=form, seed=seed, temperature=2).choices[0].message
        texts = [call.function.arguments for call in message.tool_calls or ()] or [message.content]
        kinds.add(bool(message.tool_calls))
        assert all(json.loads(text)["city"] in ("Paris", "Rome") for text in texts)
    assert kinds


def test_custom_tools(client: openai.OpenAI) -> None:
    for tool, pattern in ((DATE, r'"[0-9]{4}"\n[a-z]{2}'), (SUM, r"[0-9]{1,3}(\+[0-9]{1,3}){1,3}")):
        name = tool["custom"]["name"]
        choice = {"type": "custom", "custom": {"name": name}}
        (call,) = ask(client, tools=[WEATHER, tool], tool_choice=choice, seed=3).choices[0].message.tool_calls
        assert (call.type, call.custom.name) == ("custom", name)
        assert re.fullmatch(pattern, call.custom.input)


@pytest.mark.parametrize("tool", [WEATHER, DATE, SUM])
def test_streamed_calls(client: openai.OpenAI, tool: dict[str, Any]) -> None:
    fields = {"tools": [tool], "tool_choice": "required", "seed": 4, "parallel_tool_calls": tool is not WEATHER}
    whole = ask(client, **fields).choices[0]
    with client.chat.completions.stream(model="tiny", messages=SAY, **fields) as stream:  # type: ignore[arg-type]  # plain dicts
        kinds = {event.type for event in stream} if tool is WEATHER else set()
    if tool is WEATHER:
        found = stream.get_final_completion().choices[0]
        assert "tool_calls.function.arguments.delta" in kinds
        assert [call.function.arguments for call in found.message.tool_calls or ()] == [
            call.function.arguments for call in whole.message.tool_calls
        ]
        return
    inputs: dict[int, str] = {}
    for chunk in ask(client, stream=True, **fields):
        for delta in (one for choice in chunk.choices for one in choice.delta.tool_calls or ()):
            inputs[delta.index] = inputs.get(delta.index, "") + delta.custom["input"]
    assert list(inputs.values()) == [call.custom.input for call in whole.message.tool_calls]


def test_calls_and_results_are_sent_back(client: openai.OpenAI) -> None:
    first = ask(client, tools=[WEATHER, DATE], tool_choice="required").choices[0].message
    history: list[Any] = [
        *SAY,
        first.model_dump(),
        *({"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in first.tool_calls),
    ]
    assert ask(client, messages=history, tools=[WEATHER, DATE], max_tokens=8).choices[0].message


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "tool_choice.function.name",
        ),
        (
            {
                "tools": [WEATHER],
                "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": {}}]}},
            },
            "tool_choice.allowed_tools.tools[0].type",
        ),
        ({"tools": [WEATHER, WEATHER]}, "tools[1].function.name"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a", "parameter": {}}}]}, "tools[0].function.parameter"),
        ({"tools": [custom("a", "lark", "start: (")]}, "tools[0].custom.format.grammar.definition"),
        (
            {
                "tools": [
                    function("a") | {"function": {"name": "a", "parameters": {"type": "object", "minProperties": "a"}}}
                ]
            },
            "tools[0].function.parameters/minProperties",
        ),
        ({"tools": [WEATHER], "reasoning_effort": "high"}, "reasoning_effort"),
        ({"messages": [{"role": "user", "content": "a", "nme": "b"}]}, "messages[0].nme"),
    ],
)
def test_refused_tools(client: openai.OpenAI, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as found:
        ask(client, parallel_tool_calls=None, extra_body=fields)
    assert found.value.param == param
