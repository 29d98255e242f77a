"""The Responses API with OpenAI's client: items, semantic events, stored responses. Cases of Open Responses, restated."""

import json
import time
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from guideway.errors import EngineError
from guideway.generation import Model
from guideway.server.running import ServedRequest
from tests.helpers.openai_shapes import check_item

ASK = "Ada Lovelace, 36, lives in London."
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {"type": "function", "name": "weather", "description": "Weather.", "parameters": CITY, "strict": True}
WORD = {
    "type": "custom",
    "name": "word",
    "format": {"type": "grammar", "syntax": "regex", "definition": "(red|green) [0-9]{2}"},
}
FORM = {"format": {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}}


class City(BaseModel):
    city: str
    size: int


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.responses.create(**{"model": "tiny", "input": ASK, "max_output_tokens": 60, **fields})


# The ten cases of Open Responses without WebSocket. The image is refused, because no engine here reads images.


def test_basic_text(client: openai.OpenAI) -> None:
    found = ask(client, max_output_tokens=8)
    assert found.object == "response"
    assert found.status in ("completed", "incomplete")
    (message,) = found.output
    assert (message.type, message.role) == ("message", "assistant")
    assert found.output_text == message.content[0].text
    assert found.usage.total_tokens == found.usage.input_tokens + found.usage.output_tokens
    if found.status == "incomplete":
        assert found.incomplete_details.reason == "max_output_tokens"


def test_stream_has_all_events_in_order(client: openai.OpenAI) -> None:
    events = list(ask(client, stream=True, text=FORM))
    kinds = [event.type for event in events]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = kinds.count("response.output_text.delta")
    assert deltas > 0
    assert [kind for kind in kinds if not kind.endswith("delta")] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    final: Any = events[-1]
    assert final.response.output_text == text
    assert json.loads(text)["city"] in ("Paris", "Rome")


def test_system_prompt(client: openai.OpenAI) -> None:
    plain, longer = ask(client, max_output_tokens=4), ask(client, max_output_tokens=4, instructions="Be short.")
    assert longer.usage.input_tokens > plain.usage.input_tokens
    assert longer.instructions == "Be short."
    items = [{"type": "message", "role": "system", "content": "Be short."}, {"role": "user", "content": ASK}]
    assert ask(client, max_output_tokens=4, input=items).usage.input_tokens == longer.usage.input_tokens


def test_tool_call(client: openai.OpenAI) -> None:
    found = ask(client, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False)
    (call,) = found.output
    assert (call.type, call.name, found.status) == ("function_call", "weather", "completed")
    assert json.loads(call.arguments)["city"] in ("Paris", "Rome")
    assert found.tools[0].name == "weather"
    items: list[Any] = [{"role": "user", "content": ASK}, call.model_dump(exclude_none=True)]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
    assert ask(client, input=items, tools=[WEATHER], tool_choice="none").output_text


def test_image_is_refused_with_its_place(client: openai.OpenAI) -> None:
    items = [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]}]
    with pytest.raises(openai.BadRequestError) as found:
        ask(client, input=items)
    assert found.value.param == "input[0].content[0].type"


def test_several_turns(client: openai.OpenAI) -> None:
    items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    assert ask(client, input=items, max_output_tokens=4).output_text is not None


@pytest.mark.parametrize("phase", ["commentary", "final_answer", None])
def test_phase_of_a_message_of_the_assistant(client: openai.OpenAI, phase: str | None) -> None:
    items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "phase": phase}]
    found = ask(client, input=[*items, {"role": "user", "content": "c"}], max_output_tokens=4)
    assert found.output[0].type == "message"


def test_phase_of_outputs(client: openai.OpenAI) -> None:
    assert all(item.phase in (None, "commentary", "final_answer") for item in ask(client, max_output_tokens=4).output)
    items = [{"role": "assistant", "content": "b", "phase": "other"}]
    with pytest.raises(openai.BadRequestError) as found:
        ask(client, input=items)
    assert found.value.param == "input[0].phase"


def test_compaction(client: openai.OpenAI) -> None:
    items: list[Any] = [{"role": "user", "content": "My name is Ada."}, {"role": "assistant", "content": "Hello."}]
    found = client.responses.compact(model="tiny", input=items)
    assert found.object == "response.compaction"
    assert [item.type for item in found.output] == ["message", "compaction"]
    assert found.usage.total_tokens == found.usage.input_tokens + found.usage.output_tokens
    check_item(found.output[-1].to_dict())
    compacted = [item.to_dict(warnings=False) for item in found.output]
    whole = ask(client, input=[*compacted, {"role": "user", "content": "What is my name?"}], max_output_tokens=4)
    assert whole.usage.input_tokens > ask(client, input="What is my name?", max_output_tokens=4).usage.input_tokens
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, input=[{"type": "compaction", "id": "a", "encrypted_content": "%"}])
    assert refused.value.param == "input[0].encrypted_content"


