"""A function with the signature of `litellm.completion` or `any_llm.completion`, synchronous or not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from guideway.remote.adapters.base import Adapter, Event, Request, get, items
from guideway.remote.adapters.openai import FINISH, chat_events, chat_usage

__all__ = ["FunctionAdapter"]


class FunctionAdapter(Adapter):
    """`completion(model=, messages=, stream=True, ...)`, which returns chunks in the format of chat completions."""

    library = "litellm"

    def __init__(self, client: Any, model: str) -> None:
        super().__init__(client, model)
        self.runs_async = inspect.iscoroutinefunction(client) or inspect.iscoroutinefunction(
            getattr(client, "__call__", None)  # noqa: B004  # the method itself is inspected
        )
        self.runs_sync = not self.runs_async

    def http_clients(self) -> list[Any]:
        """Return no client: the function makes its own requests."""
        return []

    @property
    def base_url(self) -> str:
        """Unknown."""
        return ""

    def call(self, request: Request, *, asynchronous: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return the function and its arguments."""
        made: dict[str, Any] = {
            "model": self.model,
            "messages": [dict(one) for one in request.messages],
            "stream": True,
            "max_tokens": request.max_tokens,
            **request.fragment,
        }
        for name in ("temperature", "top_p", "seed"):
            if getattr(request, name) is not None:
                made[name] = getattr(request, name)
        if request.stop:
            made["stop"] = list(request.stop)
        return self.client, made

    def events(self, chunk: Any) -> Iterator[Event]:
        """Yield the events of a chunk."""
        yield from chat_events(chunk)

    def whole(self, answer: Any) -> Iterator[Event]:
        """Yield the events of an answer that is not a stream."""
        for choice in items(get(answer, "choices")):
            if isinstance(text := get(choice, "message", "content"), str):
                yield Event("text", text)
            yield Event("finish", FINISH.get(str(get(choice, "finish_reason")), "stop"))
        if (usage := get(answer, "usage")) is not None:
            yield Event("usage", usage=chat_usage(usage))

    def _is_transport(self, problem: Exception) -> bool:
        return True
