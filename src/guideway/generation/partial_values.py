"""Values that are still being generated: JSON, reasoning with an answer, and replies with tool calls."""

from __future__ import annotations

import copy
import json
import re
from contextlib import suppress
from typing import Any, Protocol

from guideway.arguments import short_repr
from guideway.constraints import JsonSchema, Reasoning, ToolCalls
from guideway.constraints.base import Constraint
from guideway.constraints.python_types import PythonType, field_adapters
from guideway.constraints.tools.families import NAME_KEY
from guideway.errors import InvalidConstraintError
from guideway.generation.stop_checker import begun
from guideway.jsontext.partial import PartialReader

__all__ = ["CallsProgress", "GrowingValue", "Progress", "ReasoningProgress", "progress_of"]


class GrowingValue(Protocol):
    """The value of a text that is still being generated.

    Attributes:
        changes: A number that increases when `push` changes the value.
        fields: The complete entries of the outermost object by name. For a `Reasoning` and for `ToolCalls`, it is equal
            to `data`.
    """

    changes: int

    @property
    def fields(self) -> dict[str, Any]: ...

    @property
    def data(self) -> Any:
        """The value so far. Later calls of `push` do not change the returned object."""

    def push(self, text: str) -> object:
        """Add the next part of the text. Afterwards `data` and `fields` are up to date.

        The return value has no meaning.
        """

    def finish(self) -> None:
        """End the text. Call it after the last `push`."""


def progress_of(source: Constraint[Any] | None) -> GrowingValue:
    """Return a new reader, which builds the value of a constraint while its text is generated.

    Raises:
        InvalidConstraintError: `source` is None or another constraint, whose value is known only when the text is
            complete.
    """
    if isinstance(source, (JsonSchema, PythonType)):
        return Progress(source)
    if isinstance(source, Reasoning):
        return ReasoningProgress(source)
    if isinstance(source, ToolCalls):
        return CallsProgress(source)
    raise InvalidConstraintError(
        f"a stream of values needs a type, a JsonSchema, a Reasoning or ToolCalls, got {short_repr(source)}"
    )


class Progress(PartialReader):
    """A `PartialReader` that also converts entries of the outermost object to their types.

    Attributes:
        data: All values so far, with containers and strings that are still open.
        fields: The complete entries of the outermost object, as values of their types if the constraint is a Python
            type. An entry that the type's own validation rejects is left out.
    """

    def __init__(self, source: Constraint[Any]) -> None:
        super().__init__(self._field_ended)
        self._adapters = field_adapters(source) if isinstance(source, PythonType) else {}
        self.fields: dict[str, Any] = {}

    @property
    def data(self) -> Any:
        """The values so far. Containers that are complete are shared between the values of a stream."""
        return self.snapshot()

    def _field_ended(self, key: str, value: Any) -> None:
        adapter = self._adapters.get(key)
        if adapter is None:
            self.fields[key] = copy.deepcopy(value)
            return
        with suppress(Exception):  # validators may raise anything; the whole value is validated again at the end
            self.fields[key] = adapter.validate_json(json.dumps(value))


class _Text:
    """A `GrowingValue` whose value is the text so far.

    It reads the answer of a `Reasoning` if `progress_of` has no reader for the constraint of the answer.
    """

    def __init__(self) -> None:
        self.changes = 0
        self.data = ""
        self.fields: dict[str, Any] = {}

    def push(self, text: str) -> None:
        self.data += text
        self.changes += bool(text)

    def finish(self) -> None:
        pass


class _Thoughts:
    """Separates reasoning between two markers from the text after it.

    A text that does not begin with the first marker has no reasoning.

    Args:
        begin: The marker before the reasoning.
        end: The marker after the reasoning.
        gap: Whether line breaks directly after the end marker are removed.

    Attributes:
        text: The reasoning so far.
        is_over: Whether the reasoning has ended, or the text has none.
    """

    def __init__(self, begin: str, end: str, *, gap: bool) -> None:
        self._begin, self._end, self._gap = begin, end, gap
        self._held = ""
        self._is_inside = False
        self.text = ""
        self.is_over = False

    def push(self, text: str) -> str:
        """Add the next part of the text. Returns the new text after the reasoning.

        It can include characters of earlier parts, which could have been the beginning of the first marker.
        """
        if self.is_over:
            if self._gap:
                text = text.lstrip("\n")
                self._gap = not text
            return text
        self._held += text
        if not self._is_inside:
            if len(self._held) < len(self._begin) and self._begin.startswith(self._held):
                return ""
            if not self._held.startswith(self._begin):
                return self._over(self._held)
            self._is_inside, self._held = True, self._held[len(self._begin) :]
        at = self._held.find(self._end)
        if at >= 0:
            self.text += self._held[:at]
            return self._over(self._held[at + len(self._end) :])
        at = len(self._held) - begun(self._held, self._end)
        self.text, self._held = self.text + self._held[:at], self._held[at:]
        return ""

    def finish(self) -> str:
        """End the text. Returns the text that was kept back as a possible beginning of the first marker."""
        return "" if self.is_over or self._is_inside else self._over(self._held)

    def _over(self, text: str) -> str:
        self.is_over, self._held = True, ""
        self._gap = self._gap and self._is_inside
        return self.push(text)


