"""Chat completions and completions with OpenAI's client."""

import json
from dataclasses import replace
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from guideway.batch.answer_parts import usage_details
from guideway.constraints.tools import Reply
from guideway.generation import Model

SAY = [{"role": "user", "content": "Ada Lovelace, 36, lives in London."}]
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}


class Person(BaseModel):
    name: str
    age: int


def ask(client: openai.OpenAI, **fields: Any) -> Any:
    return client.chat.completions.create(**{"model": "tiny", "messages": SAY, "max_tokens": 60, **fields})


def test_answer_is_text(client: openai.OpenAI) -> None:
    found = ask(client, max_tokens=8)
    assert found.object == "chat.completion"
    assert found.choices[0].finish_reason in ("stop", "length")
    assert found.usage.completion_tokens <= 8
    assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens


def test_schema_is_enforced(client: openai.OpenAI) -> None:
    found = ask(client, response_format=FORMAT, temperature=1.5, n=4, seed=1)
    assert [choice.index for choice in found.choices] == [0, 1, 2, 3]
    for choice in found.choices:
        value = json.loads(choice.message.content)
        assert list(value) == ["name", "age"]
        assert value["age"] <= 99


def test_parse_returns_the_type(client: openai.OpenAI) -> None:
    found = client.chat.completions.parse(
        model="tiny", messages=SAY, response_format=Person, max_tokens=200, temperature=0
    )  # type: ignore[arg-type]  # messages as plain dicts
    assert isinstance(found.choices[0].message.parsed, Person)


@pytest.mark.parametrize("fields", [{}, {"response_format": FORMAT}, {"n": 3, "seed": 5}, {"stop": [" "]}])
def test_stream_is_the_answer(client: openai.OpenAI, fields: dict[str, Any]) -> None:
    whole = ask(client, **{"seed": 7, **fields})
    texts = [""] * len(whole.choices)
    reasons: list[str | None] = [None] * len(whole.choices)
    usage = None
    for chunk in ask(client, stream=True, stream_options={"include_usage": True}, **{"seed": 7, **fields}):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            reasons[choice.index] = choice.finish_reason or reasons[choice.index]
        usage = chunk.usage or usage
    assert texts == [choice.message.content for choice in whole.choices]
    assert reasons == [choice.finish_reason for choice in whole.choices]
    assert usage == whole.usage


def test_completion_with_several_prompts(client: openai.OpenAI) -> None:
    found = client.completions.create(model="tiny", prompt=["Ada", "Bob"], max_tokens=4, n=2)
    assert [choice.index for choice in found.choices] == [0, 1, 2, 3]
    ids = client.completions.create(model="tiny", prompt=[5, 6, 7], max_tokens=4)
    assert ids.usage is not None
    assert ids.usage.prompt_tokens >= 3


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"temprature": 1}, "temprature", "did you mean 'temperature'"),
        ({"temperature": "hot"}, "temperature", "number"),
        ({"guided_json": {}}, "guided_json", "structured_outputs"),
        ({"top_logprobs": 2}, "top_logprobs", "logprobs"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "strin"}}}},
            "response_format.json_schema.schema/type",
            "strin",
        ),
        ({"response_format": FORMAT, "max_tokens": 3}, "max_tokens", "shortest"),
        ({"response_format": FORMAT, "stop": ["a"]}, "stop", "exclude"),
        ({"messages": [{"role": "user", "content": "a" * 9000}]}, "messages", "context"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "stream"),
        ({"logit_bias": {"99999": 1}}, "logit_bias", "vocabulary"),
    ],
)
def test_refused_fields(client: openai.OpenAI, fields: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(openai.BadRequestError, match=words) as found:
        ask(client, extra_body=fields)
    assert found.value.param == param


def test_min_tokens(client: openai.OpenAI) -> None:
    """A constraint that allows no further text ends the text earlier, a stop string does not."""
    chosen = ask(client, extra_body={"structured_outputs": {"choice": ["abc"]}, "min_tokens": 9}, max_tokens=20)
    assert (chosen.choices[0].message.content, chosen.choices[0].finish_reason) == ("abc", "stop")
    assert chosen.usage.completion_tokens < 9
    whole = ask(client, max_tokens=20, temperature=0).choices[0].message.content
    first = ask(client, max_tokens=20, temperature=0, stop=whole[0])
    assert (first.choices[0].message.content, first.choices[0].finish_reason) == ("", "stop")
    later = ask(client, max_tokens=20, temperature=0, stop=whole[0], extra_body={"min_tokens": 9})
    assert later.choices[0].message.content.startswith(whole[0])
    assert later.usage.completion_tokens > 9


def test_unknown_model(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="this server has tiny") as found:
        ask(client, model="large")
    assert (found.value.param, found.value.code) == ("model", "model_not_found")


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").id == "tiny"


def test_usage_has_cached_tokens(client: openai.OpenAI) -> None:
    messages = [
        {"role": "user", "content": "Cached tokens are counted: Ada Lovelace, 36, lives in London, in a house."}
    ]
    first, second = (ask(client, messages=messages, max_tokens=4).usage for _ in range(2))
    assert second.prompt_tokens == first.prompt_tokens
    assert first.prompt_tokens_details.cached_tokens < second.prompt_tokens_details.cached_tokens < first.prompt_tokens
    assert second.completion_tokens_details.reasoning_tokens == 0


def test_usage_counts_tokens_of_reasoning(tiny: Model) -> None:
    one = tiny.complete("a", max_tokens=1)
    tokens = tiny.tokenizer.encode("<think>Ada lives in London</think>Rome is a city")
    one = replace(one, value=Reply("Rome is a city", reasoning="Ada lives in London"), tokens=tuple(tokens))
    details = usage_details(tiny, [[one]], ("prompt_tokens", "completion_tokens"))
    begun = len(tiny.tokenizer.encode("<think>Ada lives in London"))
    assert begun - 1 <= details["completion_tokens_details"]["reasoning_tokens"] <= begun
    assert begun < len(tokens)


def test_stream_ends_with_a_report(client: openai.OpenAI) -> None:
    fields = {"extra_body": {"guideway": True}, "response_format": FORMAT, "seed": 3}
    whole = ask(client, **fields).model_extra["guideway"]
    *_, last = ask(client, stream=True, **fields)
    report = last.model_extra["guideway"]
    assert report["guarantee"] == whole["guarantee"] == "exact"
    assert report["choices"][0]["forced"] == whole["choices"][0]["forced"] > 0
