"""`ServedRequest`: a request in the generation loop of its model, with an asynchronous interface."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from guideway.generation import Generation
from guideway.generation.async_loop import Call, loop_of
from guideway.generation.plan import Job
from guideway.generation.scheduler import Row
from guideway.sampling import TokenLogprobs

__all__ = ["Part", "ServedRequest"]


class Part(NamedTuple):
    """New text of a request, or the end of one of its texts.

    Attributes:
        choice: The number of the text. The texts of the first prompt come first, then those of the second, and so on.
        text: The new text; it may be empty.
        steps: The log-probabilities of new tokens; empty if they were not requested.
        result: The result if the text is complete, otherwise None.
    """

    choice: int
    text: str
    steps: tuple[TokenLogprobs, ...] = ()
    result: Generation[Any] | None = None


class ServedRequest:
    """A job in the generation loop of its model. Its rows join the batch of this loop.

    Create the object in a running event loop. `cancel` removes its rows at the next round.

    Args:
        job: The job.
        streams: Whether `parts` yields the text while it is generated; False: only `results` is used.
    """

    def __init__(self, job: Job, *, streams: bool) -> None:
        self.job = job
        self.begun = time.perf_counter()
        self.first: float | None = None
        """The time of the first drawn token, in seconds after `begun`; None: no token was drawn yet."""
        self._streams = streams
        self._here = asyncio.get_running_loop()
        self._parts: deque[Part] = deque()
        self._woken = asyncio.Event()
        self._signalled = self._poked = False
        self._over = False
        self._error: BaseException | None = None
        self._sent_steps: dict[int, int] = {}
        self._call = Call(job, self._moved, self._done, streams=streams)
        loop = loop_of(job.model)
        self._outbox = loop.outbox
        loop.add(self._call)

    def cancel(self) -> None:
        """End the request. Its rows leave the batch at the next round."""
        self._call.cancelled = True

    def poke(self) -> None:
        """Make `parts` yield now. The list is empty if no text has come."""
        self._poked = True
        self._woken.set()

    async def parts(self) -> AsyncGenerator[list[Part], None]:
        """Yield lists of the parts since the last list, as soon as there are any. After `poke`, a list may be empty.

        A request that is cancelled ends without an error.

        Raises:
            Exception: The error of a text, or of the engine.
        """
        try:
            while True:
                await self._woken.wait()
                self._woken.clear()
                self._signalled = False
                found = []
                while self._parts:
                    found.append(self._parts.popleft())
                if found or self._poked:
                    self._poked = False
                    yield found
                if self._over and not self._parts:
                    if self._error is not None:
                        raise self._error
                    return
        finally:
            self.cancel()

    async def results(self) -> list[list[Generation[Any]]]:
        """Wait until the request has ended, and return the results of each prompt.

        If the request was cancelled, None may be in the place of a result. Raises the same errors as `parts`.
        """
        async for _ in self.parts():
            pass
        found: list[list[Generation[Any]]] = self.job.results  # type: ignore[assignment]  # None only if cancelled
        return found

    # The following methods are called in the thread of the model's generation loop.

    def _moved(self, rows: list[Row]) -> None:
        if self.first is None and any(row.has_drawn for row in rows):
            self.first = time.perf_counter() - self.begun
        if not self._streams:
            self.job.finish_all(rows)
            return
        n = self.job.n or 1
        for row in rows:
            number, sample = self.job.place[row]
            index = number * n + sample
            result = None
            if row.error is not None:
                self.job.finish(row)  # raises the error
            text = row.watch.show(finished=row.is_over)
            steps = self._new_steps(row, index) if row.limits.logprobs is not None else ()
            if row.is_over:
                self.job.finish(row)
                found = self.job.results[number][sample]
                result = found if isinstance(found, Generation) else None
            if text or steps or result is not None:
                self._parts.append(Part(index, text, steps, result))
        if self._parts:
            self._signal()

    def _new_steps(self, row: Row, index: int) -> tuple[TokenLogprobs, ...]:
        """Return the log-probabilities of tokens that cannot be removed any more and were not returned before.

        `index` is the number of the text. Tokens can be removed if a banned string may still be completed.
        """
        sent = self._sent_steps.get(index, 0)
        end = len(row.steps) if row.is_over or not row.limits.bad_words else row.watch.shown_tokens
        self._sent_steps[index] = max(sent, end)
        return tuple(row.steps[sent:end])

    def _done(self, error: BaseException | None) -> None:
        self._error = error
        self._over = True
        self._signal()

    def _signal(self) -> None:
        if self._signalled and not self._over:
            return
        self._signalled = True
        self._outbox.call(self._here, self._woken.set, self.cancel)
