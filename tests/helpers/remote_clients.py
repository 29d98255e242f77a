"""Clients of the official SDKs for tests, and the types of their values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import BaseModel

from guideway.remote import RemoteModel, remote
from guideway.testing import Answer, Provider

SECRET = "sk-a-very-secret-key-1234567890"


HEADER = "a-header-with-a-secret-0987654321"
HONEST = Answer()


CLIENTS = ["chat", "responses", "anthropic", "google", "mistral"]


class Event(BaseModel):
    title: str
    seats: int
    note: str | None = None


class Named(BaseModel):
    title: str


TEXT = '{"title": "Talk", "seats": 3, "note": null}'


def model_of(kind: str, url: str, *, asynchronous: bool = False, **options: Any) -> RemoteModel:
    if kind in ("chat", "responses"):
        openai = pytest.importorskip("openai", reason="the official SDK is tested")
        client = (openai.AsyncOpenAI if asynchronous else openai.OpenAI)(
            base_url=f"{url}/v1", api_key=SECRET, max_retries=0
        )
        return remote(client, "m", **{"dialect": "openai", "api": kind, **options})
    if kind == "anthropic":
        anthropic = pytest.importorskip("anthropic", reason="the official SDK is tested")
        client = (anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic)(
            base_url=url, api_key=SECRET, max_retries=0
        )
        return remote(client, "m", **{"dialect": "anthropic", **options})
    if kind == "google":
        genai = pytest.importorskip("google.genai", reason="the official SDK is tested")
        client = genai.Client(api_key=SECRET, http_options={"base_url": url})
        return remote(client, "m", **{"dialect": "google", **options})
    mistral = pytest.importorskip("mistralai.client", reason="the official SDK is tested")
    return remote(mistral.Mistral(api_key=SECRET, server_url=url), "m", **{"dialect": "mistral", **options})


@contextmanager
def served(script: Any = HONEST) -> Iterator[Provider]:
    with Provider(script) as provider:
        yield provider


def sse(*events: Any) -> bytes:
    lines = [f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in events]
    return "".join(lines).encode("utf-8", "surrogatepass")
