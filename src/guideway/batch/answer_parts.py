"""Parts of answers in OpenAI's format: identifiers, tool calls, log-probabilities, usage."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

from guideway.batch.requests import BatchRequest
from guideway.constraints.tools import Reply, ToolCall
from guideway.generation import Generation
from guideway.generation.protocol import AnyModel
from guideway.jsontext.encoder import exact_json
from guideway.sampling import TokenLogprobs
from guideway.sessions import ModelBase

__all__ = [
    "call_id",
    "call_object",
    "chat_usage",
    "identifier",
    "logprob_lists",
    "logprob_object",
    "reply_text",
    "token_counts",
    "usage_details",
    "usage_object",
]


def identifier(prefix: str, custom_id: str | None, place: str = "") -> str:
    """Return the identifier of an object that belongs to a request. It depends on the arguments only.

    Args:
        prefix: The beginning of the identifier, such as "chatcmpl".
        custom_id: The identifier of the request; None: the line has no valid one.
        place: The place of the request in the input, which is used if `custom_id` is None.
    """
    text = f"{custom_id}\0{place if custom_id is None else ''}"
    return f"{prefix}_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def reply_text(reply: Reply) -> str:
    """Return the text of a reply, without the line breaks between reasoning and answer."""
    return reply.text.lstrip("\n") if reply.reasoning else reply.text


def call_id(request: BatchRequest, call: ToolCall, index: int, number: int) -> str:
    """Return the id of a tool call: the one that the model wrote, or else one that is derived from the request.

    `index` is the index of the choice, `number` that of the call in this choice.
    """
    return call.id or f"{identifier('call', request.custom_id)}_{index}_{number}"


def call_object(request: BatchRequest, call: ToolCall, given: str) -> dict[str, Any]:
    """Return a tool call in the format of chat completions. `given`: the id of the call."""
    arguments = call.json_arguments()
    tools = request.details.get("tools")
    if tools is not None and call.name in tools.custom:
        return {"id": given, "type": "custom", "custom": {"name": call.name, "input": arguments["input"]}}
    text = exact_json(arguments)
    return {"id": given, "type": "function", "function": {"name": call.name, "arguments": text}}


def _token(model: ModelBase, token_id: int, logprob: float) -> dict[str, Any]:
    data = model.vocabulary.bytes_of([token_id], special=True)
    return {"token": data.decode("utf-8", "replace"), "logprob": max(logprob, -9999.0), "bytes": list(data)}


def logprob_object(model: ModelBase, step: TokenLogprobs) -> dict[str, Any]:
    """Return the log-probabilities of a token in the format of chat completions."""
    top = [
        _token(model, other.token_id, math.log(other.probability) if other.probability else -math.inf)
        for other in step.alternatives
    ]
    return {**_token(model, step.token_id, step.logprob), "top_logprobs": top}


def logprob_lists(model: ModelBase, found: Sequence[TokenLogprobs], start: int = 0) -> dict[str, Any]:
    """Return the log-probabilities of tokens in the format of completions. `start`: the offset of the first token."""
    steps = [logprob_object(model, step) for step in found]
    offsets = [start]
    for step in steps:
        offsets.append(offsets[-1] + len(step["token"]))
    return {
        "tokens": [step["token"] for step in steps],
        "token_logprobs": [step["logprob"] for step in steps],
        "top_logprobs": [{other["token"]: other["logprob"] for other in step["top_logprobs"]} for step in steps],
        "text_offset": offsets[:-1],
    }


def usage_object(found: Sequence[Sequence[Generation[Any]]], names: tuple[str, str]) -> dict[str, int]:
    """Return the usage object of a request.

    Args:
        found: The results of each prompt.
        names: The names of the members for the tokens of prompts and for the tokens of generated texts.
    """
    remote = any(getattr(one, "usage", None) is not None for group in found for one in group)
    prompt = sum(token_counts(one)[0] for group in found for one in (group if remote else group[:1]))
    completion = sum(token_counts(one)[1] for group in found for one in group)
    return {names[0]: prompt, names[1]: completion, "total_tokens": prompt + completion}


def usage_details(
    model: AnyModel, found: Sequence[Sequence[Generation[Any]]], names: tuple[str, str]
) -> dict[str, dict[str, int]]:
    """Return the details of a usage object: cached tokens of prompts, and tokens of reasoning.

    `found` and `names` are those of `usage_object`.
    """
    cached = sum(_details(model, group[0])[0] for group in found)
    reasoning = sum(_details(model, one)[1] for group in found for one in group)
    return {
        f"{names[0]}_details": {"cached_tokens": cached},
        f"{names[1]}_details": {"reasoning_tokens": reasoning},
    }


def _details(model: AnyModel, one: Generation[Any]) -> tuple[int, int]:
    """Return the number of cached tokens of the prompt, and of tokens up to the end of the reasoning (0 without it)."""
    usage = getattr(one, "usage", None)  # only results of remote models have it
    if usage is not None:
        return usage.cached, usage.reasoning
    if not isinstance(one.value, Reply) or not one.value.reasoning or not isinstance(model, ModelBase):
        return one.cached_tokens, 0
    parts = [model.vocabulary.bytes_of([token_id], special=True) for token_id in one.tokens]
    reasoning = one.value.reasoning.encode("utf-8", "replace")
    begin = b"".join(parts).find(reasoning)
    end = 0 if begin < 0 else begin + len(reasoning)
    starts = itertools.accumulate(map(len, parts), initial=0)
    return one.cached_tokens, sum(start < end for start in itertools.islice(starts, len(parts)))


def chat_usage(model: AnyModel, request: BatchRequest, found: Sequence[Sequence[Generation[Any]]]) -> dict[str, Any]:
    """Return the usage object of a chat completion or completion.

    It has details in answers of a server. In a batch it has none, so that each run writes equal results.
    """
    names = ("prompt_tokens", "completion_tokens")
    usage: dict[str, Any] = usage_object(found, names)
    return {**usage, **usage_details(model, found, names)} if "report" in request.details else usage


def token_counts(one: Generation[Any]) -> tuple[int, int]:
    """Return the number of tokens of the prompt, and that of generated tokens.

    For a remote model, both are as its API reported them.
    """
    usage = getattr(one, "usage", None)  # only results of remote models have it
    return (one.prompt_tokens, len(one.tokens)) if usage is None else (usage.input, usage.output)
