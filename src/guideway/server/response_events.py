"""The events of a stream of the Responses API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from guideway.batch.answer_parts import identifier, logprob_object
from guideway.batch.requests import BatchRequest
from guideway.batch.response_objects import (
    call_item,
    item_id,
    message_item,
    output_items,
    reasoning_item,
    response_body,
    response_object,
)
from guideway.constraints.tools import Family
from guideway.generation import Generation, Model
from guideway.sampling import TokenLogprobs
from guideway.server.chunks import DONE, ReplyTexts
from guideway.server.echo import report_of
from guideway.server.reply_stream import ReplyPart
from guideway.server.running import Part

__all__ = ["ResponseEvents"]


class ResponseEvents:
    """The events of a response. Each output item is added, grows, and is done before the next one is added.

    Attributes:
        final: The whole response object; None before `closing`, `cancelled` or `failed` is called.
    """

    def __init__(self, model: Model, request: BatchRequest, family: Family | None) -> None:
        self._model, self._request = model, request
        self._texts = ReplyTexts(request, family)
        self._number = 0
        self._created = time.time()
        self._items: list[dict[str, Any]] = []  # the items that are done
        self._kind = ""  # of the current item: "message", "reasoning", "call", or "" if there is none
        self._text = ""  # of the current item so far
        self._name, self._call = "", -1  # name and number of the current call
        self._logprobs: list[dict[str, Any]] = []
        self._begun = False
        self.final: dict[str, Any] | None = None

    def events(self, parts: Iterable[Part]) -> bytes:
        """Return the events for parts of the text."""
        made = b""
        for part in parts:
            if not self._begun:
                self._begun = True
                made += self._event("response.created", response=self._response("in_progress"))
                made += self._event("response.in_progress", response=self._response("in_progress"))
            steps = part.steps
            for one in self._texts.push(part):
                made += self._grow(one, steps)
                steps = ()
        return made

    def closing(self, found: Sequence[Sequence[Generation[Any]]]) -> bytes:
        """Return the last events of a response that succeeded. `found` has the results of each prompt."""
        one = found[0][0]
        made = self._done(one.finish_reason)
        wanted = output_items(self._model, self._request, one)
        for item in wanted[len(self._items) :]:  # items that were not streamed
            made += self._whole(item, one)
        self.final = response_body(self._model, self._request, one)
        if self._request.details.get("report"):
            self.final["guideway"] = report_of(self._request, found)
        kind = "response.completed" if self.final["status"] == "completed" else "response.incomplete"
        return made + self._event(kind, response=self.final) + DONE

    def cancelled(self) -> bytes:
        """Return the last events of a response that was cancelled."""
        self.final = self._response("cancelled")
        return self._event("response.incomplete", response=self.final) + DONE

    def failed(self, error: dict[str, Any]) -> bytes:
        """Return the last events of a response that failed."""
        code = "rate_limit_exceeded" if error.get("code") == "rate_limit_exceeded" else "server_error"
        self.final = self._response("failed")
        self.final["error"] = {"code": code, "message": error["message"]}
        return self._event("response.failed", response=self.final) + DONE

    def _response(self, status: str) -> dict[str, Any]:
        name = str(self._request.details.get("model", self._model.name))
        return response_object(self._request, name, status=status, output=list(self._items), created=self._created)

    def _event(self, kind: str, **fields: Any) -> bytes:
        value = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return f"event: {kind}\ndata: {text}\n\n".encode("utf-8", "replace")

    def _grow(self, part: ReplyPart, steps: Sequence[TokenLogprobs]) -> bytes:
        """Return the events for a part of the reply. `steps`: the log-probabilities of its tokens."""
        made = b""
        if part.kind == "name":
            made += self._done("stop")
            self._kind, self._name, self._call, self._text = "call", part.text, part.call, ""
            return made + self._event("response.output_item.added", **self._place(), item=self._item("in_progress"))
        kind = {"text": "message", "reasoning": "reasoning", "arguments": "call"}[part.kind]
        if kind != self._kind:
            made += self._done("stop")
            self._kind, self._text = kind, ""
            made += self._event(
                "response.output_item.added", **self._place(), item=self._item("in_progress", empty=True)
            )
            made += self._event("response.content_part.added", **self._inner(), part=self._part())
        self._text += part.text
        if kind == "call":
            delta = (
                "response.custom_tool_call_input.delta" if self._custom else "response.function_call_arguments.delta"
            )
            return made + self._event(delta, **self._within(), delta=part.text)
        if kind == "reasoning":
            return made + self._event("response.reasoning_text.delta", **self._inner(), delta=part.text)
        logprobs = [logprob_object(self._model, step) for step in steps]
        self._logprobs += logprobs
        shown = [_short(one) for one in logprobs]
        return made + self._event("response.output_text.delta", **self._inner(), delta=part.text, logprobs=shown)

    def _done(self, finish_reason: str) -> bytes:
        """Return the events that end the current item, and add it to the done ones; b"" if there is no current item."""
        if not self._kind:
            return b""
        made = b""
        if self._kind == "call":
            name = "response.custom_tool_call_input.done" if self._custom else "response.function_call_arguments.done"
            key = "input" if self._custom else "arguments"
            made += self._event(name, **self._within(), **{key: self._text})
        elif self._kind == "reasoning":
            made += self._event("response.reasoning_text.done", **self._inner(), text=self._text)
        else:
            shown = [_short(one) for one in self._logprobs]
            made += self._event("response.output_text.done", **self._inner(), text=self._text, logprobs=shown)
        if self._kind != "call":
            made += self._event("response.content_part.done", **self._inner(), part=self._part())
        item = self._item("completed" if finish_reason == "stop" or self._kind != "message" else "incomplete")
        made += self._event("response.output_item.done", **self._place(), item=item)
        self._items.append(item)
        self._kind = ""
        return made

    def _whole(self, item: dict[str, Any], result: Generation[Any]) -> bytes:
        """Return the events of an item of a result that was not streamed, and add it to the done ones."""
        if item["type"] in ("message", "reasoning") and (text := item["content"][0]["text"]):
            part = ReplyPart("text" if item["type"] == "message" else "reasoning", text)
            return self._grow(part, result.steps) + self._done(result.finish_reason)
        place = {"output_index": len(self._items)}
        made = self._event("response.output_item.added", **place, item=item)
        self._items.append(item)
        return made + self._event("response.output_item.done", **place, item=item)

    @property
    def _custom(self) -> bool:
        tools = self._request.details.get("tools")
        return tools is not None and self._name in tools.custom

    def _item(self, status: str, *, empty: bool = False) -> dict[str, Any]:
        if self._kind == "reasoning":
            return reasoning_item(self._request, self._text, status)
        if self._kind == "message":
            return message_item(self._request, None if empty else self._text, self._logprobs, status)
        given = f"{identifier('call', self._request.custom_id)}_0_{self._call}"
        return call_item(self._request, self._name, given, self._text, self._call, status)

    def _part(self) -> dict[str, Any]:
        if self._kind == "reasoning":
            return {"type": "reasoning_text", "text": self._text}
        return {"type": "output_text", "text": self._text, "annotations": [], "logprobs": list(self._logprobs)}

    def _place(self) -> dict[str, Any]:
        return {"output_index": len(self._items)}

    def _within(self) -> dict[str, Any]:
        prefix = {"reasoning": "rs", "message": "msg", "call": "ctc" if self._custom else "fc"}[self._kind]
        number = self._call if self._kind == "call" else 0
        return {"item_id": item_id(self._request, prefix, number), "output_index": len(self._items)}

    def _inner(self) -> dict[str, Any]:
        return {**self._within(), "content_index": 0}


def _short(logprob: dict[str, Any]) -> dict[str, Any]:
    """Return the log-probability object of a token without bytes, which events do not have."""
    top = [{"token": one["token"], "logprob": one["logprob"]} for one in logprob["top_logprobs"]]
    return {"token": logprob["token"], "logprob": logprob["logprob"], "top_logprobs": top}
