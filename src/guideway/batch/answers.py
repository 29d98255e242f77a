"""Results of a batch as output lines: in OpenAI's format if the request has it, else in the format of this library."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from guideway.batch.answer_parts import (
    call_id,
    call_object,
    chat_usage,
    identifier,
    logprob_lists,
    logprob_object,
    reply_text,
    token_counts,
)
from guideway.batch.requests import BatchRequest
from guideway.batch.response_objects import response_body
from guideway.constraints.tools import Reply
from guideway.errors import (
    AuthenticationError,
    ConnectionLostError,
    ConstraintError,
    ContextOverflowError,
    EmptySequenceError,
    GuidewayError,
    InvalidFileError,
    InvalidRequestError,
    InvalidTextError,
    InvalidTokenError,
    OverloadedError,
    RateLimitError,
    RemoteError,
)
from guideway.generation import Generation
from guideway.generation.protocol import AnyModel
from guideway.sessions import ModelBase

__all__ = [
    "answer_body",
    "answer_line",
    "chat_message",
    "digest_of_line",
    "error_line",
    "error_object",
    "outcome_of_line",
]

_STATUS: list[tuple[type[Exception], int, str, str]] = [
    (ContextOverflowError, 400, "invalid_request_error", "context_length_exceeded"),
    (InvalidTokenError, 400, "invalid_request_error", "invalid_token"),
    (EmptySequenceError, 400, "invalid_request_error", "empty_prompt"),
    (AuthenticationError, 401, "authentication_error", "authentication"),
    (RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (OverloadedError, 503, "server_error", "overloaded"),
    (ConnectionLostError, 502, "server_error", "connection_lost"),
    (RemoteError, 502, "server_error", "endpoint_failed"),
    (InvalidTextError, 500, "server_error", "invalid_text"),
    (InvalidFileError, 500, "server_error", "invalid_file"),  # a file of the server, not of the request
]


def error_object(error: Exception) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status for an error, and its error object in the format of OpenAI's API."""
    message = re.sub(r"^prompt \d+ of \d+: ", "", str(error)) or type(error).__name__
    param = getattr(error, "param", None)
    if isinstance(error, ConstraintError) and error.place is not None and error.place.startswith("/"):
        param = error.place
    for kind, status, name, code in _STATUS:
        if isinstance(error, kind):
            return status, {"message": message, "type": name, "param": param, "code": code}
    if isinstance(error, InvalidRequestError):
        return 400, {"message": message, "type": "invalid_request_error", "param": param, "code": error.code}
    if not isinstance(error, GuidewayError) and isinstance(error, (ValueError, TypeError)):
        return 400, {"message": message, "type": "invalid_request_error", "param": param, "code": "invalid_value"}
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__.removesuffix("Error")).lower()
    if isinstance(error, (ConstraintError, ValueError, TypeError)):
        return 400, {"message": message, "type": "invalid_request_error", "param": param, "code": words}
    return 500, {"message": message, "type": "server_error", "param": param, "code": words}


def error_line(
    error: Exception, request: BatchRequest | None, custom_id: str | None, place: str, url: str
) -> dict[str, Any]:
    """Return the output line of a request that failed.

    Args:
        error: The error.
        request: The request; None if the input line is not a valid request.
        custom_id: The identifier; None if the input line has no valid one.
        place: The place of the input line, such as "line 3".
        url: The URL of the input line; "" if it has none or an unknown one.
    """
    status, found = error_object(error)
    endpoint = request.endpoint if request is not None else url
    if endpoint:
        answer = {"status_code": status, "request_id": identifier("req", custom_id, place), "body": {"error": found}}
        return {
            "id": identifier(_PREFIX, custom_id, place),
            "custom_id": custom_id,
            "response": answer,
            "error": None,
        }
    found["message"] = f"{place}: {found['message']}" if custom_id is None else found["message"]
    line = {"custom_id": custom_id, "error": found}
    if request is not None and "meta" in request.details:
        line["meta"] = request.details["meta"]
    return line


def outcome_of_line(entry: dict[str, Any]) -> Literal["result", "error"] | None:
    """Return "result" or "error" for a line of an output file; None for any other object.

    In OpenAI's format, a line with a status other than 200, or with the `custom_id` null, is an error.
    """
    custom_id, response = entry.get("custom_id", 0), entry.get("response")
    if custom_id is not None and not isinstance(custom_id, str):
        return None
    if entry.get("error") is not None:
        return "error"
    if isinstance(response, dict) and "status_code" in response:
        return "result" if response["status_code"] == 200 and custom_id is not None else "error"
    has_text = isinstance(entry.get("text"), str) or isinstance(entry.get("samples"), list)
    return "result" if has_text and custom_id is not None else None


_PREFIX = "batch_req"


