"""`ReceivedAnswer`: the answer to one request while it arrives. It is checked byte by byte, and its size is limited."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from guideway.errors import GuidewayError, LimitExceededError
from guideway.remote.adapters import Event
from guideway.remote.answer_text import SPACE, Echo, VisibleText
from guideway.remote.check import StreamCheck
from guideway.remote.usage import Usage

__all__ = ["MAX_QUOTED", "ReceivedAnswer"]

MAX_DRAFT = 1 << 18
"""An answer that does not fit, but may be repaired, is read up to this number of bytes."""

MAX_ANSWER = 16 * 1024 * 1024
"""Maximum number of bytes of an answer that is read."""

MAX_EVENTS = 100_000
"""Maximum number of chunks of a streamed answer, without those that `max_tokens` adds."""

EVENTS_PER_TOKEN = 50
"""The number of chunks that each token of `max_tokens` adds to this maximum."""

MAX_QUOTED = 4000
"""Maximum number of characters of an answer in messages and attempts."""


class ReceivedAnswer:
    """The answer to one request.

    Args:
        check: Checks the bytes of the text.
        prefill: The text that the answer continues; it is part of `text` and `data`.
        max_tokens: The maximum number of tokens of the answer.
        visible: Gets the valid text, for a stream; None: the text is not streamed.
        shown: The number of characters of `prefill` that the stream has already yielded.
        reads_on: Whether reading continues after a byte that does not fit, up to `MAX_DRAFT` bytes, because the whole
            text may be repaired.
        from_tool: Whether the text is the input of a tool call. If the model calls no tool, other text is taken
            instead.

    Attributes:
        usage: The tokens, as reported so far.
        finish: The finish reason; None before it came.
        refusal: The text with which the model refused; "" if it did not.
        request_id: The id that the endpoint gave the answer.
        first_tokens: The most probable first tokens with their log-probabilities.
        error: Why reading was stopped before the end, such as an exceeded limit; None if there was no such error.
    """

    def __init__(
        self,
        check: StreamCheck,
        *,
        prefill: str = "",
        max_tokens: int = 0,
        visible: VisibleText | None = None,
        shown: int = 0,
        reads_on: bool = False,
        from_tool: bool = False,
    ) -> None:
        self.check = check
        self._visible, self._reads_on, self._from_tool = visible, reads_on, from_tool
        self._most_events = MAX_EVENTS + EVENTS_PER_TOKEN * max_tokens
        self._events = 0
        self._echo = Echo(prefill.encode())
        self._data = bytearray(prefill.encode())
        self._call: tuple[int, str] | None = None  # the tool call whose input is the text
        self._outside: list[str] = []  # text outside of tool calls
        self._thought: list[str] = []
        self._size = 0  # number of characters of `_outside` and `_thought`
        self.usage = Usage(requests=1)
        self.finish: str | None = None
        self.refusal = ""
        self.request_id: str | None = None
        self.first_tokens: tuple[tuple[str, Any], ...] = ()
        self.error: GuidewayError | None = None
        if prefill:
            check.feed(bytes(self._data))
            if visible is not None:
                visible.feed(bytes(self._data), shown)

    # -- what came

    @property
    def data(self) -> bytes:
        """The bytes of `text`."""
        return bytes(self._data)

    @property
    def text(self) -> str:
        """The text so far: the prefill (the text that the answer continues), and after it the text received."""
        return self._data.decode("utf-8", "replace")

    @property
    def reasoning(self) -> str:
        """The reasoning text received so far."""
        return "".join(self._thought)

    def valid(self) -> str:
        """Return the longest valid beginning of the text, in whole characters."""
        return bytes(self._data[: self.check.taken]).decode("utf-8", "ignore")

    def is_complete(self, allows_space: bool) -> bool:
        """Return whether the text is complete and no byte can follow it; False if nothing is checked.

        `allows_space`: white space that can follow does not count.
        """
        return self.check.must_end(SPACE.encode() if allows_space else b"")

    # -- events

    def take(self, events: Iterable[Event]) -> bool:
        """Store the events of one chunk.

        Returns True if the caller must close the stream now: a limit is exceeded (`error` is set), or the text does not
        fit the constraint and is not read further (`reads_on`). Otherwise False, also if the text is complete.
        """
        self._events += 1
        if self._events > self._most_events:
            return self._too_large(f"the answer has more than {self._events - 1:,} chunks")
        for event in events:
            if event.kind == "text":
                if self._taken(event):
                    return True
            elif event.kind == "reasoning":
                if self._held(self._thought, event.text):
                    return self._too_large(f"the reasoning has more than {MAX_ANSWER:,} characters")
            elif event.kind == "refusal":
                self.refusal = (self.refusal + event.text[:MAX_QUOTED])[:MAX_QUOTED]
            elif event.kind == "finish":
                self.finish = event.text
            elif event.kind == "logprobs":
                self.first_tokens = self.first_tokens or event.tokens
            elif event.kind == "id":
                self.request_id = event.text[:200]
            elif event.usage is not None:
                self.usage = _latest(self.usage, event.usage)
        return False

    def end(self) -> None:
        """Add the text that was held back until the last event.

        It is the text outside of tool calls if no tool was called, and an incomplete repetition of the prefill.
        """
        if self._call is None:
            text = "".join(self._outside)
            self._outside.clear()
            self._taken_text(text)
        self._taken_bytes(self._echo.rest())

    def stop(self, error: GuidewayError | None = None) -> bool:
        """Record in `usage` that the request was closed before the end of the answer.

        Sets the attribute `error`, unless it is already set. Returns True, the result for `take`.
        """
        self.usage = replace(self.usage, aborted=1)
        self.error = self.error or error
        return True

    def _too_large(self, problem: str) -> bool:
        return self.stop(LimitExceededError(problem))

    def _held(self, texts: list[str], text: str) -> bool:
        """Append text to `_outside` or `_thought`. Returns whether both together are too long."""
        texts.append(text)
        self._size += len(text)
        return self._size > MAX_ANSWER

    def _taken(self, event: Event) -> bool:
        """Store the text of an event. Returns the result for `take`. Tool calls after the first one are ignored."""
        if event.call is None and self._from_tool:
            return self._held(self._outside, event.text) and self._too_large(
                f"the text outside of the call of the tool has more than {MAX_ANSWER:,} characters"
            )
        if event.call is not None:
            number, identity = event.call
            if self._call is None:
                self._call = event.call
            elif number != self._call[0] or (identity and self._call[1] and identity != self._call[1]):
                return False
        return self._taken_text(event.text)

    def _taken_text(self, text: str) -> bool:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = text.encode("utf-8", "replace")
        return self._taken_bytes(self._echo.without(data, self.check.allows))

    def _taken_bytes(self, data: bytes) -> bool:
        if len(self._data) + len(data) > MAX_ANSWER:
            return self._too_large(f"the answer has more than {MAX_ANSWER:,} bytes")
        self._data += data
        fits = self.check.feed(data)
        if self._visible is not None:
            self._visible.feed(data[:fits])
        if fits < len(data) and (not self._reads_on or len(self._data) > MAX_DRAFT):
            return self.stop()
        return False


def _latest(before: Usage, new: Usage) -> Usage:
    """Return the usage of an answer after a further report: the larger of both numbers for each kind of tokens."""
    return replace(
        before,
        input=max(before.input, new.input),
        cached=max(before.cached, new.cached),
        output=max(before.output, new.output),
        reasoning=max(before.reasoning, new.reasoning),
    )
