"""Tokens and cost of requests, and rate limits."""

from __future__ import annotations

import asyncio
import math
import re
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from guideway.arguments import short_repr
from guideway.errors import RateLimitError

__all__ = ["Prices", "RateLimit", "Usage"]


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens, in any currency. `cached`: that of cached input tokens; None: the price `input`."""

    input: float
    output: float
    cached: float | None = None

    def cost(self, usage: Usage) -> float:
        """Return the cost of a usage, in the currency of the prices."""
        cached = self.input if self.cached is None else self.cached
        return ((usage.input - usage.cached) * self.input + usage.cached * cached + usage.output * self.output) / 1e6


@dataclass(frozen=True)
class Usage:
    """The tokens of requests, as the endpoint reported them.

    Attributes:
        input: Tokens of the prompts, cached ones included.
        cached: Tokens of the prompts that the endpoint had cached.
        output: Generated tokens, reasoning included.
        reasoning: Tokens of reasoning.
        requests: Number of requests.
        aborted: Requests that were closed before the end of the answer. Their output tokens may be unknown.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    requests: int = 0
    aborted: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


class RateLimit:
    """Limits of requests to an endpoint, shared by threads and tasks.

    In addition to the given limits, the headers of answers are obeyed: `Retry-After`, and the number of requests and
    tokens that the endpoint still allows (`x-ratelimit-remaining-requests`, `x-ratelimit-reset-requests`, and so on).
    For `score`, only the headers of error responses are read.

    Args:
        requests: Requests per minute; None: no limit.
        tokens: Tokens per minute, estimated as the characters of the prompt divided by four plus `max_tokens`; None: no
            limit. A request with more tokens is sent if no other request was sent in the last minute.
        max_concurrency: Requests at one time; None: no limit.
        max_wait: Maximum number of seconds that a request waits because the headers of an answer demand it. A longer
            demand raises `RateLimitError` without a request.

    Raises:
        ValueError: `requests`, `tokens` or `max_concurrency` is not a positive int.
    """

    def __init__(
        self,
        requests: int | None = None,
        tokens: int | None = None,
        max_concurrency: int | None = None,
        max_wait: float = 60.0,
    ) -> None:
        for name, value in (("requests", requests), ("tokens", tokens), ("max_concurrency", max_concurrency)):
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"{name} must be a positive int or None, got {short_repr(value)}")
        self.requests, self.tokens, self.max_concurrency = requests, tokens, max_concurrency
        self.max_wait = max_wait
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._running = 0
        self._recent: deque[tuple[float, int]] = deque()
        self._paused_until = 0.0
        self._left: dict[str, tuple[int, float]] = {}  # by kind: the number left, and the time of the endpoint's reset

    def observe(self, headers: Any) -> None:
        """Read from the headers of an answer how many requests and tokens the endpoint still allows, if they say it."""
        now = time.monotonic()
        for kind in ("requests", "tokens"):
            left = _count(_header(headers, f"x-ratelimit-remaining-{kind}", f"anthropic-ratelimit-{kind}-remaining"))
            reset = _until(_header(headers, f"x-ratelimit-reset-{kind}", f"anthropic-ratelimit-{kind}-reset"))
            if left is not None and reset is not None:
                with self._lock:
                    self._left[kind] = left, now + reset

    def pause(self, seconds: float) -> None:
        """Let no request begin for `seconds`, the value of a `Retry-After` header."""
        with self._lock:
            self._paused_until = max(self._paused_until, time.monotonic() + max(seconds, 0.0))

    def _wait(self, tokens: int) -> float:
        """Count a request of `tokens` as running and return 0, or return the seconds after which to try again.

        The caller holds the lock. Raises `RateLimitError` as `_demanded` does.
        """
        now = time.monotonic()
        if (pause := self._paused_until - now) > 0:
            return self._demanded(pause, "the endpoint")
        if self.max_concurrency is not None and self._running >= self.max_concurrency:
            return 0.05
        costs = {"requests": 1, "tokens": tokens}
        for kind, (left, full) in [*self._left.items()]:
            if full <= now:
                del self._left[kind]
            elif left < costs[kind]:
                return self._demanded(full - now, f"the endpoint has {left:,} {kind} left, and")
        while self._recent and self._recent[0][0] <= now - 60:
            self._recent.popleft()
        if self.requests is not None and len(self._recent) >= self.requests:
            return self._recent[0][0] + 60 - now
        used = sum(one for _, one in self._recent)
        if self.tokens is not None and self._recent and used + tokens > self.tokens:
            return self._recent[0][0] + 60 - now
        self._running += 1
        for kind, (left, full) in self._left.items():
            self._left[kind] = left - costs[kind], full
        if self.requests is not None or self.tokens is not None:
            self._recent.append((now, tokens))
        return 0.0

    def _demanded(self, seconds: float, who: str) -> float:
        """Return the seconds that the endpoint demands to wait. Raises `RateLimitError` if they exceed `max_wait`."""
        if seconds > self.max_wait:
            raise RateLimitError(
                f"{who} demands to wait for {seconds:,.0f} more seconds, and max_wait is {self.max_wait:g}",
                retryable=True,
                retry_after=seconds,
            )
        return seconds

    def _leave(self) -> None:
        with self._lock:
            self._running -= 1
            self._free.notify()

    @contextmanager
    def slot(self, tokens: int, ends: float | None = None) -> Iterator[None]:
        """Wait until a request may begin, and count it as running until the block ends.

        Args:
            tokens: The estimated number of tokens of the request.
            ends: The time (`time.monotonic`) until which the request may wait; None: no limit.

        Raises:
            RateLimitError: The endpoint demands to wait longer than `max_wait`, or the wait would end after `ends`.
        """
        with self._lock:
            while (seconds := self._wait(tokens)) > 0:
                self._free.wait(_within(seconds, ends))
        try:
            yield
        finally:
            self._leave()

    @asynccontextmanager
    async def aslot(self, tokens: int, ends: float | None = None) -> AsyncIterator[None]:
        """Do the same as `slot` in an event loop."""
        while True:
            with self._lock:
                seconds = self._wait(tokens)
            if seconds <= 0:
                break
            await asyncio.sleep(_within(seconds, ends))
        try:
            yield
        finally:
            self._leave()


