"""The base class of adapters.

An adapter converts requests to arguments of an SDK, chunks to events, and exceptions of the SDK to errors of Guideway.
"""

from __future__ import annotations

import email.utils
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, unquote_plus, urlsplit

from guideway.arguments import short_repr
from guideway.errors import (
    AuthenticationError,
    ConnectionLostError,
    GuidewayError,
    LimitExceededError,
    OverloadedError,
    RateLimitError,
    RemoteError,
    RemoteNotFoundError,
    UnsupportedError,
)
from guideway.remote.adapters.http import (
    LateError,
    LoopClients,
    OversizedError,
    RedirectError,
    cause,
    keep_on_host,
    with_own_connections,
)
from guideway.remote.usage import Usage

__all__ = [
    "Adapter",
    "AnswerError",
    "Event",
    "Request",
    "get",
    "is_system",
    "items",
    "late_error",
    "reported",
    "text_of",
    "tokens",
]

MAX_MESSAGE = 2000
"""Maximum number of characters of a provider's message in an error."""

_SECRET_NAME = re.compile("auth|key|token|secret|cookie", re.IGNORECASE)

MAX_TOKENS = 10**12
"""A larger number of tokens in the usage of an answer is wrong and counts as 0."""

_SECRETS = re.compile(
    r"\b(?:(?:sk|pk|gsk|xai)[-_]|key-|AIza)[-_A-Za-z0-9]{12,}|(?i:bearer)\s{1,10}[-._~+/A-Za-z0-9]{8,}=*"
)


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        messages: The messages, as the OpenAI API writes them.
        fragment: The members that carry the constraint.
        max_tokens: The maximum number of tokens of the answer.
        temperature: The temperature; None: it is not sent, and the endpoint's default applies.
        top_p: The total probability of the tokens from which one is drawn; None: as `temperature`.
        seed: The seed of the endpoint's random numbers; None: as `temperature`.
        stop: Texts before which the answer ends.
        prefill: The beginning of the answer, which the endpoint continues; "": it writes the whole answer.
        streamed: Whether the answer is streamed.
        timeout: Seconds until the whole answer must have arrived; None: the timeouts of the client apply.
    """

    messages: tuple[Mapping[str, Any], ...]
    fragment: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int = 512
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    prefill: str = ""
    streamed: bool = True
    timeout: float | None = None


@dataclass(frozen=True)
class Event:
    """A part of an answer.

    Attributes:
        kind: "text" or "reasoning": `text` is a piece of it. "refusal": `text` is a piece of the words with which the
            model refuses. "finish": `text` is "stop", "length" or "refusal". "id": `text` is the id of the answer.
            "usage": `usage` is set. "logprobs": `tokens` is set.
        text: See `kind`.
        usage: The tokens of the request and the answer, as far as they are known; None for other kinds than "usage".
        tokens: For "logprobs": the most probable tokens at one position, with their log-probabilities.
        call: For text that is the input of a tool: the number of the call in the answer, and its id or "". Otherwise
            None.
    """

    kind: Literal["text", "reasoning", "refusal", "finish", "usage", "id", "logprobs"]
    text: str = ""
    usage: Usage | None = None
    tokens: tuple[tuple[str, Any], ...] = ()
    call: tuple[int, str] | None = None


class AnswerError(Exception):
    """An error inside an answer whose HTTP status is 200. `body` is the error object, with "message" and "code"."""

    def __init__(self, body: Any) -> None:
        self.body = body if isinstance(body, Mapping) else {name: get(body, name) for name in ("message", "code")}
        super().__init__(str(self.body.get("message") or "the endpoint ended the answer with an error")[:MAX_MESSAGE])


def get(thing: Any, *names: str) -> Any:
    """Follow a path of names, each an attribute or a key of a mapping.

    Returns the value, or None if a name is missing.
    """
    for name in names:
        if thing is None:
            return None
        thing = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
    return thing


class Adapter(ABC):
    """Translates between requests and one SDK.

    Attributes:
        default_dialect: The dialect of an endpoint whose URL is unknown: that of the provider who publishes the SDK.
        library: The name of the SDK's module.
        runs_sync: Whether the client can be called from a thread.
        runs_async: Whether the client can be called from an event loop.
    """

    default_dialect = "unknown"
    library = ""

    def __init__(self, client: Any, model: str) -> None:
        self.client, self.model = client, model
        self.runs_async = any(one.__name__.startswith("Async") for one in type(client).__mro__)
        self.runs_sync = not self.runs_async
        self._clients = LoopClients(client, lambda: with_own_connections(client))
        guarded = [keep_on_host(one) for one in self.http_clients() if one is not None]
        if not all(guarded) or not (guarded or self.library == "litellm"):
            raise UnsupportedError(
                f"the HTTP client of this version of {self.library} is not known, so redirects to other hosts could not be"
                " refused; install a version for which this package was tested"
            )

    def http_clients(self) -> list[Any]:
        """Return the HTTP clients inside the client of the SDK; [None] if none is found."""
        return [getattr(self.client, "_client", None)]

    def here(self) -> Any:
        """Return the client for the running event loop. A synchronous client is returned as it is.

        Each event loop after the first one has a copy with separate connections.
        """
        return self._clients.here() if self.runs_async else self.client

    @property
    def base_url(self) -> str:
        """The URL of the endpoint; "" if it is unknown."""
        return str(getattr(self.client, "base_url", "") or "")

    @property
    def host(self) -> str:
        """The host of the endpoint in lower case; "" if it is unknown."""
        try:
            return (urlsplit(self.base_url).hostname or "").lower()
        except ValueError:
            return ""

    @property
    def shown_url(self) -> str:
        """The URL of the endpoint for messages, without user, password and query; "" if it is unknown."""
        try:
            parts = urlsplit(self.base_url)
            host = parts.netloc.rpartition("@")[2]
        except ValueError:
            return ""
        return f"{parts.scheme}://{host}{parts.path}" if host else ""

    @abstractmethod
    def call(self, request: Request, *, asynchronous: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return the method of the SDK that opens a stream, and its arguments.

        Args:
            request: The request.
            asynchronous: Whether the call is made from an event loop.
        """

    def logprobs_call(self, request: Request, kind: str, option: str) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return the method that gives log-probabilities, and its arguments.

        Args:
            request: The request with the prompt.
            kind: "top": of the most probable first tokens; "prompt": of the tokens of the prompt.
            option: For "prompt": the beginning of the answer, which belongs to the prompt.

        Raises:
            UnsupportedError: This adapter reads no log-probabilities.
        """
        raise UnsupportedError(f"no log-probabilities are read from {self.library}, so options have no score")

    @abstractmethod
    def events(self, chunk: Any) -> Iterator[Event]:
        """Yield the events of one chunk of a stream."""

    def whole(self, answer: Any) -> Iterator[Event]:
        """Yield the events of an answer that is not a stream."""
        yield from self.events(answer)

    def close(self, stream: Any) -> None:
        """Close a stream and its connection."""
        close = getattr(stream, "close", None)
        if close is not None:
            close()

    async def aclose(self, stream: Any) -> None:
        """Close a stream of an asynchronous client and its connection."""
        close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        if close is not None:
            found = close()
            if hasattr(found, "__await__"):
                await found

    def keys(self) -> list[Any]:
        """Return the API keys and access tokens of the client; None for those that it does not have."""
        names = ("api_key", "auth_token", "_api_key", "_azure_ad_token")
        return [getattr(self.client, name, None) for name in names]

    def secrets(self) -> list[str]:
        """Return the texts that no message may contain, longest first: keys, secret headers, and secrets in the URL.

        Texts of fewer than four characters are left out.
        """
        found = self.keys()
        for holder in (get(self.client, "_custom_headers"), *(get(one, "headers") for one in self.http_clients())):
            if isinstance(holder, Mapping):
                found += [value for name, value in holder.items() if _SECRET_NAME.search(str(name))]
        found += _secrets_in_url(self.base_url)
        texts = [one for one in found if isinstance(one, str)]
        texts += [one.split()[-1] for one in texts if " " in one.strip()]  # the KEY of "Bearer KEY"
        return sorted({one for one in texts if len(one) >= 4}, key=len, reverse=True)

    def __reduce__(self) -> Any:
        raise TypeError("an adapter holds a client with a key and cannot be pickled")

    def scrubbed(self, text: str) -> str:
        """Return a message with secrets, and texts that look like keys, replaced by "***".

        It is truncated after `MAX_MESSAGE` characters.
        """
        for secret in self.secrets():
            text = text.replace(secret, "***")
        text = _SECRETS.sub("***", text)
        return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "…"

    def error(self, problem: Exception, provider: str) -> Exception:
        """Return the error of Guideway for an exception of the SDK. Its message has no key.

        An exception for which `_is_transport` returns False is returned unchanged.
        """
        redirect = cause(problem, RedirectError)
        if redirect is not None:
            return self._redirected(provider, redirect.host)
        if (oversized := cause(problem, OversizedError)) is not None:
            return LimitExceededError(f"{provider}: {oversized}")
        if cause(problem, LateError) is not None:
            return late_error(provider)
        if not self._is_transport(problem):
            return problem
        status = next((one for one in (get(problem, "status_code"), get(problem, "code")) if _is_status(one)), None)
        headers = get(problem, "response", "headers") or get(problem, "headers") or {}
        message = self.scrubbed(_message(problem))
        if status is None:
            status = _status_in(get(problem, "body"))
        options: dict[str, Any] = {
            "provider": provider,
            "status": status,
            "request_id": self._identity(get(problem, "request_id") or _header(headers, "x-request-id", "request-id")),
            "retry_after": _seconds(_header(headers, "retry-after")),
        }
        name = type(problem).__name__
        if status in (301, 302, 303, 307, 308):  # google-genai uses aiohttp if it is installed; it follows no redirect
            return self._redirected(provider, _host(_header(headers, "location")))
        if status in (401, 403):
            return AuthenticationError(f"{provider} refused the key or its rights: {message}", **options)
        if status == 404:
            return RemoteNotFoundError(
                f"{provider} has no model {short_repr(self.model)}, or the URL is wrong: {message}", **options
            )
        if status == 429:
            return RateLimitError(f"{provider} limits the rate: {message}", retryable=True, **options)
        if status in (502, 503, 504, 529) or "overloaded" in message.lower():
            return OverloadedError(f"{provider} has no capacity: {message}", retryable=True, **options)
        if status is None and type(problem).__module__.partition(".")[0] in ("json", "pydantic_core"):
            return RemoteError(
                f"a request to {provider}, or the answer, has a wrong form ({name}): {message}", provider=provider
            )
        if status is None:
            return ConnectionLostError(
                f"the connection to {provider} failed ({name}): {message}", retryable=True, **options
            )
        return RemoteError(f"{provider} answered {status}: {message}", retryable=status >= 500, **options)

    def _identity(self, value: Any) -> str | None:
        return self.scrubbed(value[:200]) if isinstance(value, str) else None

    def _redirected(self, provider: str, host: str) -> RemoteError:
        return RemoteError(
            f"{provider} redirects the request to another host, {self.scrubbed(host)}, and it was not followed;"
            " give the client the URL of the endpoint itself",
            provider=provider,
        )

    def unreadable(self, problem: Exception, provider: str) -> Exception:
        """Return the error of Guideway for an exception that was raised while an answer was read.

        An exception that `error` returns unchanged becomes a `RemoteError`, because the answer has an unexpected form.
        A `GuidewayError` or `MemoryError` is returned unchanged.
        """
        found = self.error(problem, provider)
        if found is not problem or isinstance(problem, (GuidewayError, MemoryError)):
            return found
        what = self.scrubbed(str(problem))[:300]
        return RemoteError(
            f"the answer of {provider} cannot be read ({type(problem).__name__}: {what})",
            provider=provider,
            retryable=True,
        )

    def _is_transport(self, problem: Exception) -> bool:
        """Return whether an exception comes from the SDK, its HTTP library, the connection or a malformed answer."""
        module = type(problem).__module__.partition(".")[0]
        names = (
            self.library.partition(".")[0],
            "httpx",
            "httpx2",
            "httpcore",
            "httpcore2",
            "requests",
            "aiohttp",
            "litellm",
        )
        return (
            module in names
            or isinstance(problem, (AnswerError, ConnectionError, TimeoutError))
            or module in ("json", "pydantic_core")
        )


def late_error(provider: str) -> ConnectionLostError:
    """Return the error for an answer that is not complete when the time of the option `timeout` has passed."""
    return ConnectionLostError(
        f"the answer of {provider} took longer than `timeout`, and the request was closed",
        provider=provider,
        retryable=True,
    )


def _secrets_in_url(url: str) -> list[str]:
    """Return the password and the query values of a URL, each as it is written and decoded."""
    try:
        parts = urlsplit(url)
        found = [parts.password or "", *(one.partition("=")[2] for one in parts.query.split("&"))]
    except ValueError:
        return []
    return [*found, *map(unquote, found), *map(unquote_plus, found)]


def _is_status(value: Any) -> bool:
    return type(value) is int and 100 <= value < 600


def _status_in(body: Any) -> int | None:
    """Return the HTTP status for an error object inside an answer with status 200; None if `body` is no such object.

    An unknown error has the status 500.
    """
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(inner, Mapping):
        return None
    code = inner.get("code", inner.get("status"))
    if _is_status(code) and code >= 400:
        return int(code)
    words = f"{inner.get('type', '')} {code}".lower()[:200]
    known = {"rate_limit": 429, "overloaded": 529, "authentication": 401, "permission": 403, "not_found": 404}
    return next((status for name, status in known.items() if name in words), 500)


def _message(problem: Exception) -> str:
    body = get(problem, "body")
    inner = get(body, "error", "message") if isinstance(body, Mapping) else None
    if inner is None and isinstance(body, Mapping):
        inner = body.get("message")
    found = inner or get(problem, "message") or str(problem)
    return str(found) or type(problem).__name__


def _header(headers: Any, *names: str) -> Any:
    for name in names:
        try:
            value = headers.get(name)
        except AttributeError:
            return None
        if value is not None:
            return value
    return None


def _host(url: Any) -> str:
    """Return the host and the port of a URL, without user and password; "" if it is no URL."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2][:200] if isinstance(url, str) else ""
    except ValueError:
        return ""


