"""Converts the messages of request bodies, and items of the Responses API, to messages for chat templates."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from guideway.arguments import short_repr
from guideway.batch.fields import invalid_field, list_field, object_field, string_field
from guideway.batch.requests import unknown_field
from guideway.errors import InvalidRequestError
from guideway.jsontext.decoder import loads

__all__ = ["compaction_item", "messages_of", "messages_of_items"]

_ROLES = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content")
_EMPTY = ("refusal", "audio", "function_call", "annotations")
"""Fields of replies that clients send back. They are ignored if they are empty, else refused."""
_TEXTS = ("text", "input_text", "output_text")


def messages_of(given: list[Any], param: str) -> list[dict[str, Any]]:
    """Return messages for a chat template: each content is a text, and the arguments of calls are JSON values.

    Raises:
        InvalidRequestError: A field is missing, unknown or malformed; `param` is its path.
    """
    if not given:
        raise invalid_field(param, "a list of messages, not empty", given)
    return [_message(object_field(one, f"{param}[{number}]"), f"{param}[{number}]") for number, one in enumerate(given)]


def _message(given: dict[str, Any], place: str) -> dict[str, Any]:
    for name, value in given.items():
        if name not in _FIELDS and not (name in _EMPTY and not value):
            raise unknown_field(name, f"{place}.{name}", _FIELDS)
    role = string_field(given.get("role"), f"{place}.role")
    if role not in _ROLES:
        raise invalid_field(f"{place}.role", f"one of {', '.join(_ROLES)}", role)
    message = {name: value for name, value in given.items() if value is not None and name not in _EMPTY}
    message["role"] = _ROLES[role]
    for name in ("name", "tool_call_id", "reasoning_content"):
        if name in message:
            string_field(message[name], f"{place}.{name}")
    content, calls = given.get("content"), message.get("tool_calls")
    if content is not None or not calls:
        message["content"] = _content(content, f"{place}.content")
    if calls is not None:
        listed = list_field(calls, f"{place}.tool_calls")
        message["tool_calls"] = [_call(call, f"{place}.tool_calls[{at}]") for at, call in enumerate(listed)]
    return message


def _content(content: Any, place: str) -> str:
    if isinstance(content, str):
        return content
    texts = []
    for number, part in enumerate(list_field(content, place)):
        kind = object_field(part, f"{place}[{number}]").get("type")
        if kind not in _TEXTS:
            raise InvalidRequestError(
                f"content parts of the type {short_repr(kind)} are not supported", f"{place}[{number}].type"
            )
        texts.append(string_field(part.get("text"), f"{place}[{number}].text"))
    return "\n".join(texts)


def _call(given: Any, place: str) -> dict[str, Any]:
    call = object_field(given, place)
    kind = call.get("type", "function")
    if kind == "custom":
        custom = object_field(call.get("custom"), f"{place}.custom")
        name, text = (string_field(custom.get(key), f"{place}.custom.{key}") for key in ("name", "input"))
        return _called(call.get("id"), name, {"input": text})
    function = object_field(call.get("function"), f"{place}.function")
    name = string_field(function.get("name"), f"{place}.function.name")
    return _called(call.get("id"), name, _arguments(function.get("arguments"), f"{place}.function.arguments"))


def _arguments(given: Any, place: str) -> Any:
    """Return the arguments of a call as a JSON value. Clients of OpenAI's API send them as JSON text."""
    if not isinstance(given, str):
        return object_field(given, place)
    try:
        return loads(given)
    except ValueError as error:
        raise InvalidRequestError(f"the arguments are not JSON: {error}", place) from None


def _called(call_id: Any, name: str, arguments: Any) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return call if call_id is None else {"id": str(call_id), **call}


# -- items of the Responses API

_PHASES = ("commentary", "final_answer")
_SUMMARY = "Summary of the conversation so far:\n"


def compaction_item(name: str, text: str) -> dict[str, Any]:
    """Return the compaction item with the summary of a conversation. The summary is base64, not encrypted.

    Args:
        name: The id of the item.
        text: The summary.
    """
    data = base64.urlsafe_b64encode(text.encode("utf-8", "replace"))
    return {"type": "compaction", "id": name, "encrypted_content": data.decode()}


def _compacted(item: Mapping[str, Any], place: str) -> str:
    """Return the summary in an item that `compaction_item` made. `place`: the path of the item, for errors."""
    place = f"{place}.encrypted_content"
    given = string_field(item.get("encrypted_content"), place)
    try:
        return base64.b64decode(given.encode(), altchars=b"-_", validate=True).decode()
    except ValueError:
        raise InvalidRequestError("the content was not made by 'POST /v1/responses/compact' here", place) from None


def messages_of_items(given: list[Any], param: str) -> list[dict[str, Any]]:
    """Return items of the Responses API as messages.

    Consecutive items of the assistant become one message. A compaction item begins a new one.

    Raises:
        InvalidRequestError: A field is missing or malformed, or the type of an item is not supported.
    """
    made: list[dict[str, Any]] = []
    for number, one in enumerate(given):
        place = f"{param}[{number}]"
        item = object_field(one, place)
        kind = item.get("type", "message")
        if kind == "message":
            if item.get("phase") not in (None, *_PHASES):
                raise invalid_field(f"{place}.phase", f"one of {', '.join(_PHASES)}", item["phase"])
            plain: dict[str, Any] = {name: item[name] for name in ("role", "content") if name in item}
            _add(made, _message(plain, place))
        elif kind in ("function_call", "custom_tool_call"):
            name = string_field(item.get("name"), f"{place}.name")
            call_id = string_field(item.get("call_id"), f"{place}.call_id")
            if kind == "function_call":
                arguments = _arguments(item.get("arguments"), f"{place}.arguments")
            else:
                arguments = {"input": string_field(item.get("input"), f"{place}.input")}
            _add(made, {"role": "assistant", "content": "", "tool_calls": [_called(call_id, name, arguments)]})
        elif kind in ("function_call_output", "custom_tool_call_output"):
            call_id = string_field(item.get("call_id"), f"{place}.call_id")
            content = _content(item.get("output"), f"{place}.output")
            made.append({"role": "tool", "tool_call_id": call_id, "content": content})
        elif kind == "compaction":
            made.append({"role": "assistant", "content": _SUMMARY + _compacted(item, place)})
        elif kind == "reasoning":
            _add(made, {"role": "assistant", "content": "", "reasoning_content": _reasoning(item, place)})
        else:
            raise InvalidRequestError(f"items of the type {short_repr(kind)} are not supported", f"{place}.type")
    if not made:
        raise invalid_field(param, "a list of items, not empty", given)
    return made


def _reasoning(item: Mapping[str, Any], place: str) -> str:
    texts = []
    for name in ("content", "summary"):
        for number, part in enumerate(list_field(item.get(name) or [], f"{place}.{name}")):
            text = object_field(part, f"{place}.{name}[{number}]").get("text")
            texts.append(string_field(text, f"{place}.{name}[{number}].text"))
    return "\n".join(texts)


def _add(made: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Append a message. If it and the last message are of the assistant, it is merged into the last message."""
    last = made[-1] if made else None
    if last is None or last["role"] != "assistant" or message["role"] != "assistant":
        made.append(message)
        return
    last["content"] = "\n".join(text for text in (last.get("content"), message.get("content")) if text)
    if "tool_calls" in message:
        last.setdefault("tool_calls", []).extend(message["tool_calls"])
    if "reasoning_content" in message:
        last["reasoning_content"] = last.get("reasoning_content", "") + message["reasoning_content"]
