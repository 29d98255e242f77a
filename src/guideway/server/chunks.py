"""The chunks of streams of chat completions and completions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from guideway.batch.answers import answer_body, identifier, logprob_object, usage_object
from guideway.batch.requests import BatchRequest
from guideway.generation import Generation, Model
from guideway.sampling import TokenLogprobs
from guideway.server.running import Part

__all__ = ["ChatChunks", "CompletionChunks", "event"]

DONE = b"data: [DONE]\n\n"


def event(value: object) -> bytes:
    """Return a JSON value as an event."""
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n\n"


class _Chunks:
    """The shared parts of both kinds of chunks. `closing` ends a stream."""

    prefix = ""
    object = ""

    def __init__(self, model: Model, request: BatchRequest) -> None:
        self.model, self.request = model, request
        self._usage = bool(request.details.get("include_usage"))
        self._head = {
            "id": identifier(self.prefix, request.custom_id),
            "object": self.object,
            "created": int(time.time()),
            "model": request.details.get("model", model.name),
        }
        tail = ',"usage":null}\n\n' if self._usage else "}\n\n"
        self._before = f'data: {json.dumps(self._head, separators=(",", ":"))[:-1]},"choices":['
        self._after = f"]{tail}"

    def events(self, parts: Iterable[Part]) -> bytes:
        """Return the chunks of parts."""
        return b"".join(map(self._of, parts))

    def _of(self, part: Part) -> bytes:
        raise NotImplementedError

    def chunk(self, choice: str) -> bytes:
        """Return a chunk with one choice, which is given as JSON."""
        return f"{self._before}{choice}{self._after}".encode("utf-8", "replace")

    def closing(self, found: Sequence[Sequence[Generation[Any]]]) -> bytes:
        """Return the last events."""
        if not self._usage:
            return DONE
        usage = usage_object(found, ("prompt_tokens", "completion_tokens"))
        return event({**self._head, "choices": [], "usage": usage}) + DONE


class ChatChunks(_Chunks):
    """The chunks of a chat completion."""

    prefix, object = "chatcmpl", "chat.completion.chunk"

    def __init__(self, model: Model, request: BatchRequest) -> None:
        super().__init__(model, request)
        self._begun: set[int] = set()
        self._has_logprobs = "logprobs" in request.options

    def _of(self, part: Part) -> bytes:
        made = b""
        if part.choice not in self._begun:
            self._begun.add(part.choice)
            made = self._chunk(part.choice, {"role": "assistant", "content": "", "refusal": None})
        if part.text and not self.request.details.get("tools"):
            made += self._chunk(part.choice, {"content": part.text}, part.steps)
        if part.result is not None:
            made += self._end(part.choice, part.result)
        return made

    def _end(self, index: int, result: Generation[Any]) -> bytes:
        body = answer_body(self.model, self.request, [[result]])["choices"][0]
        made = b""
        if self.request.details.get("tools"):
            message = body["message"]
            if message["content"]:
                made += self._chunk(index, {"content": message["content"]})
            for number, call in enumerate(message.get("tool_calls", ())):
                made += self._chunk(index, {"tool_calls": [{"index": number, **call}]})
        return made + self._chunk(index, {}, finish=body["finish_reason"])

    def _chunk(
        self, index: int, delta: dict[str, Any], steps: Sequence[TokenLogprobs] = (), finish: str | None = None
    ) -> bytes:
        logprobs = None
        if steps:
            logprobs = {"content": [logprob_object(self.model, step) for step in steps], "refusal": None}
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return self.chunk(json.dumps(choice, ensure_ascii=False, separators=(",", ":")))


class CompletionChunks(_Chunks):
    """The chunks of completions."""

    prefix, object = "cmpl", "text_completion"

    def _of(self, part: Part) -> bytes:
        finish = None if part.result is None else part.result.finish_reason
        choice = {"index": part.choice, "text": part.text, "logprobs": None, "finish_reason": finish}
        return self.chunk(json.dumps(choice, ensure_ascii=False, separators=(",", ":")))
