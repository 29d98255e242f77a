"""Objects of the Responses API: the response, and the items of its output."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from guideway.batch.answer_parts import call_id, identifier, logprob_object, reply_text, usage_details, usage_object
from guideway.batch.requests import BatchRequest
from guideway.constraints.tools import Reply
from guideway.generation import Generation
from guideway.generation.protocol import AnyModel
from guideway.jsontext.encoder import exact_json
from guideway.sessions import ModelBase

__all__ = ["call_item", "item_id", "message_item", "output_items", "reasoning_item", "response_body", "response_object"]


def item_id(request: BatchRequest, prefix: str, number: int = 0) -> str:
    """Return the id of an output item.

    Args:
        request: The request.
        prefix: "rs" for reasoning, "msg" for a message, "fc" for a function call, "ctc" for a call of a custom tool.
        number: For a call: its index in the reply. Otherwise 0.
    """
    return f"{identifier(prefix, request.custom_id)}_{number}"


def reasoning_item(request: BatchRequest, text: str, status: str = "completed") -> dict[str, Any]:
    """Return an output item of the Responses API with reasoning. `text`: "" if there is no text yet."""
    content = [{"type": "reasoning_text", "text": text}] if text else []
    return {"type": "reasoning", "id": item_id(request, "rs"), "summary": [], "content": content, "status": status}


def message_item(
    request: BatchRequest, text: str | None, logprobs: Sequence[Any] = (), status: str = "completed"
) -> dict[str, Any]:
    """Return an output item of the Responses API with a message. `text`: None if the message has no text yet."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": list(logprobs)}
    return {
        "type": "message",
        "id": item_id(request, "msg"),
        "status": status,
        "role": "assistant",
        "content": [] if text is None else [part],
    }


def call_item(
    request: BatchRequest, name: str, given: str, arguments: str | None, number: int, status: str = "completed"
) -> dict[str, Any]:
    """Return an output item of the Responses API with a tool call.

    Args:
        request: The request.
        name: The name of the tool.
        given: The id of the call (`call_id`).
        arguments: The arguments as JSON text, or the input of a custom tool; None: there is no text yet.
        number: The index of the call in the reply.
        status: The status of the item. The call of a custom tool has none.
    """
    tools = request.details.get("tools")
    if tools is not None and name in tools.custom:
        identity = {"type": "custom_tool_call", "id": item_id(request, "ctc", number)}
        return {**identity, "call_id": given, "name": name, "input": arguments or ""}
    identity = {"type": "function_call", "id": item_id(request, "fc", number)}
    return {**identity, "call_id": given, "name": name, "arguments": arguments or "", "status": status}


def output_items(model: AnyModel, request: BatchRequest, one: Generation[Any]) -> list[dict[str, Any]]:
    """Return the output items for a result: reasoning, text and calls, as far as it has them."""
    reply = one.value if isinstance(one.value, Reply) else Reply(one.text)
    status = "completed" if one.finish_reason == "stop" else "incomplete"
    items = [reasoning_item(request, reply.reasoning)] if reply.reasoning else []
    text = reply_text(reply)
    if text or not reply.calls:
        logprobs = [logprob_object(model, step) for step in one.steps] if isinstance(model, ModelBase) else []
        items.append(message_item(request, text, logprobs, status))
    tools = request.details.get("tools")
    for number, call in enumerate(reply.calls):
        values = call.json_arguments()
        custom = tools is not None and call.name in tools.custom
        arguments = values["input"] if custom else exact_json(values)
        items.append(call_item(request, call.name, call_id(request, call, 0, number), arguments, number))
    return items


def response_object(
    request: BatchRequest,
    model_name: str,
    *,
    status: str,
    output: list[dict[str, Any]],
    usage: dict[str, Any] | None = None,
    created: float | None = None,
    error: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a response object of the Responses API, with the fields that repeat those of the request.

    Args:
        request: The request.
        model_name: The name of the model.
        status: "in_progress", "completed", "incomplete", "cancelled" or "failed".
        output: The output items.
        usage: The usage object; None: not known yet.
        created: The time at which the response began, in seconds since 1970; None: now.
        error: The error object; None: no error.
    """
    given = request.details.get("given", {})
    reasoning = given.get("reasoning") or {}
    text = given.get("text") or {}
    form = text.get("format") or {"type": "text"}
    if form.get("type") == "json_schema":
        form = {"name": "answer", **form}
    ended = int(time.time()) if status in ("completed", "incomplete") else None
    return {
        "id": identifier("resp", request.custom_id),
        "object": "response",
        "created_at": int(time.time() if created is None else created),
        "completed_at": ended,
        "status": status,
        "background": bool(request.details.get("background")),
        "error": error,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": given.get("instructions"),
        "max_output_tokens": given.get("max_output_tokens"),
        "max_tool_calls": None,
        "metadata": given.get("metadata") or {},
        "model": model_name,
        "output": output,
        "parallel_tool_calls": given.get("parallel_tool_calls", True),
        "previous_response_id": given.get("previous_response_id"),
        "prompt_cache_key": given.get("prompt_cache_key"),
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "safety_identifier": given.get("safety_identifier"),
        "service_tier": "default",
        "store": bool(request.details.get("store")),
        "temperature": given.get("temperature", 1.0),
        "text": {"format": form, "verbosity": "medium"},
        "tool_choice": given.get("tool_choice", "auto"),
        "tools": [_shown_tool(tool) for tool in given.get("tools") or ()],
        "top_logprobs": given.get("top_logprobs", 0),
        "top_p": given.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": usage,
        "user": given.get("user"),
    }


def _shown_tool(tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type", "function") == "custom":
        return {"format": {"type": "text"}, **tool}
    return {"type": "function", "parameters": None, "strict": True, "description": None, **tool}


def response_body(model: AnyModel, request: BatchRequest, one: Generation[Any]) -> dict[str, Any]:
    """Return the response object for a result."""
    names = ("input_tokens", "output_tokens")
    usage: dict[str, Any] = usage_object([[one]], names)
    details = usage_details(model, [[one]], names)
    if "report" not in request.details:  # in a batch, so that each run writes equal results
        details["input_tokens_details"]["cached_tokens"] = 0
    details["input_tokens_details"]["cache_write_tokens"] = 0
    usage |= details
    return response_object(
        request,
        request.details.get("model", model.name),
        status="completed" if one.finish_reason == "stop" else "incomplete",
        output=output_items(model, request, one),
        usage=usage,
        created=request.details.get("created"),
    )