def digest_of_line(entry: dict[str, Any]) -> str:
    """Return the digest that a line of an output file has; "" if it has none.

    In OpenAI's format, it is the `id` without its prefix.
    """
    found = entry.get("request_digest")
    if found is None and "response" in entry:
        found = str(entry.get("id")).removeprefix(_PREFIX + "_")
    return found if isinstance(found, str) else ""


def answer_line(
    model: AnyModel, request: BatchRequest, found: Sequence[Sequence[Generation[Any]]], digest: str = ""
) -> dict[str, Any]:
    """Return the output line of a request that succeeded.

    Args:
        model: The model.
        request: The request.
        found: The results of each prompt.
        digest: The digest of the request and of the settings of the run; "": the line gets none.
    """
    if not request.endpoint:
        return _own(request, [one for group in found for one in group], digest)
    body = answer_body(model, request, found)
    answer = {"status_code": 200, "request_id": identifier("req", request.custom_id), "body": body}
    return {
        "id": f"{_PREFIX}_{digest}" if digest else identifier(_PREFIX, request.custom_id),
        "custom_id": request.custom_id,
        "response": answer,
        "error": None,
    }


def answer_body(model: AnyModel, request: BatchRequest, found: Sequence[Sequence[Generation[Any]]]) -> dict[str, Any]:
    """Return the body of the answer to a request in OpenAI's format. `found`: the results of each prompt."""
    if request.endpoint == "/v1/responses":
        return response_body(model, request, found[0][0])
    return _BODIES[request.endpoint](model, request, found)


def _own(request: BatchRequest, samples: list[Generation[Any]], digest: str) -> dict[str, Any]:
    line: dict[str, Any] = {"custom_id": request.custom_id}
    if request.n is None:
        line |= _sample(samples[0])
    else:
        line["samples"] = [_sample(one) for one in samples]
    if digest:
        line["request_digest"] = digest
    return line | ({"meta": request.details["meta"]} if "meta" in request.details else {})


def _sample(one: Generation[Any]) -> dict[str, Any]:
    prompt, completion = token_counts(one)
    made = {
        "text": one.text,
        "value": to_jsonable_python(one.value, serialize_unknown=True),
        "prompt_tokens": prompt,
        "tokens": completion,
        "finish_reason": one.finish_reason,
    }
    if one.truncation is not None:
        made["truncation"] = one.truncation._asdict()
    return made


def _chat(model: AnyModel, request: BatchRequest, found: Sequence[Sequence[Generation[Any]]]) -> dict[str, Any]:
    choices = []
    for index, one in enumerate(found[0]):
        message, reason = chat_message(request, one, index)
        choice: dict[str, Any] = {"index": index, "message": message, "logprobs": None, "finish_reason": reason}
        if "logprobs" in request.options and isinstance(model, ModelBase):
            choice["logprobs"] = {"content": [logprob_object(model, step) for step in one.steps], "refusal": None}
        choices.append(choice)
    return {
        "id": identifier("chatcmpl", request.custom_id),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.details.get("model", model.name),
        "choices": choices,
        "usage": chat_usage(model, request, found),
    }


def chat_message(request: BatchRequest, one: Generation[Any], index: int = 0) -> tuple[dict[str, Any], str]:
    """Return the chat message of a result, and its finish reason.

    `index` is the index of the choice, which becomes part of the ids of its tool calls.
    """
    message: dict[str, Any] = {"role": "assistant", "content": one.text, "refusal": None}
    if not isinstance(one.value, Reply):
        return message, one.finish_reason
    reply = one.value
    message["content"] = reply_text(reply)
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if not reply.calls:
        return message, one.finish_reason
    message["content"] = message["content"] or None
    message["tool_calls"] = [
        call_object(request, call, call_id(request, call, index, number)) for number, call in enumerate(reply.calls)
    ]
    return message, "tool_calls" if one.finish_reason == "stop" else one.finish_reason


def _completion(model: AnyModel, request: BatchRequest, found: Sequence[Sequence[Generation[Any]]]) -> dict[str, Any]:
    choices: list[dict[str, Any]] = []
    for one in (one for group in found for one in group):
        choice: dict[str, Any] = {
            "index": len(choices),
            "text": one.text,
            "logprobs": None,
            "finish_reason": one.finish_reason,
        }
        if "logprobs" in request.options and isinstance(model, ModelBase):
            choice["logprobs"] = logprob_lists(model, one.steps)
        choices.append(choice)
    return {
        "id": identifier("cmpl", request.custom_id),
        "object": "text_completion",
        "created": int(time.time()),
        "model": request.details.get("model", model.name),
        "choices": choices,
        "usage": chat_usage(model, request, found),
    }


_BODIES = {"/v1/chat/completions": _chat, "/v1/completions": _completion}