class ReasoningProgress:
    """The value of a `Reasoning`: a dict with "reasoning" and "answer". The answer is None until it begins."""

    def __init__(self, source: Reasoning[Any]) -> None:
        self._thoughts = _Thoughts(source.begin, source.end, gap=True)
        try:
            self._answer: GrowingValue = progress_of(source.answer)
        except InvalidConstraintError:
            self._answer = _Text()
        self.changes = 0

    def push(self, text: str) -> None:
        before = len(self._thoughts.text), self._answer.changes
        rest = self._thoughts.push(text)
        if rest:
            self._answer.push(rest)
        self.changes += before != (len(self._thoughts.text), self._answer.changes)

    def finish(self) -> None:
        if rest := self._thoughts.finish():
            self._answer.push(rest)
        self._answer.finish()

    @property
    def data(self) -> dict[str, Any]:
        return {"reasoning": self._thoughts.text, "answer": self._answer.data if self._answer.changes else None}

    @property
    def fields(self) -> dict[str, Any]:
        return self.data


class CallsProgress:
    """The value of `ToolCalls`: a dict with "text", "reasoning" and "calls".

    A call is a dict with "name" and "arguments". If the notation writes arguments as JSON, "arguments" contains what
    was read so far. In other notations it is None. Calls that a model writes as Python calls (`f(x=1)`) are left out.
    """

    def __init__(self, source: ToolCalls) -> None:
        family = source.family
        self._family = family
        begin, end = family.thoughts or ("", "")
        self._thoughts = _Thoughts(begin, end, gap=False) if begin else None
        self._begins = re.compile(family.begins) if family.begins else None
        self._answer = family.answer
        self._text = ""
        self._held = ""  # text that was received and not yet read
        self._searched = 0  # where the search for the end of a name resumes: an offset in the call
        self._in_calls = False
        self._calls: list[dict[str, Any]] = []
        self._reader: PartialReader | None = None
        self.changes = 0

    def push(self, text: str) -> None:
        before = 0 if self._thoughts is None else len(self._thoughts.text)
        rest = text if self._thoughts is None else self._thoughts.push(text)
        self.changes += self._thoughts is not None and before != len(self._thoughts.text)
        self._held += rest
        if not self._in_calls:
            self._push_text()
        while self._in_calls and self._push_call():
            pass

    def _push_text(self) -> None:
        """Move text before the first call from `_held` to `_text`. Sets `_in_calls` when the calls begin."""
        family = self._family
        if self._answer:
            if self._held.startswith(self._answer):
                self._held, self._answer = self._held[len(self._answer) :], ""
            elif self._answer.startswith(self._held[: len(self._answer)]):
                return
            else:
                self._in_calls = True
                return
        if self._begins is not None:
            if not self._text and self._begins.match(self._held):
                self._in_calls = True
                return
            if not self._text and self._held.lstrip()[:1] in ("", "{", "[", "<") and len(self._held) < 200:
                return  # the held text may be the beginning of a call
            at = len(self._held)
        else:
            found = self._held.find(family.trigger)
            self._in_calls = found >= 0
            at = found if found >= 0 else len(self._held) - begun(self._held, family.trigger)
        self._text, self._held = self._text + self._held[:at], self._held[at:]
        self.changes += bool(at)

    def _push_call(self) -> bool:
        """Read arguments, or the name of the next call, from `_held`.

        Returns True if the name of a call was read: the method must then be called again. False: more text is needed.
        """
        if self._reader is not None:
            before = self._reader.changes
            self._held = self._held[self._reader.push(self._held) :]
            self.changes += self._reader.changes != before
            if not self._reader.is_closed:
                return False
            self._calls[-1]["arguments"], self._reader = self._reader.root, None
        family = self._family
        if family.arguments == "python":
            self._held = ""
            return False
        head = NAME_KEY if family.is_object else family.prefix
        start = self._held.find(head)
        if start < 0:
            self._held = self._held[max(0, len(self._held) - len(head) + 1) :]
            return False
        begin = start + len(head)
        middle = self._held.find(family.middle, max(begin, start + self._searched))
        if middle < 0:
            self._held = self._held[start:]
            self._searched = max(0, len(self._held) - len(family.middle) + 1)
            return False
        self._searched = 0
        name = self._held[begin:middle]
        if family.call_id is not None and not family.is_object:
            name = name.split(family.call_id[0])[0]
        self._calls.append({"name": name, "arguments": None})
        self._held = self._held[middle + len(family.middle) :]
        if family.arguments == "json":
            self._reader = PartialReader(lambda key, value: None)
        self.changes += 1
        return True

    def finish(self) -> None:
        """End the text. Text that could have begun the first marker or a call becomes part of `data`.

        If the text ends with a beginning of the end marker of the reasoning, this beginning is left out.
        """
        if self._thoughts is not None:
            self._held += self._thoughts.finish()
        if not self._in_calls:
            self._text, self._held = self._text + self._held, ""

    @property
    def data(self) -> dict[str, Any]:
        calls = [dict(call) for call in self._calls]
        if self._reader is not None:
            calls[-1]["arguments"] = self._reader.snapshot()
        reasoning = "" if self._thoughts is None else self._thoughts.text
        return {"text": self._text, "reasoning": reasoning, "calls": calls}

    @property
    def fields(self) -> dict[str, Any]:
        return self.data