def _within(seconds: float, ends: float | None) -> float:
    """Return the seconds to wait before the next try, at most 1.

    Raises `RateLimitError` if the whole wait of `seconds` would end after `ends`.
    """
    if ends is not None and time.monotonic() + seconds > ends:
        raise RateLimitError(
            f"the request would wait {seconds:.2g} more seconds for its rate limit, longer than `timeout` allows",
            retryable=True,
            retry_after=seconds,
        )
    return min(seconds, 1.0)


_DURATION = re.compile(
    r"(?=\d)(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)(ms|s)?)?", re.ASCII
)


def _header(headers: Any, *names: str) -> str | None:
    """Return the value of the first header in `names` that is present and has at most 100 characters, else None."""
    for name in names:
        value = headers.get(name) if hasattr(headers, "get") else None
        if isinstance(value, str) and len(value) <= 100:
            return value.strip()
    return None


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 15 else None


def _until(text: str | None) -> float | None:
    """Return the seconds of a number, of a duration such as "6m0s", or until a date; None for other texts."""
    if text is None:
        return None
    found = _DURATION.fullmatch(text)
    if found is not None:
        days, hours, minutes, rest, unit = found.groups()
        seconds = float(rest or 0) / (1000 if unit == "ms" else 1)
        return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes or 0) * 60 + seconds
    try:
        seconds = datetime.fromisoformat(text.upper().replace("Z", "+00:00")).timestamp() - time.time()
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
