"""The SDK openai: chat completions and Responses, also of other servers with the same API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from guideway.errors import UnsupportedError
from guideway.remote.adapters.base import Adapter, AnswerError, Event, Request, get, items, reported, tokens
from guideway.remote.adapters.http import IDENTITY, shortened
from guideway.remote.usage import Usage

__all__ = ["OpenAIAdapter", "ResponsesAdapter", "chat_events", "chat_usage", "chat_whole", "first_tokens"]

FINISH = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
    "tool_calls": "stop",
    "function_call": "stop",
    "model_length": "length",
}


class OpenAIAdapter(Adapter):
    """The API of chat completions."""

    default_dialect = "openai"
    library = "openai"

    def call(self, request: Request, *, asynchronous: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return `client.chat.completions.create` and its arguments."""
        return self.here().chat.completions.create, self._arguments(request)

    def logprobs_call(self, request: Request, kind: str, option: str) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return `client.chat.completions.create` and the arguments for log-probabilities."""
        made = self._arguments(replace(request, max_tokens=1, temperature=1.0, prefill=option, streamed=False))
        if kind == "top":
            made |= {"logprobs": True, "top_logprobs": 20}
        else:
            made["extra_body"]["prompt_logprobs"] = 0
        return self.here().chat.completions.create, made

    def _arguments(self, request: Request) -> dict[str, Any]:
        own = self.host == "api.openai.com" or self.host.endswith(".azure.com")
        messages = [dict(one) for one in request.messages]
        given = dict(request.fragment)
        body = dict(given.pop("extra_body", None) or {})
        if request.prefill:
            messages.append({"role": "assistant", "content": request.prefill})
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        made: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            **({"stream": True, "stream_options": {"include_usage": True}} if request.streamed else {}),
            "max_completion_tokens" if own else "max_tokens": request.max_tokens,
            "extra_headers": IDENTITY,
            **given,
        }
        for name in ("temperature", "top_p", "seed"):
            if getattr(request, name) is not None:
                made[name] = getattr(request, name)
        if request.stop:
            made["stop"] = list(request.stop)
        if body:
            made["extra_body"] = body
        return made | self.limits(request)

    def limits(self, request: Request) -> dict[str, Any]:
        """Return the argument `timeout`, with no limit above that of the request; {} for a request without one."""
        if request.timeout is None:
            return {}
        return {"timeout": shortened(self.client.timeout, request.timeout)}

    def events(self, chunk: Any) -> Iterator[Event]:
        """Yield the events of a chat chunk."""
        yield from chat_events(chunk)

    def whole(self, answer: Any) -> Iterator[Event]:
        """Yield the events of a chat completion."""
        yield from chat_whole(answer)


def chat_whole(answer: Any) -> Iterator[Event]:
    """Yield the events of a whole answer (an object or a dict, no stream) in the format of chat completions."""
    if isinstance(identity := get(answer, "id"), str):
        yield Event("id", identity)
    for choice in items(get(answer, "choices"))[:1]:
        yield from _parts(get(choice, "message"))
        if content := items(get(choice, "logprobs", "content")):
            yield Event("logprobs", tokens=first_tokens(content))
        yield _finish(choice, get(choice, "finish_reason"))
    if (usage := get(answer, "usage")) is not None:
        yield Event("usage", usage=chat_usage(usage))


def _parts(message: Any) -> Iterator[Event]:
    """Yield the events of a message, or of the `delta` of a chunk, which has the same members."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(text := get(message, name), str) and text:
            yield Event("reasoning", text)
            break  # some endpoints send both, with the same text
    if isinstance(text := get(message, "refusal"), str) and text:
        yield Event("refusal", text)
    content = get(message, "content")
    for part in [content] if isinstance(content, str) else items(content):
        text = part if isinstance(part, str) else get(part, "text")
        if isinstance(text, str) and text:
            yield Event("text", text)
    for at, call in enumerate(items(get(message, "tool_calls"))):
        text = get(call, "custom", "input") or get(call, "function", "arguments")
        if isinstance(text, str) and text:
            number, identity = get(call, "index"), get(call, "id")
            number = number if type(number) is int else at
            yield Event("text", text, call=(number, identity if isinstance(identity, str) else ""))


def _finish(choice: Any, reason: Any) -> Event:
    """Return the event for a finish reason. Raises `AnswerError` if the reason is "error"."""
    name = str(getattr(reason, "value", reason))
    if name == "error":
        raise AnswerError(get(choice, "error"))
    return Event("finish", FINISH.get(name, "stop"))


def chat_events(chunk: Any) -> Iterator[Event]:
    """Yield the events of a chunk (an object or a dict) in the format of chat completions."""
    if isinstance(identity := get(chunk, "id"), str):
        yield Event("id", identity)
    for choice in items(get(chunk, "choices")):
        if get(choice, "index") not in (None, 0):
            continue  # one answer was requested
        yield from _parts(get(choice, "delta"))
        if content := items(get(choice, "logprobs", "content")):
            yield Event("logprobs", tokens=first_tokens(content))
        if (reason := get(choice, "finish_reason")) is not None:
            yield _finish(choice, reason)
    if (usage := get(chunk, "usage")) is not None:
        yield Event("usage", usage=chat_usage(usage))


