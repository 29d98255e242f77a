"""Checks bodies and events of a server against the types of the package `openai`; properties that they lack are errors."""

import json
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic
from openai import types as openai_types
from openai.types import chat, responses

__all__ = ["check_body", "check_event", "check_item", "events_of"]

EXTENSIONS = {
    ("Model", "state"), ("Model", "source"), ("Model", "max_model_len"),
    ("ChatCompletionMessage", "reasoning_content"), ("ChoiceDelta", "reasoning_content"),
    ("Response", "store"),  # the answers of OpenAI have it
    ("ChatCompletion", "guideway"), ("ChatCompletionChunk", "guideway"), ("Completion", "guideway"), ("Response", "guideway"),
}  # fmt: skip
"""Properties that the documentation of the server names."""

BODIES: dict[str, Any] = {
    "chat.completion": chat.ChatCompletion,
    "chat.completion.chunk": chat.ChatCompletionChunk,
    "text_completion": openai_types.Completion,
    "response": responses.Response,
    "model": openai_types.Model,
}


def check_body(value: Any) -> None:
    """Raise `AssertionError` if a body is not exactly of the type that its "object" names."""
    if value["object"] == "chat.completion.chunk":  # the package has no type for chunks of calls of custom tools
        value = {**value, "choices": [_without_custom_calls(choice) for choice in value["choices"]]}
    if value["object"] == "text_completion":  # the type for chunks is that of bodies, whose finish reason is not null
        choices = [{**choice, "finish_reason": choice["finish_reason"] or "stop"} for choice in value["choices"]]
        for choice in choices:  # the first token of a prompt has no log-probability, which the type omits, too
            lists = choice["logprobs"] = dict(choice["logprobs"] or {})
            for name, empty in (("token_logprobs", 0.0), ("top_logprobs", {})):
                if lists.get(name, [0])[:1] == [None]:
                    lists[name] = [empty, *lists[name][1:]]
        value = {**value, "choices": choices}
    _check(value, BODIES[value["object"]], value["object"])


def _without_custom_calls(choice: Any) -> Any:
    calls = [call for call in choice["delta"].get("tool_calls", ()) if "custom" not in call]
    delta = {name: value for name, value in choice["delta"].items() if name != "tool_calls"}
    return {**choice, "delta": {**delta, **({"tool_calls": calls} if calls else {})}}


def check_event(value: Any) -> None:
    """Raise `AssertionError` if an event of the Responses API is not exactly of the type that it names."""
    _check(value, responses.ResponseStreamEvent, value["type"])


def check_item(value: Any) -> None:
    """Raise `AssertionError` if an item of the Responses API is not exactly of the type that it names."""
    _check(value, responses.ResponseOutputItem, value["type"])


def events_of(text: str) -> Iterator[Any]:
    """Yield the JSON values of a stream. Its last event must be [DONE]."""
    blocks = text.split("\n\n")
    assert blocks[-1] == ""
    assert blocks[-2] == "data: [DONE]"
    for block in blocks[:-2]:
        if block.startswith(":"):
            continue
        *names, data = block.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert names in ([], [f"event: {value.get('type')}"])
        yield value


def _check(value: Any, kind: Any, place: str) -> None:
    problem = _problem(value, kind, place)
    assert problem is None, problem


def _problem(value: Any, kind: Any, place: str) -> str | None:
    """Return what is wrong with a value; None: it has the type."""
    if get_origin(kind) is Annotated:
        return _problem(value, get_args(kind)[0], place)
    if hasattr(kind, "__value__"):  # a named alias
        return _problem(value, kind.__value__, place)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _union(value, get_args(kind), place)
    if origin is list:
        if not isinstance(value, list):
            return f"{place}: expected a list, found {value!r:.80}"
        found = (_problem(one, get_args(kind)[0], f"{place}[{number}]") for number, one in enumerate(value))
        return next((one for one in found if one), None)
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return _model(value, kind, place)
    if origin is Literal:
        return None if value in get_args(kind) else f"{place}: expected one of {get_args(kind)}, found {value!r:.80}"
    try:
        pydantic.TypeAdapter(kind).validate_python(value, strict=kind is not float)
    except pydantic.ValidationError as error:
        return f"{place}: {error}"
    return None


def _union(value: Any, kinds: tuple[Any, ...], place: str) -> str | None:
    problems = []
    for kind in kinds:
        problem = _problem(value, kind, place)
        if problem is None:
            return None
        problems.append(problem)
    return max(problems, key=len) if len(problems) < 4 else max(problems, key=lambda one: one.count("."))


def _model(value: Any, kind: type[pydantic.BaseModel], place: str) -> str | None:
    if not isinstance(value, dict):
        return f"{place}: expected an object ({kind.__name__}), found {value!r:.80}"
    fields = {field.alias or name: field for name, field in kind.model_fields.items()}
    for name, inner in value.items():
        if name not in fields:
            if (kind.__name__, name) in EXTENSIONS:
                continue
            return f"{place}.{name}: {kind.__name__} has no such property"
        problem = _problem(inner, fields[name].annotation, f"{place}.{name}")
        if problem is not None:
            return problem
    missing = [name for name, field in fields.items() if field.is_required() and name not in value]
    return f"{place}: {kind.__name__} needs {missing}" if missing else None
