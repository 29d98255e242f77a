"""Divides the text of a reply into reasoning, answer text and tool calls while it is generated.

The reply fits its constraint, so the texts that separate its parts, such as "<think>", are fixed. Tool calls are
returned in parts if the notation of the model writes arguments as one JSON object and calls without ids. In other
notations, nothing is returned from the first call on: the caller reads the calls from the `Generation`. In a notation
with channels, nothing is returned at all. Neither is a text that begins as a call if it can also be an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from guideway.constraints import Constraint
from guideway.constraints.tools import Family
from guideway.errors import ConstraintError
from guideway.generation.partial_values import Beginning
from guideway.generation.stop_checker import begun
from guideway.grammar.recognizer import byte_automaton

__all__ = ["ReplyPart", "ReplyStream"]

_Kind = Literal["reasoning", "text", "name", "arguments"]


class ReplyPart(NamedTuple):
    """A part of a reply.

    Attributes:
        kind: What `text` is: a piece of "reasoning" or "text"; the "name" of the tool of a call, with which the call
            begins; or a piece of the "arguments" of a call.
        text: The text.
        call: The number of the call in the reply, for "name" and "arguments".
    """

    kind: _Kind
    text: str
    call: int = 0


class ReplyStream:
    """Divides one reply into parts: a state machine over the text.

    Args:
        family: The notation of the model's replies.
        has_calls: Whether the reply may have tool calls.
        answer: The constraint on the text after the reasoning, if there is one. A reply with calls then has no text.

    Attributes:
        holds_calls: Whether the rest of the reply is only in the result, because its notation cannot be returned in
            parts. The rest begins with the first call, or it is as described for `holds_text`.
        holds_text: Whether the text of the reply, too, is only in the result: in notations with channels, and if a
            text can be both a call and an answer, or both a call and reasoning. `holds_calls` is then True.
        has_reasoning: Whether a part of the reasoning was returned.
    """

    def __init__(self, family: Family, *, has_calls: bool, answer: Constraint[Any] | None = None) -> None:
        self._family, self._has_calls, self._constraint = family, has_calls, answer
        self._pending = ""
        self._state = self._begin
        self._calls = 0
        self._depth, self._in_string, self._escaped = 0, False, False
        self.has_reasoning = self._is_after_reasoning = False
        self.holds_calls = self.holds_text = False
        opening = family.opening + family.prefix
        self._heads = (opening, family.lead + opening) if family.lead else (opening,)
        self._in_parts = family.arguments == "json" and family.call_id is None and not family.answer

    def push(self, text: str) -> list[ReplyPart]:
        """Add text. Returns the parts that are now known, without empty ones."""
        self._pending += text
        found: list[ReplyPart] = []
        while True:
            before = self._state, self._pending
            found += self._state()
            if (self._state, self._pending) == before:
                return [part for part in found if part.text]

    def finish(self) -> list[ReplyPart]:
        """Return the pending text after the end of the reply, as a list of at most one part.

        Pending text that is neither reasoning nor text, such as an incomplete call, is left out.
        """
        kind: _Kind | None = None
        if self._state in (self._text, self._begin, self._text_only):
            kind = "text"
        elif self._state == self._reasoning:
            kind = "reasoning"
        if kind is None or self.holds_calls or not self._pending:
            return []
        text, self._pending = self._pending, ""
        return [ReplyPart(kind, self._answer(text) if kind == "text" else text)]

    # The states: `_state` is one of these methods, except `_answer`. Each may remove the beginning of the pending text,
    # yield parts, and set another state. It does nothing if it needs more text.

    def _begin(self) -> Iterator[ReplyPart]:
        family = self._family
        begin = family.thoughts[0] if family.thoughts is not None else ""
        inner = self._pending.lstrip() if begin else self._pending  # white space may precede a marker
        if family.answer:
            self.holds_calls = self.holds_text = True  # a notation with channels
            self._state = self._held
        elif family.thoughts is not None and not begin and self._has_calls and self._begins_as_call():
            if any(self._pending.startswith(head) for head in self._heads):  # calls, or reasoning that begins so
                self.holds_calls = self.holds_text = True
                self._state = self._held
        elif family.thoughts is not None and inner.startswith(begin):
            self._pending = inner[len(begin) :]
            self._state = self._reasoning
        elif family.thoughts is None or not begin.startswith(inner):
            self._state = self._text if self._has_calls else self._text_only
        yield from ()

    def _reasoning(self) -> Iterator[ReplyPart]:
        thoughts = self._family.thoughts
        end = thoughts[1] if thoughts is not None else ""
        at = self._pending.find(end)
        is_open = at < 0
        if is_open:
            at = len(self._pending) - begun(self._pending, end)
        self.has_reasoning = self.has_reasoning or at > 0
        yield ReplyPart("reasoning", self._pending[:at])
        self._pending = self._pending[at if is_open else at + len(end) :]
        if is_open:
            return
        self._is_after_reasoning = self.has_reasoning or self._constraint is not None
        self._state = self._text if self._has_calls else self._text_only

    def _answer(self, text: str) -> str:
        """Return a piece of the text of the reply.

        If the text follows reasoning, the line breaks at its beginning are removed.
        """
        if self._is_after_reasoning:
            text = text.lstrip("\n")
            self._is_after_reasoning = not text
        return text

    def _text_only(self) -> Iterator[ReplyPart]:
        text, self._pending = self._pending, ""
        yield ReplyPart("text", self._answer(text))

    def _text(self) -> Iterator[ReplyPart]:
        """Read the text before calls.

        In a notation without a trigger, and in replies with a constraint on the answer, no text precedes calls: the
        beginning of a reply shows whether it is calls or text.
        """
        trigger = self._family.trigger
        if not trigger and self._constraint is None:
            beginning = Beginning(self._family.begins)
            beginning.push(self._pending)
            if beginning.is_known:
                self._state = self._head if beginning.is_found else self._text_only
            return
        if self._constraint is not None:
            if any(self._pending.startswith(head) for head in self._heads):
                self.holds_text = self._can_be_answer(self._pending)
                self._state = self._head
            elif not self._begins_as_call():
                self._state = self._text_only
            return
        at = self._pending.find(trigger)
        end = at if at >= 0 else len(self._pending) - begun(self._pending, trigger)
        text, self._pending = self._pending[:end], self._pending[end:]
        if at >= 0:
            self._state = self._head
        yield ReplyPart("text", self._answer(text))

    def _head(self) -> Iterator[ReplyPart]:
        """Read the text before the name of the first call (`_heads`), or hold the calls back (`holds_calls`)."""
        if not self._in_parts or self.holds_text:
            self.holds_calls = True
            self._state = self._held
            return
        head = next((one for one in sorted(self._heads, key=len) if self._pending.startswith(one)), None)
        if head is not None:
            self._pending = self._pending[len(head) :]
            self._state = self._name
        yield from ()

    def _begins_as_call(self) -> bool:
        """Return whether the pending text is a beginning of calls, or can become one."""
        return any(head.startswith(self._pending[: len(head)]) for head in self._heads)

    def _can_be_answer(self, text: str) -> bool:
        """Return whether an answer can begin with a text. True if the constraint of the answer cannot be compiled."""
        if self._constraint is None:
            return False
        data = text.encode("utf-8", "replace")
        try:
            return byte_automaton(self._constraint.grammar()).matcher().validate([*data]) == len(data)
        except ConstraintError:
            return True

    def _name(self) -> Iterator[ReplyPart]:
        name, found, rest = self._pending.partition(self._family.middle)
        if not found:
            return
        yield ReplyPart("name", name, self._calls)
        self._pending, self._state = rest, self._arguments
        self._depth, self._in_string, self._escaped = 0, False, False

    def _arguments(self) -> Iterator[ReplyPart]:
        for at, char in enumerate(self._pending):
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif char == "\\":
                    self._escaped = True
                elif char == '"':
                    self._in_string = False
            elif char == '"':
                self._in_string = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
                if not self._depth:
                    yield ReplyPart("arguments", self._pending[: at + 1], self._calls)
                    self._pending, self._state = self._pending[at + 1 :], self._after_call
                    self._calls += 1
                    return
        text, self._pending = self._pending, ""
        yield ReplyPart("arguments", text, self._calls)

    def _after_call(self) -> Iterator[ReplyPart]:
        """Read the text between the end of a call and the name of the next one."""
        between = self._family.suffix + self._family.separator + self._family.prefix
        if self._pending.startswith(between):
            self._pending = self._pending[len(between) :]
            self._state = self._name
        yield from ()

    def _held(self) -> Iterator[ReplyPart]:
        self._pending = ""
        yield from ()
