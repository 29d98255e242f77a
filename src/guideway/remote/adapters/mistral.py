"""The SDK mistralai."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from guideway.remote.adapters.base import Adapter, Event, Request, get, is_system
from guideway.remote.adapters.http import IDENTITY, LoopClients, keep_on_host, own_http_client
from guideway.remote.adapters.openai import chat_events

__all__ = ["MistralAdapter"]


class MistralAdapter(Adapter):
    """Calls `chat.stream` in threads, and `chat.stream_async` in event loops."""

    default_dialect = "mistral"
    library = "mistralai"

    def __init__(self, client: Any, model: str) -> None:
        super().__init__(client, model)
        self.runs_async = self.runs_sync = True
        self._chats = LoopClients(client.chat, self._chat)

    def _chat(self) -> Any:
        """Return a copy of `client.chat` with separate connections.

        Raises:
            UnsupportedError: The caller passed an asynchronous HTTP client to the SDK.
        """
        known = self.client.sdk_configuration
        if known.async_client_supplied:
            raise own_http_client()
        made = copy(known)
        made.async_client = type(known.async_client)(follow_redirects=True)
        keep_on_host(made.async_client)
        return type(self.client.chat)(made, parent_ref=self.client)

    def http_clients(self) -> list[Any]:
        """Return the synchronous and the asynchronous client."""
        return [get(self.client, "sdk_configuration", name) for name in ("client", "async_client")]

    @property
    def base_url(self) -> str:
        """The URL of the endpoint; "" if it is unknown."""
        return str(get(self.client, "sdk_configuration", "server_url") or "")

    def keys(self) -> list[Any]:
        """Return the API key of the client in a list; [None] if it has none."""
        security = get(self.client, "sdk_configuration", "security")
        return [get(security() if callable(security) else security, "api_key")]

    def call(self, request: Request, *, asynchronous: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return `chat.stream` or `chat.stream_async`, and its arguments."""
        messages = [{**one, "role": "system"} if is_system(one) else dict(one) for one in request.messages]
        if request.prefill:
            messages.append({"role": "assistant", "content": request.prefill, "prefix": True})
        made: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "max_tokens": request.max_tokens,
            "http_headers": IDENTITY,
            **{name: _schema_member(value) for name, value in request.fragment.items()},
        }
        for name, given in (
            ("temperature", request.temperature),
            ("top_p", request.top_p),
            ("random_seed", request.seed),
        ):
            if given is not None:
                made[name] = given
        if request.stop:
            made["stop"] = list(request.stop)
        if request.timeout is not None:
            given = get(self.client, "sdk_configuration", "timeout_ms")
            most = max(1, int(request.timeout * 1000))
            made["timeout_ms"] = min(given, most) if isinstance(given, int) else most
        return (self._chats.here().stream_async if asynchronous else self.client.chat.stream), made

    def events(self, chunk: Any) -> Iterator[Event]:
        """Yield the events of a chunk."""
        yield from chat_events(get(chunk, "data") or chunk)

    def close(self, stream: Any) -> None:
        """Close the response of the stream."""
        get(stream, "response").close()

    async def aclose(self, stream: Any) -> None:
        """Close the response of an asynchronous stream."""
        await get(stream, "response").aclose()


def _schema_member(value: Any) -> Any:
    """Return a request member in which `json_schema.schema` has the SDK's name for it, `schema_definition`."""
    if isinstance(value, dict) and isinstance(value.get("json_schema"), dict):
        inner = dict(value["json_schema"])
        if "schema" in inner:
            inner["schema_definition"] = inner.pop("schema")
        return {**value, "json_schema": inner}
    return value
