"""The SDK google-genai."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from guideway.remote.adapters.base import Adapter, Event, Request, get, is_system, items, reported, text_of, tokens
from guideway.remote.adapters.http import IDENTITY

__all__ = ["GoogleAdapter"]

_BLOCKED = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"}


class GoogleAdapter(Adapter):
    """Calls `models.generate_content_stream`.

    A `Client` can be called from threads and from event loops, an `AsyncClient` from event loops only.
    """

    default_dialect = "google"
    library = "google.genai"

    def __init__(self, client: Any, model: str) -> None:
        super().__init__(client, model)
        self.runs_async = hasattr(client, "aio") or type(client).__name__ == "AsyncClient"
        self.runs_sync = type(client).__name__ != "AsyncClient"

    def http_clients(self) -> list[Any]:
        """Return the httpx clients inside the client; `[None]` if none is found.

        The request options of aiohttp, which the SDK may use instead, are changed so that no redirect is followed.
        """
        api = get(self.client, "_api_client")
        if isinstance(options := get(api, "_async_client_session_request_args"), dict):
            options["allow_redirects"] = False
        found = [get(api, "_httpx_client"), get(api, "_async_httpx_client")]
        return [one for one in found if one is not None] or [None]

    @property
    def base_url(self) -> str:
        """The URL of the endpoint; "" if it is unknown."""
        return str(get(self.client, "_api_client", "_http_options", "base_url") or "")

    def keys(self) -> list[Any]:
        """Return the API keys and access tokens of the client; None for those that it does not have."""
        api = get(self.client, "_api_client")
        headers = get(api, "_http_options", "headers")
        return [get(api, "api_key"), get(api, "_credentials", "token"), get(headers, "x-goog-api-key")]

    def _timeout(self, request: Request) -> dict[str, int]:
        """Return the HTTP option that limits the time of a request, in milliseconds; {} if it is not limited."""
        if request.timeout is None:
            return {}
        given = get(self.client, "_api_client", "_http_options", "timeout")
        most = max(1, int(request.timeout * 1000))
        return {"timeout": min(given, most) if isinstance(given, int) else most}

    def call(self, request: Request, *, asynchronous: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return `generate_content_stream` and its arguments."""
        system = "\n\n".join(text_of(one["content"]) for one in request.messages if is_system(one))
        roles = {"assistant": "model"}
        contents = [
            {"role": roles.get(one["role"], "user"), "parts": [{"text": text_of(one["content"])}]}
            for one in request.messages
            if not is_system(one)
        ]
        config: dict[str, Any] = {
            "max_output_tokens": request.max_tokens,
            "http_options": {"headers": IDENTITY, **self._timeout(request)},
            **request.fragment,
        }
        for name in ("temperature", "top_p", "seed"):
            if getattr(request, name) is not None:
                config[name] = getattr(request, name)
        if request.stop:
            config["stop_sequences"] = list(request.stop)
        if system:
            config["system_instruction"] = system
        owner = self.client.aio if asynchronous and hasattr(self.client, "aio") else self.client
        return owner.models.generate_content_stream, {"model": self.model, "contents": contents, "config": config}

    def events(self, chunk: Any) -> Iterator[Event]:
        """Yield the events of a response."""
        if isinstance(identity := get(chunk, "response_id"), str):
            yield Event("id", identity)
        for candidate in items(get(chunk, "candidates")):
            if get(candidate, "index") not in (None, 0):
                continue  # one answer was requested, so others are not read
            for part in items(get(candidate, "content", "parts")):
                if isinstance(text := get(part, "text"), str) and text:
                    yield Event("reasoning" if get(part, "thought") else "text", text)
            reason = get(candidate, "finish_reason")
            if reason is not None:
                name = str(getattr(reason, "value", reason))
                yield Event("finish", "length" if name == "MAX_TOKENS" else "refusal" if name in _BLOCKED else "stop")
        if get(chunk, "prompt_feedback", "block_reason") is not None:
            yield Event("refusal", "the prompt was blocked")
            yield Event("finish", "refusal")
        usage = get(chunk, "usage_metadata")
        if usage is not None:
            thoughts = tokens(usage, "thoughts_token_count")
            yield Event(
                "usage",
                usage=reported(
                    tokens(usage, "prompt_token_count"),
                    tokens(usage, "cached_content_token_count"),
                    tokens(usage, "candidates_token_count") + thoughts,
                    thoughts,
                ),
            )
