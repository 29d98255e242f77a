"""Prompts from messages: the chat template of the model, and the tools of the constraint."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from guideway.caching import cached
from guideway.constraints import Constraint, Reasoning, ToolCalls
from guideway.constraints.tools.writing import messages_as_text
from guideway.errors import ChatTemplateError
from guideway.tokenizers import Tokenizer
from guideway.tokenizers.chat_template import render_template

__all__ = ["prompt_text", "takes_tools", "tool_calls_in", "with_family"]

_PROBE = "probe_tool_7f3a91"
_PROBE_TOOL = {
    "type": "function",
    "function": {
        "name": _PROBE,
        "description": "",
        "parameters": {"type": "object", "properties": {"x": {"type": "string", "description": ""}}},
    },
}


def tool_calls_in(source: Constraint[Any] | None) -> ToolCalls | None:
    """Return the constraint if it is a `ToolCalls`; for a `Reasoning`, that of its answer; else None."""
    while isinstance(source, Reasoning):
        source = source.answer
    return source if isinstance(source, ToolCalls) else None


def with_family(source: Constraint[Any], tokenizer: Tokenizer | None) -> Constraint[Any]:
    """Return the constraint with the family that the chat template uses, if it has a `ToolCalls` that names no family.

    Other constraints are returned unchanged. Without a tokenizer, the family is "hermes".
    """
    calls = tool_calls_in(source)
    if calls is None or not calls.has_default_family:
        return source
    bound: Constraint[Any] = calls.for_tokenizer(tokenizer)
    wrappers = []
    while isinstance(source, Reasoning):
        wrappers.append(source)
        source = source.answer
    for one in reversed(wrappers):
        bound = Reasoning(bound, begin=one.begin, end=one.end, optional=one.skips, special=one.special)
    return bound


def prompt_text(
    tokenizer: Tokenizer,
    messages: Sequence[Mapping[str, Any]],
    source: Constraint[Any] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    warn: bool = True,
) -> str:
    """Render messages with the chat template.

    The tools of `source` are passed to the template. If the template takes no tools, the system message describes them.
    If there is no system message and the template refuses the new one, the first message of the user describes them. If
    `options` has "tools", the tools of `source` are ignored.

    Args:
        tokenizer: The tokenizer with the template.
        messages: The messages.
        source: The constraint of the reply.
        options: Other arguments of `Tokenizer.render_chat`.
        warn: Whether to emit a `UserWarning` if the template takes no tools.

    Returns:
        The text.

    Raises:
        ChatTemplateError: As in `Tokenizer.render_chat`.
    """
    given = dict(options or {})
    calls = tool_calls_in(source)
    if calls is None or not calls.tools or "tools" in given:
        return _rendered(tokenizer, messages, given)
    tools = [tool.to_openai() for tool in calls.tools]
    template = tokenizer.template_for(tools, given.get("chat_template"))
    if template is None or takes_tools(template):
        if calls.choice != "auto":
            given.setdefault("tool_choice", calls.choice)
        return _rendered(tokenizer, messages, {**given, "tools": tools})
    if warn:
        warnings.warn(
            "the chat template takes no tools, so they are described in the system message; the model may not have"
            " been trained to call tools",
            UserWarning,
            stacklevel=2,
        )
    try:
        return tokenizer.render_chat(messages_as_text(messages, calls.tools, calls.family), **given)
    except ChatTemplateError:
        if any(message.get("role") == "system" for message in messages):
            raise
        merged = messages_as_text(messages, calls.tools, calls.family, system=False)
        return tokenizer.render_chat(merged, **given)


def _rendered(tokenizer: Tokenizer, messages: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> str:
    """Render messages.

    If this fails, try again with the arguments of tool calls as JSON text, which some templates need.
    """
    try:
        return tokenizer.render_chat(messages, **given)
    except ChatTemplateError:
        changed = [_with_json_arguments(message) for message in messages]
        if changed == list(messages):
            raise
        try:
            return tokenizer.render_chat(changed, **given)
        except ChatTemplateError:
            pass
        raise


def _with_json_arguments(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of a message in which the arguments of tool calls are JSON texts.

    The message itself is returned if it has no tool calls, or a call whose arguments are not a dict.
    """
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function", call) if isinstance(call, Mapping) else {}
        if not isinstance(function.get("arguments"), Mapping):
            return message
        text = json.dumps(function["arguments"], ensure_ascii=False, default=str)
        calls.append({**call, "function": {**function, "arguments": text}})
    return {**message, "tool_calls": calls} if calls else message


@cached(64)
def takes_tools(template: str) -> bool:
    """Return whether a chat template writes the tools that it gets. To find out, it is rendered with a test tool.

    If it cannot be rendered, return whether the text of the template contains "tools".
    """
    user = {"role": "user", "content": "x"}
    for messages in ([user], [{"role": "system", "content": "x"}, user]):
        try:
            text = render_template(template, messages, special_tokens={}, tools=[_PROBE_TOOL])
        except ChatTemplateError:
            continue
        return _PROBE in text
    return "tools" in template
