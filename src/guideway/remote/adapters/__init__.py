"""Adapters: one file for each SDK. No SDK is imported here; a client is recognised by the module of its class.

base.py       requests, events, and what every adapter does
http.py       the HTTP clients inside the SDKs: no redirect to another host, one client for each event loop
openai.py     openai: chat completions and Responses; also servers with the same API
anthropic.py  anthropic
google.py     google-genai
mistral.py    mistralai
function.py   a function with the signature of `litellm.completion`
"""

from __future__ import annotations

from typing import Any

from guideway.arguments import short_repr
from guideway.errors import InvalidConstraintError
from guideway.remote.adapters.anthropic import AnthropicAdapter
from guideway.remote.adapters.base import Adapter, Event, Request
from guideway.remote.adapters.function import FunctionAdapter
from guideway.remote.adapters.google import GoogleAdapter
from guideway.remote.adapters.mistral import MistralAdapter
from guideway.remote.adapters.openai import OpenAIAdapter, ResponsesAdapter

__all__ = ["Adapter", "Event", "Request", "adapter_for"]


def adapter_for(client: Any, model: str, api: str | None) -> Adapter:
    """Return the adapter of a client.

    Args:
        client: A client of an SDK, or a function with the signature of `litellm.completion`.
        model: The name of the model.
        api: For clients of openai: "chat" or "responses"; None: "chat". For other clients: None.

    Raises:
        InvalidConstraintError: The client is unknown, or `api` is wrong for it.
    """
    modules = [one.__module__ for one in type(client).__mro__]  # for classes derived from an SDK's, too
    known = ("openai", "anthropic", "google.genai", "mistralai")
    name = next((one for module in modules for one in known if f"{module}.".startswith(f"{one}.")), None)
    if name == "openai":
        if api not in (None, "chat", "responses"):
            raise InvalidConstraintError(f"api must be 'chat' or 'responses', got {short_repr(api)}")
        return (ResponsesAdapter if api == "responses" else OpenAIAdapter)(client, model)
    if api is not None:
        raise InvalidConstraintError("api= applies to clients of openai only")
    if name == "anthropic":
        return AnthropicAdapter(client, model)
    if name == "google.genai":
        return GoogleAdapter(client, model)
    if name == "mistralai":
        return MistralAdapter(client, model)
    if callable(client):
        return FunctionAdapter(client, model)
    raise InvalidConstraintError(
        "client must be a client of openai, anthropic, google-genai or mistralai, or a function with the signature of"
        f" litellm.completion, got {type(client).__name__}"
    )