def first_tokens(content: Sequence[Any]) -> tuple[tuple[str, Any], ...]:
    """Return the most probable tokens at the first position of an answer, with their log-probabilities.

    `content` is the non-empty list `logprobs.content` of an answer.
    """
    found: dict[str, Any] = {}
    for one in (*items(get(content[0], "top_logprobs")), content[0]):
        if isinstance(token := get(one, "token"), str):
            found.setdefault(token, get(one, "logprob"))
    return tuple(found.items())


def chat_usage(usage: Any) -> Usage:
    """Return the usage of a `usage` member.

    OpenAI counts reasoning tokens in `completion_tokens`; xAI does not. They are added to the output if `total_tokens`
    shows that they are not counted in it.
    """
    given, made = tokens(usage, "prompt_tokens"), tokens(usage, "completion_tokens")
    reasoning = tokens(usage, "completion_tokens_details", "reasoning_tokens")
    if reasoning and tokens(usage, "total_tokens") == given + made + reasoning:
        made += reasoning
    return reported(given, tokens(usage, "prompt_tokens_details", "cached_tokens"), made, reasoning)


class ResponsesAdapter(OpenAIAdapter):
    """The Responses API."""

    def logprobs_call(self, request: Request, kind: str, option: str) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Raise `UnsupportedError`: log-probabilities are read from chat completions only."""
        raise UnsupportedError('scores need the chat API: pass api="chat"')

    def call(self, request: Request, *, asynchronous: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return `client.responses.create` and its arguments. The API has no seed.

        Raises:
            UnsupportedError: The request has stop strings, which this API does not have.
        """
        if request.stop:
            raise UnsupportedError('the Responses API has no stop strings: pass api="chat", or omit stop')
        given = dict(request.fragment)
        made: dict[str, Any] = {
            "model": self.model,
            "input": [dict(one) for one in request.messages],
            "stream": True,
            "max_output_tokens": max(request.max_tokens, 16),
            "store": False,
            "extra_headers": IDENTITY,
        }
        form = given.pop("response_format", None)
        if form is not None:
            made["text"] = {"format": {"type": form["type"], **(form.get("json_schema") or {})}}
        if "tools" in given:
            made["tools"] = [_flat(tool) for tool in given.pop("tools")]
            given.pop("tool_choice", None)
            made["tool_choice"] = {name: made["tools"][0][name] for name in ("type", "name")}
        made |= given
        for name in ("temperature", "top_p"):
            if getattr(request, name) is not None:
                made[name] = getattr(request, name)
        return self.here().responses.create, made | self.limits(request)

    def events(self, chunk: Any) -> Iterator[Event]:
        """Yield the events of one chunk of a Responses stream. Raises `AnswerError` if the chunk reports a failure."""
        kind, delta = str(get(chunk, "type") or ""), get(chunk, "delta")
        delta = delta if isinstance(delta, str) else ""
        if kind == "response.output_text.delta":
            yield Event("text", delta)
        elif kind in _TOOL_DELTAS:
            number = get(chunk, "output_index")
            yield Event("text", delta, call=(number if type(number) is int else 0, ""))
        elif kind == "response.refusal.delta":
            yield Event("refusal", delta)
        elif kind.startswith("response.reasoning") and kind.endswith(".delta"):
            yield Event("reasoning", delta)
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            usage = get(chunk, "response", "usage")
            if usage is not None:
                cached = tokens(usage, "input_tokens_details", "cached_tokens")
                reasoning = tokens(usage, "output_tokens_details", "reasoning_tokens")
                given, made = tokens(usage, "input_tokens"), tokens(usage, "output_tokens")
                yield Event("usage", usage=reported(given, cached, made, reasoning))
            if kind == "response.failed":
                raise AnswerError(get(chunk, "response", "error"))
            reason = get(chunk, "response", "incomplete_details", "reason")
            ends = {"max_output_tokens": "length", "content_filter": "refusal"}
            yield Event("finish", ends.get(str(reason), "stop"))
        elif kind == "error":
            raise AnswerError(chunk)
        elif kind == "response.created" and isinstance(identity := get(chunk, "response", "id"), str):
            yield Event("id", identity)


_TOOL_DELTAS = ("response.custom_tool_call_input.delta", "response.function_call_arguments.delta")


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool of chat completions in the form of the Responses API, which has no inner object."""
    if tool["type"] == "function":
        return {"type": "function", **tool["function"]}
    inner = tool["custom"]
    form = {"type": "grammar", **inner["format"]["grammar"]}
    return {"type": "custom", "name": inner["name"], "description": inner["description"], "format": form}
