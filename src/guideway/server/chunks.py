"""The chunks of streams of chat completions and completions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from guideway.batch.answer_parts import chat_usage, identifier, logprob_lists, logprob_object
from guideway.batch.answers import chat_message
from guideway.batch.requests import BatchRequest
from guideway.constraints import of
from guideway.constraints.tools import Family
from guideway.generation import Generation, Model
from guideway.sampling import TokenLogprobs
from guideway.server.echo import report_of
from guideway.server.reply_stream import ReplyPart, ReplyStream
from guideway.server.running import Part

__all__ = ["DONE", "ChatChunks", "CompletionChunks", "ReplyTexts", "event"]

DONE = b"data: [DONE]\n\n"
# With these arguments, each call of `json.dumps` would make an encoder.
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def event(value: object) -> bytes:
    """Return a server-sent event with a JSON value."""
    return b"data: " + _compact(value).encode("utf-8", "replace") + b"\n\n"


class _Chunks:
    """The base class of the chunks of chat completions and of completions.

    A stream consists of the results of any number of calls of `events`, and then of one call of `closing`, `cancelled`
    or `failed`.
    """

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
        """Return the events for parts of the texts."""
        return b"".join(map(self._of, parts))

    def _of(self, part: Part) -> bytes:
        raise NotImplementedError

    def chunk(self, choice: str) -> bytes:
        """Return the event of a chunk with one element of `choices`, given as JSON text."""
        return f"{self._before}{choice}{self._after}".encode("utf-8", "replace")

    def cancelled(self) -> bytes:
        """Return the last events of a request that was cancelled."""
        return DONE

    def failed(self, error: dict[str, Any]) -> bytes:
        """Return the last events of a request that failed."""
        return event({"error": error})

    def closing(self, found: Sequence[Sequence[Generation[Any]]]) -> bytes:
        """Return the last events of a request that succeeded. `found` has the results of each prompt."""
        reports = self.request.details.get("report")
        if not self._usage and not reports:
            return DONE
        last: dict[str, Any] = {**self._head, "choices": []}
        if self._usage:
            last["usage"] = chat_usage(self.model, self.request, found)
            if self.request.options.get("max_tokens") == 0:
                last["usage"] |= {"completion_tokens": 0, "total_tokens": last["usage"]["prompt_tokens"]}
        if reports:
            last["guideway"] = report_of(self.request, found)
        return event(last) + DONE


class ChatChunks(_Chunks):
    """The chunks of a chat completion."""

    prefix, object = "chatcmpl", "chat.completion.chunk"

    def __init__(self, model: Model, request: BatchRequest, family: Family | None) -> None:
        super().__init__(model, request)
        self._texts = ReplyTexts(request, family)
        self._plain = (
            f'{self._before}{{"index":%d,"delta":{{"content":%s}},"logprobs":null,"finish_reason":null}}{self._after}'
        )
        self._begun: set[int] = set()

    def _of(self, part: Part) -> bytes:
        made = b""
        if part.choice not in self._begun:
            self._begun.add(part.choice)
            made = self._chunk(part.choice, {"role": "assistant", "content": "", "refusal": None})
        found = self._texts.push(part)
        steps = part.steps
        for one in found:
            if one.kind == "text" and not steps:
                made += (self._plain % (part.choice, _compact(one.text))).encode("utf-8", "replace")
            else:
                made += self._chunk(part.choice, self._delta(part.choice, one), steps)
                steps = ()
        if steps:
            made += self._chunk(part.choice, {}, steps)
        if part.result is not None:
            made += self._end(part.choice, part.result)
        return made

    def _delta(self, choice: int, part: ReplyPart) -> dict[str, Any]:
        if part.kind == "text":
            return {"content": part.text}
        if part.kind == "reasoning":
            return {"reasoning_content": part.text}
        call: dict[str, Any] = {"index": part.call}
        custom = self._texts.is_custom(choice, part)
        field = "custom" if custom else "function"
        if part.kind == "name":
            call["id"] = f"{identifier('call', self.request.custom_id)}_{choice}_{part.call}"
            call["type"] = field
            call[field] = {"name": part.text, "input" if custom else "arguments": ""}
        else:
            call[field] = {"input" if custom else "arguments": part.text}
        return {"tool_calls": [call]}

    def _end(self, choice: int, result: Generation[Any]) -> bytes:
        message, reason = chat_message(self.request, result, choice)
        made = b""
        if self._texts.holds_calls(choice):
            for key in ("reasoning_content", "content") if self._texts.holds_text(choice) else ():
                if message.get(key) and not (key == "reasoning_content" and self._texts.has_reasoning(choice)):
                    made += self._chunk(choice, {key: message[key]})
            for number, call in enumerate(message.get("tool_calls", ())):
                made += self._chunk(choice, {"tool_calls": [{"index": number, **call}]})
        return made + self._chunk(choice, {}, finish=reason)

    def _chunk(
        self, index: int, delta: dict[str, Any], steps: Sequence[TokenLogprobs] = (), finish: str | None = None
    ) -> bytes:
        logprobs = None
        if steps:
            logprobs = {"content": [logprob_object(self.model, step) for step in steps], "refusal": None}
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return self.chunk(_compact(choice))


class ReplyTexts:
    """Divides the texts of a request into objects of `ReplyPart`, with a `ReplyStream` for each text (each choice)."""

    def __init__(self, request: BatchRequest, family: Family | None) -> None:
        tools = request.details.get("tools")
        self._custom = frozenset() if tools is None else tools.custom
        self._has_calls = tools is not None and tools.choice != "none"
        has_answer = request.output is not None and (tools is None or tools.choice in ("auto", "none"))
        self._answer = of(request.output) if has_answer else None
        self._family = family
        self._streams: dict[int, ReplyStream] = {}
        self._open: dict[tuple[int, int], list[str]] = {}  # pieces of arguments of custom tools, by choice and call

    def push(self, part: Part) -> list[ReplyPart]:
        """Add a part of a text. Returns the parts of the reply that are now known.

        The input of a custom tool is a string inside the JSON of the arguments. It is returned as one part at its end.
        """
        if self._family is None:
            return [ReplyPart("text", part.text)] if part.text else []
        stream = self._streams.get(part.choice)
        if stream is None:
            stream = self._streams[part.choice] = ReplyStream(
                self._family, has_calls=self._has_calls, answer=self._answer
            )
        found = stream.push(part.text)
        if part.result is not None:
            found += stream.finish()
        made = []
        for one in found:
            key = part.choice, one.call
            if one.kind == "name" and one.text in self._custom:
                self._open[key] = []
            elif one.kind == "arguments" and key in self._open:
                self._open[key].append(one.text)
                text = "".join(self._open[key])
                if not text.endswith("}") or (value := _object_of(text)) is None:
                    continue
                one = ReplyPart("arguments", value["input"], one.call)  # the decoded input
            made.append(one)
        return made

    def is_custom(self, choice: int, part: ReplyPart) -> bool:
        """Return whether a part of the kind "name" or "arguments" belongs to a call of a custom tool."""
        return (choice, part.call) in self._open

    def holds_calls(self, choice: int) -> bool:
        """Return whether a text has tool calls that are only in its result; see `ReplyStream.holds_calls`."""
        return choice in self._streams and self._streams[choice].holds_calls

    def has_reasoning(self, choice: int) -> bool:
        """Return whether a part of the reasoning of a reply was streamed."""
        return choice in self._streams and self._streams[choice].has_reasoning

    def holds_text(self, choice: int) -> bool:
        """Return whether the text of a reply is only in its result; see `ReplyStream.holds_text`."""
        return choice in self._streams and self._streams[choice].holds_text


def _object_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


class CompletionChunks(_Chunks):
    """The chunks of completions."""

    prefix, object = "cmpl", "text_completion"

    def __init__(self, model: Model, request: BatchRequest, family: Family | None) -> None:
        super().__init__(model, request)
        self._lengths: dict[int, int] = {}
        self.echo: Any = None
        """A `PromptEcho` if each text begins with its prompt (field `echo` of the request); otherwise None."""

    def _of(self, part: Part) -> bytes:
        made = self._prompt(part.choice) if self.echo is not None and part.choice not in self._lengths else b""
        if self.request.options.get("max_tokens") == 0:
            part = Part(part.choice, "", (), part.result)
        finish = None if part.result is None else part.result.finish_reason
        logprobs = None
        if part.steps:
            start = self._lengths.get(part.choice, 0)
            logprobs = logprob_lists(self.model, part.steps, start)
            self._lengths[part.choice] = start + sum(map(len, logprobs["tokens"]))
        choice = {"index": part.choice, "text": part.text, "logprobs": logprobs, "finish_reason": finish}
        return made + self.chunk(_compact(choice))

    def _prompt(self, choice: int) -> bytes:
        text, _ = self.echo.prompt(self.request, choice)
        self._lengths[choice] = len(text)
        logprobs = self.echo.logprobs(self.model, self.request, choice)
        shown = {"index": choice, "text": text, "logprobs": logprobs, "finish_reason": None}
        return self.chunk(_compact(shown))
