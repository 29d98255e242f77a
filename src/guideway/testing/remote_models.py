"""`remote_contract`: checks values, errors and numbers of tokens of a model served by an API."""

from __future__ import annotations

import asyncio
import pickle
import time
import traceback
from collections.abc import Callable
from typing import Any

from guideway.constraints import JsonSchema
from guideway.errors import (
    AuthenticationError,
    ConnectionLostError,
    GuidewayError,
    InvalidTextError,
    OverloadedError,
    RateLimitError,
    RefusalError,
    RemoteError,
    TruncatedError,
)
from guideway.remote import RemoteModel
from guideway.testing.provider import Answer, Provider

__all__ = ["remote_contract"]

SCHEMA = JsonSchema(
    {
        "type": "object",
        "properties": {"title": {"type": "string"}, "seats": {"type": "integer"}},
        "required": ["title", "seats"],
        "additionalProperties": False,
    }
)
VALUE = {"title": "Talk é😀", "seats": 3}
TEXT = '{"title": "Talk é😀", "seats": 3}'

FAILURES: list[tuple[str, Answer, type[GuidewayError]]] = [
    ("a wrong key", Answer(status=401), AuthenticationError),
    ("a rate limit", Answer(status=429, retry_after="0.01"), RateLimitError),
    ("an overloaded endpoint", Answer(status=529), OverloadedError),
    ("a failure of the endpoint", Answer(status=500), RemoteError),
    ("a connection that is lost", Answer(TEXT, drop_after=1), ConnectionLostError),
    ("an answer without a finish reason", Answer(TEXT, finish=""), ConnectionLostError),
    ("an answer that is cut", Answer(TEXT[:20], finish="length"), TruncatedError),
    ("a refusal", Answer("", finish="refusal"), RefusalError),
    ("an answer that ignores the constraint", Answer("I would rather not."), InvalidTextError),
    ("an answer with a byte that the constraint excludes", Answer('{"title": 3' + "x" * 4000), InvalidTextError),
]


def remote_contract(make: Callable[[str], RemoteModel], *, key: str = "") -> None:
    """Check a model served by an API with a local server that answers correctly or fails.

    Models of the SDKs that this package supports pass the check. Use it for a function with the signature of
    `litellm.completion`, or for a wrapper of a client: it checks that answers, errors and numbers of tokens are the
    same as with the supported SDKs.

    Args:
        make: `make(url)` returns the model, from `guideway.remote`, for the server at a URL without a path. The server
            is a `Provider`, with the APIs of OpenAI, Anthropic and Gemini. The client must not repeat failed requests.
        key: The key that the client sends. Errors are checked not to contain it; "": no check.

    Raises:
        AssertionError: A rule is broken. The message names it.
    """
    with Provider() as provider:
        model = make(provider.url)
        _answers(model, provider)
        for what, answer, expected in FAILURES:
            provider.script = answer
            _failure(make(provider.url), provider, what, expected, key)
        _closes(make(provider.url), provider)
        _asynchronous(make(provider.url), provider)
    try:
        pickle.dumps(model)
    except TypeError:
        return
    raise AssertionError("the model can be pickled, with its key")


def _answers(model: RemoteModel, provider: Provider) -> None:
    """Check values, streams, characters that are divided between two parts of a stream, reasoning, and token counts."""
    for what, answer in (
        ("a correct answer", Answer(TEXT)),
        ("an answer in single bytes", Answer(TEXT, chunk=1, split_bytes=1)),
        ("reasoning before the answer", Answer(TEXT, reasoning="Let me think: {")),
        ("no tokens reported", Answer(TEXT, usage="never")),
    ):
        provider.script = answer
        before = len(provider.requests)
        try:
            result = model.complete("an event", SCHEMA)
        except GuidewayError as problem:
            raise AssertionError(f"{what}: raised {type(problem).__name__}: {problem}") from problem
        _hold(result.value == VALUE, f"{what}: the value is {result.value!r}")
        _hold(result.usage.requests == len(provider.requests) - before, f"{what}: {result.usage} has other requests")
        counted = (0, 0) if answer.usage == "never" else provider.reported[before]
        _hold((result.usage.input, result.usage.output) == counted, f"{what}: {result.usage}, reported were {counted}")
        _hold("".join(model.stream("an event", SCHEMA)) == result.text, f"{what}: the stream has another text")


def _failure(model: RemoteModel, provider: Provider, what: str, expected: type[GuidewayError], key: str) -> None:
    """Check the class of an error, its usage, and that it does not contain the key."""
    before = len(provider.requests)
    try:
        value = model.generate("an event", SCHEMA)
    except GuidewayError as problem:
        shown = f"{problem!r} {vars(problem)} {''.join(traceback.format_exception(problem))}"
        _hold(type(problem) is expected, f"{what}: raised {type(problem).__name__}, expected {expected.__name__}")
        usage = getattr(problem, "usage", None)
        asked = len(provider.requests) - before
        _hold(usage is not None and usage.requests == asked, f"{what}: {usage}, the server received {asked} requests")
        _hold(not key or key not in shown, f"{what}: the error contains the key")
    except Exception as problem:
        raise AssertionError(f"{what}: raised {type(problem).__name__}, which is no GuidewayError") from problem
    else:
        raise AssertionError(f"{what}: the value {value!r} was returned, expected {expected.__name__}")


def _closes(model: RemoteModel, provider: Provider) -> None:
    """Check that closing a stream early closes the connection to the server."""
    provider.script = Answer('{"title": "' + "x" * 500, chunk=1, pause=0.003)
    before = len(provider.aborted)
    stream = model.stream("an event", SCHEMA)
    next(stream)
    stream.close()
    ends = time.monotonic() + 2
    while len(provider.aborted) == before and time.monotonic() < ends:
        time.sleep(0.01)
    _hold(len(provider.aborted) > before, "a stream that is closed early leaves its connection open")
    _hold(model.usage.aborted == 1, f"a stream that is closed early is not counted: {model.usage}")


def _asynchronous(model: RemoteModel, provider: Provider) -> None:
    """Check calls from an event loop."""
    provider.script = Answer(TEXT)

    async def values() -> Any:
        return await model.agenerate(["an event"] * 5, SCHEMA)

    _hold(asyncio.run(values()) == [VALUE] * 5, "calls from an event loop give other values")


def _hold(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
