"""A function with the signature of `litellm.completion` or `any_llm.completion`, synchronous or not."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from guideway.remote.adapters.base import Adapter, Event, Request
from guideway.remote.adapters.openai import chat_events, chat_whole

__all__ = ["FunctionAdapter"]

_KEY_NAME = re.compile(r"(?:^|_)(?:key|token|secret|password)$", re.IGNORECASE)


class FunctionAdapter(Adapter):
    """Calls a function such as `litellm.completion`, which returns chunks in the format of chat completions."""

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

    def keys(self) -> list[Any]:
        """Return the keys that the function may use.

        They are environment variables, and arguments of a `functools.partial`, whose names end in key, token, secret or
        password. Values of fewer than eight characters are left out.
        """
        given = getattr(self.client, "keywords", None)
        held = {**os.environ, **(given if isinstance(given, Mapping) else {})}
        return [value for name, value in held.items() if _KEY_NAME.search(name) and len(str(value)) >= 8]

    @property
    def base_url(self) -> str:
        """Always "": the URL of the endpoint is not known."""
        return ""

    def call(self, request: Request, *, asynchronous: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return the function and its arguments."""
        made: dict[str, Any] = {
            "model": self.model,
            "messages": [dict(one) for one in request.messages],
            "stream": request.streamed,
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
        yield from chat_whole(answer)

    def _is_transport(self, problem: Exception) -> bool:
        return True