@pytest.mark.parametrize(
    ("body", "param"),
    [({"input": "a"}, "model"), ({"model": "tiny"}, "input"), ({"model": "tiny", "input": "a", "tools": []}, "tools")],
)
def test_compaction_without_a_field_is_refused(client: openai.OpenAI, body: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as found:
        client.post("/responses/compact", body=body, cast_to=object)
    assert found.value.param == param


# Beyond these cases.


def test_streamed_calls(client: openai.OpenAI) -> None:
    seen = set()
    for seed in range(4):
        tools = [WEATHER, WORD][seed % 2 :]
        fields = {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False, "temperature": 2}
        events = list(ask(client, stream=True, extra_body={"seed": seed}, **fields))
        final: Any = events[-1]
        (call,) = final.response.output
        seen.add(call.type)
        custom = call.type == "custom_tool_call"
        delta = "response.custom_tool_call_input.delta" if custom else "response.function_call_arguments.delta"
        text = "".join(event.delta for event in events if event.type == delta)
        assert text == (call.input if custom else call.arguments)
        assert {event.item_id for event in events if event.type == delta} == {call.id}
        whole = ask(client, extra_body={"seed": seed}, **fields).output[0]
        assert (whole.input if custom else whole.arguments) == text
    assert "custom_tool_call" in seen


def test_parse_and_stream_helper(client: openai.OpenAI) -> None:
    found = client.responses.parse(model="tiny", input=ASK, text_format=City, max_output_tokens=300, temperature=0)
    assert isinstance(found.output_parsed, City)
    with client.responses.stream(
        model="tiny", input=ASK, text_format=City, max_output_tokens=300, temperature=0
    ) as stream:
        kinds = {event.type for event in stream}
        assert "response.output_text.delta" in kinds
        assert isinstance(stream.get_final_response().output_parsed, City)


def test_conversation_continues_from_a_stored_response(client: openai.OpenAI) -> None:
    first = ask(client, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False)
    output = [{"type": "function_call_output", "call_id": first.output[0].call_id, "output": "sunny"}]
    second = ask(client, input=output, previous_response_id=first.id, text=FORM, stream=True)
    final: Any = list(second)[-1]
    assert final.response.previous_response_id == first.id
    assert final.response.usage.input_tokens > ask(client, input=output, text=FORM).usage.input_tokens
    assert client.responses.retrieve(final.response.id).output_text == final.response.output_text
    items = client.responses.input_items.list(final.response.id).data
    assert [item.type for item in items] == ["function_call_output"]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError) as found:
        ask(client, previous_response_id=first.id)
    assert found.value.param == "previous_response_id"


def test_response_that_is_not_stored(client: openai.OpenAI) -> None:
    found = ask(client, store=False, max_output_tokens=4)
    assert found.store is False
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(found.id)


def test_cancel_ends_a_stream(client: openai.OpenAI) -> None:
    stream = ask(client, stream=True, max_output_tokens=900, extra_body={"min_tokens": 800})
    events = iter(stream)
    first: Any = next(events)
    client.responses.cancel(first.response.id)
    rest = list(events)
    final: Any = rest[-1]
    assert final.response.status == "cancelled"
    assert len(rest) < 800


LONG: dict[str, Any] = {"background": True, "max_output_tokens": 900, "extra_body": {"min_tokens": 800}}


def ended(client: openai.OpenAI, name: str) -> Any:
    """Retrieve a response until it is not in progress."""
    until = time.monotonic() + 60
    while (found := client.responses.retrieve(name)).status == "in_progress":
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def test_response_in_the_background(client: openai.OpenAI) -> None:
    started = ask(client, background=True, text=FORM)
    assert (started.status, started.background, started.output) == ("in_progress", True, [])
    found = ended(client, started.id)
    assert (found.status, found.background, found.created_at) == ("completed", True, started.created_at)
    assert json.loads(found.output_text)["city"] in ("Paris", "Rome")
    assert found.usage.output_tokens > 0
    assert client.responses.cancel(found.id).status == "completed"
    after = ask(client, previous_response_id=found.id, max_output_tokens=4)
    assert after.previous_response_id == found.id


def test_response_in_the_background_is_cancelled(client: openai.OpenAI) -> None:
    started = ask(client, **LONG)
    with pytest.raises(openai.BadRequestError, match="not complete") as refused:
        ask(client, previous_response_id=started.id)
    assert refused.value.param == "previous_response_id"
    with pytest.raises(openai.ConflictError, match="cancel it first"):
        client.responses.delete(started.id)
    cancelled = client.responses.cancel(started.id)
    assert (cancelled.id, cancelled.status, cancelled.output) == (started.id, "cancelled", [])
    assert ended(client, started.id).status == "cancelled"
    client.responses.delete(started.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(started.id)


def test_a_failure_in_the_background_is_reported(
    client: openai.OpenAI, tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise EngineError("the engine failed")

    with monkeypatch.context() as patch:
        patch.setattr(ServedRequest, "results", fail)
        found = ended(client, ask(client, background=True).id)
    assert (found.status, found.error.code) == ("failed", "server_error")
    assert found.error.message


def test_input_tokens(client: openai.OpenAI) -> None:
    counted = client.responses.input_tokens.count(model="tiny", input=ASK)
    assert counted.input_tokens == ask(client, max_output_tokens=4).usage.input_tokens


def test_logprobs(client: openai.OpenAI) -> None:
    fields: Any = {"include": ["message.output_text.logprobs"], "top_logprobs": 2, "max_output_tokens": 6}
    part = ask(client, **fields).output[0].content[0]
    assert "".join(one.token for one in part.logprobs) == part.text
    events = list(ask(client, stream=True, **fields))
    final: Any = events[-1]
    assert final.response.output[0].content[0].logprobs


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_x"}, "previous_response_id"),
        ({"background": True, "store": False}, "store"),
        ({"background": True, "stream": True}, "stream"),
        ({"background": 1}, "background"),
        ({"conversation": "a"}, "conversation"),
        (
            {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "strin"}}}},
            "text.format.schema/type",
        ),
        ({"text": FORM, "max_output_tokens": 2}, "max_output_tokens"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "x"}}, "tool_choice.name"),
        ({"reasoning": {"effort": "high"}}, "reasoning.effort"),
        ({"include": ["file_search_call.results"]}, "include[0]"),
        ({"truncation": "auto"}, "truncation"),
        ({"inputs": "a"}, "inputs"),
    ],
)
def test_refused_fields(client: openai.OpenAI, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as found:
        ask(client, extra_body=fields)
    assert found.value.param == param