def _seconds(value: Any) -> float | None:
    """Return the seconds that a Retry-After header, a number or a date, demands to wait; None if it is neither."""
    if not isinstance(value, str):
        return None
    try:
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def tokens(usage: Any, *names: str) -> int:
    """Return the number at a path of names (see `get`) in the usage of an answer.

    0 if it is missing, negative, not an int, or larger than `MAX_TOKENS`.
    """
    value = get(usage, *names)
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0


def items(value: Any) -> Sequence[Any]:
    """Return a value of an answer if it is a list or a tuple, otherwise an empty sequence."""
    return value if isinstance(value, (list, tuple)) else ()


def reported(input: int, cached: int, output: int, reasoning: int) -> Usage:
    """Return the usage of an answer. Cached tokens count as part of the input, and reasoning as part of the output."""
    return Usage(input, min(cached, input), output, min(reasoning, output))


def is_system(message: Mapping[str, Any]) -> bool:
    """Return whether the role of a message is "system" or "developer". Some APIs take these messages separately."""
    return message["role"] in ("system", "developer")


def text_of(content: Any, *, skip: bool = False) -> str:
    """Return the text of a message.

    Args:
        content: The content of the message.
        skip: Whether to leave out parts that are not text, such as images.

    Raises:
        UnsupportedError: The message has no part, or a part that is not text, and `skip` is false.
    """
    if isinstance(content, str):
        return content
    parts = [part if isinstance(part, str) else get(part, "text") for part in items(content)]
    if skip:
        parts = [part for part in parts if isinstance(part, str)]
    elif not parts or not all(isinstance(part, str) for part in parts):
        raise UnsupportedError("this message can have text only: a str, or a list of parts with the key 'text'")
    return "".join(parts)
