"""Tokens and cost of requests, and rate limits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields

from guideway.errors import RateLimitError

__all__ = ["Prices", "RateLimit", "Usage"]


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens, in any currency."""

    input: float
    output: float
    cached: float | None = None

    def cost(self, usage: Usage) -> float:
        """Return the cost of a usage."""
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

    Args:
        requests: Requests per minute; None: no limit.
        tokens: Tokens per minute, estimated as the characters of the prompt divided by four plus `max_tokens`; None: no
            limit.
        max_concurrency: Requests at one time; None: no limit.
        max_wait: Maximum number of seconds that a request waits because the endpoint demands it (`Retry-After`). A longer
            demand raises `RateLimitError` without a request.
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
                raise ValueError(f"{name} must be a positive int or None, got {value!r}")
        self.requests, self.tokens, self.max_concurrency = requests, tokens, max_concurrency
        self.max_wait = max_wait
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self._running = 0
        self._recent: deque[tuple[float, int]] = deque()
        self._paused_until = 0.0

    def pause(self, seconds: float) -> None:
        """Let no request begin for a time, as a `Retry-After` header demands."""
        with self._lock:
            self._paused_until = max(self._paused_until, time.monotonic() + max(seconds, 0.0))

    def _wait(self, tokens: int) -> float:
        """Take a place and return 0, or return the seconds after which to try again. The lock is held."""
        now = time.monotonic()
        if (pause := self._paused_until - now) > 0:
            if pause > self.max_wait:
                raise RateLimitError(
                    f"the endpoint demands to wait for {pause:,.0f} more seconds, and max_wait is {self.max_wait:g}",
                    retryable=True,
                    retry_after=pause,
                )
            return pause
        if self.max_concurrency is not None and self._running >= self.max_concurrency:
            return 0.05
        while self._recent and self._recent[0][0] <= now - 60:
            self._recent.popleft()
        if self.requests is not None and len(self._recent) >= self.requests:
            return self._recent[0][0] + 60 - now
        used = sum(one for _, one in self._recent)
        if self.tokens is not None and self._recent and used + tokens > self.tokens:
            return self._recent[0][0] + 60 - now
        self._running += 1
        if self.requests is not None or self.tokens is not None:
            self._recent.append((now, tokens))
        return 0.0

    def _leave(self) -> None:
        with self._lock:
            self._running -= 1
            self._free.notify()

    @contextmanager
    def slot(self, tokens: int) -> Iterator[None]:
        """Wait until a request may begin, and count it until the block ends."""
        with self._lock:
            while (seconds := self._wait(tokens)) > 0:
                self._free.wait(min(seconds, 1.0))
        try:
            yield
        finally:
            self._leave()

    @asynccontextmanager
    async def aslot(self, tokens: int) -> AsyncIterator[None]:
        """As `slot`, for a task."""
        while True:
            with self._lock:
                seconds = self._wait(tokens)
            if seconds <= 0:
                break
            await asyncio.sleep(min(seconds, 1.0))
        try:
            yield
        finally:
            self._leave()
