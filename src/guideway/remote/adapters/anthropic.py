"""The SDK anthropic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from guideway.remote.adapters.base import Adapter, Event, Request, get, is_system, text_of, tokens
from guideway.remote.adapters.http import IDENTITY, shortened
from guideway.remote.usage import Usage

__all__ = ["AnthropicAdapter"]

_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal"}


class AnthropicAdapter(Adapter):
    """The Messages API."""

    default_dialect = "anthropic"
    library = "anthropic"

    def call(self, request: Request, *, asynchronous: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return `client.messages.create` and its arguments."""
        system = "\n\n".join(text_of(one["content"]) for one in request.messages if is_system(one))
        messages = [dict(one) for one in request.messages if not is_system(one)]
        body = {name: getattr(request, name) for name in ("temperature", "top_p") if getattr(request, name) is not None}
        made: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "max_tokens": request.max_tokens,
            "stream": True,
            "extra_headers": IDENTITY,
            **request.fragment,
        }
        if system:
            made["system"] = system
        if request.stop:
            made["stop_sequences"] = list(request.stop)
        if body:
            made["extra_body"] = body
        if request.timeout is not None:
            made["timeout"] = shortened(self.client.timeout, request.timeout)
        return self.here().messages.create, made

    def events(self, chunk: Any) -> Iterator[Event]:
        """Yield the events of one chunk of a Messages stream."""
        kind = get(chunk, "type")
        if kind == "message_start":
            if isinstance(identity := get(chunk, "message", "id"), str):
                yield Event("id", identity)
            usage = get(chunk, "message", "usage")
            cached = tokens(usage, "cache_read_input_tokens")
            made = tokens(usage, "cache_creation_input_tokens")
            yield Event("usage", usage=Usage(tokens(usage, "input_tokens") + cached + made, cached))
        elif kind == "content_block_delta":
            delta = get(chunk, "delta")
            if isinstance(text := get(delta, "text"), str) and text:
                yield Event("text", text)
            if isinstance(text := get(delta, "partial_json"), str) and text:
                number = get(chunk, "index")
                yield Event("text", text, call=(number if type(number) is int else 0, ""))
            if isinstance(text := get(delta, "thinking"), str) and text:
                yield Event("reasoning", text)
        elif kind == "message_delta":
            yield Event("usage", usage=Usage(output=tokens(chunk, "usage", "output_tokens")))
            reason = get(chunk, "delta", "stop_reason")
            if reason is not None:
                yield Event("finish", _FINISH.get(str(reason), "stop"))
