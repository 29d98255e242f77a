"""Writes tool calls and descriptions of tools as text, for chat templates that do not support tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from guideway.constraints.tools.families import Family
from guideway.constraints.tools.tool import Tool
from guideway.jsontext.encoder import exact_json

__all__ = ["described_tools", "messages_as_text", "written_calls"]


def described_tools(tools: Sequence[Tool], family: Family) -> str:
    """Return instructions for a model: the descriptions of the tools, and the notation of a call."""
    listed = "\n".join(json.dumps(tool.to_openai()["function"], ensure_ascii=False) for tool in tools)
    example = written_calls(family, [("FUNCTION", {"ARGUMENT": "VALUE"})])
    return (
        "You can call the following functions. Each line describes one of them, with a JSON Schema of its arguments:\n"
        f"{listed}\n\nTo call a function, write the call in this form:\n{example}"
    )


def written_calls(family: Family, calls: Sequence[tuple[str, Any]]) -> str:
    """Return calls in the notation of a family. A call is its name and its arguments as JSON values.

    If the family allows only one call in a reply, only the first call is written.
    """
    shown = calls if family.several else calls[:1]
    one = [f"{family.prefix}{name}{family.middle}{_arguments(family, given)}{family.suffix}" for name, given in shown]
    return family.opening + family.separator.join(one) + family.closing


def _arguments(family: Family, given: Any) -> str:
    if family.arguments == "json" or not isinstance(given, Mapping):
        return exact_json(given)
    if family.arguments == "python":
        return "(" + ", ".join(f"{key}={value!r}" for key, value in given.items()) + ")"
    before, between, after = family.pair
    texts = {key: one if isinstance(one, str) else exact_json(one) for key, one in given.items()}
    return "".join(f"{before}{key}{between}{text}{after}" for key, text in texts.items())


def messages_as_text(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool], family: Family, *, system: bool = True
) -> list[dict[str, Any]]:
    """Return messages for a chat template that does not support tools.

    The tools are described in a message. Calls and the results of tools are written as text.

    Args:
        messages: The messages. They are not modified.
        tools: The tools.
        family: The notation of calls.
        system: True: the system message describes the tools. False: the first message of the user does. A message that
            is missing is inserted.
    """
    found: list[dict[str, Any]] = []
    after_result = False  # whether the last message has the result of a tool
    for message in messages:
        one = {key: value for key, value in message.items() if key not in ("tool_calls", "tool_call_id")}
        if calls := message.get("tool_calls"):
            text = written_calls(family, [_call(call) for call in calls])
            one["content"] = _appended(message.get("content") or "", text, gap="\n" if message.get("content") else "")
        if message.get("role") == "tool":
            text = f"<tool_response>\n{_text(message.get('content'))}\n</tool_response>"
            if after_result:
                found[-1]["content"] = _appended(found[-1]["content"], text, gap="\n")
                continue
            one = {"role": "user", "content": text}
        after_result = message.get("role") == "tool"
        found.append(one)
    if not tools:
        return found
    words = described_tools(tools, family)
    role = "system" if system else "user"
    first = next((message for message in found if message.get("role") == role), None)
    if first is not None:
        first["content"] = _appended(first.get("content") or "", words, gap="\n\n", before=not system)
    else:
        found.insert(0, {"role": role, "content": words})
    return found


def _call(call: Mapping[str, Any]) -> tuple[str, Any]:
    """Return name and arguments of a call in a message. Arguments that are a JSON text are decoded."""
    inner = call.get("function", call)
    given = inner.get("arguments", {})
    if isinstance(given, str):
        with suppress(ValueError):  # a text that is not JSON remains a text
            given = json.loads(given)
    return str(inner.get("name", "")), given


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        return "".join(str(part.get("text", "")) if isinstance(part, Mapping) else str(part) for part in content)
    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)


def _appended(content: Any, text: str, *, gap: str, before: bool = False) -> Any:
    """Return the content of a message with a text appended, or with `before` prepended. `gap` is put between them."""
    if isinstance(content, (list, tuple)):
        part = {"type": "text", "text": text}
        return [part, *content] if before else [*content, part]
    if not content:
        return text
    return f"{text}{gap}{content}" if before else f"{content}{gap}{text}"
