"""Values that are still being generated: JSON, reasoning with an answer, and replies with tool calls."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal, Protocol

from guideway.arguments import short_repr
from guideway.constraints import JsonSchema, Reasoning, ToolCalls
from guideway.constraints.base import Constraint
from guideway.constraints.python_types import PythonType, field_adapters
from guideway.constraints.tools.families import Family
from guideway.constraints.tools.reply_parser import NUMBERS
from guideway.errors import ConstraintError, InvalidConstraintError, InvalidTextError
from guideway.frontends.regex import parse_pattern
from guideway.generation.stop_checker import begun
from guideway.grammar.nodes import Grammar, leaf
from guideway.grammar.recognizer import END, byte_automaton
from guideway.jsontext.decoder import loads, plain_json
from guideway.jsontext.numbers import read_float
from guideway.jsontext.partial import PartialReader

__all__ = ["Beginning", "CallsProgress", "GrowingValue", "Progress", "ReasoningProgress", "progress_of"]


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
        """End the text, which must be complete. Call it after the last `push`.

        Afterwards `data` has the parts that the `parse` of the constraint returns.
        """


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
        super().__init__(self._field_ended, parse_float=read_float if isinstance(source, JsonSchema) else float)
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
        begin: The marker before the reasoning. It can be empty.
        end: The marker after the reasoning.
        space: Whether white space may precede the first marker, if it is not empty.

    Attributes:
        text: The reasoning so far.
        has_begun: Whether the text begins with the first marker.
        is_over: Whether the reasoning has ended, or the text has none.
    """

    def __init__(self, begin: str, end: str, *, space: bool = False) -> None:
        self._begin, self._end, self._space = begin, end, space
        self._held = ""
        self.has_begun = False
        self.text = ""
        self.is_over = False

    def push(self, text: str) -> str:
        """Add the next part of the text. Returns the new text after the reasoning.

        It can include characters of earlier parts, which could have been the beginning of the first marker.
        """
        if self.is_over:
            return text
        self._held += text
        if not self.has_begun:
            inner = self._held.lstrip() if self._space and self._begin else self._held
            if len(inner) < len(self._begin) and self._begin.startswith(inner):
                return ""
            if not inner.startswith(self._begin):
                return self._over(self._held)
            self.has_begun, self._held = True, inner[len(self._begin) :]
        at = self._held.find(self._end)
        if at >= 0:
            self.text += self._held[:at]
            return self._over(self._held[at + len(self._end) :])
        at = len(self._held) - begun(self._held, self._end)
        self.text, self._held = self.text + self._held[:at], self._held[at:]
        return ""

    def _over(self, text: str) -> str:
        self.is_over, self._held = True, ""
        return text


class ReasoningProgress:
    """The value of a `Reasoning`: a dict with "reasoning" and "answer". The answer is None until it begins.

    Text after the first marker is reasoning until the second marker follows. If the second marker does not follow,
    `finish` makes the text the answer, as `Reasoning.parse` does.
    """

    def __init__(self, source: Reasoning[Any]) -> None:
        self._source = source
        self._thoughts = _Thoughts(source.begin, source.end)
        self._answer = self._new_answer()
        self._is_json = isinstance(self._answer, Progress)
        self._read: list[str] = []  # the parts of the whole text
        self._answered: list[str] = []  # the parts of the text of the answer
        self._breaks = ""  # line breaks before the answer, while it is not known whether they are a part of it
        self.changes = 0

    def _new_answer(self) -> GrowingValue:
        try:
            return progress_of(self._source.answer)
        except InvalidConstraintError:
            return _Text()

    def push(self, text: str) -> None:
        self._read.append(text)
        before = len(self._thoughts.text), self._answer.changes
        if rest := self._thoughts.push(text):
            self._push_answer(rest)
        self.changes += before != (len(self._thoughts.text), self._answer.changes)

    def _push_answer(self, text: str) -> None:
        if not self._answered and self._thoughts.has_begun and not self._is_json:
            self._breaks += text
            if not text.strip("\n"):
                return
            text = self._breaks[self._gap(self._breaks) :]
        self._answered.append(text)
        self._answer.push(text)

    def _gap(self, text: str) -> int:
        """Return the least number of line breaks that can precede the answer, if `text` follows the reasoning."""
        most = min(2, len(text) - len(text.lstrip("\n")))
        return next((gap for gap in range(most) if _can_begin(self._source.answer.grammar(), text[gap:])), most)

    def finish(self) -> None:
        if not (self._is_json and self._thoughts.is_over):
            with suppress(InvalidTextError):  # the caller reports the error: it parses the text, too
                reasoning, answer = self._source.split("".join(self._read))
                if reasoning != self._thoughts.text or answer != "".join(self._answered):
                    self._thoughts.text, self._answer = reasoning, self._new_answer()
                    self._answer.push(answer)
                    self.changes += 1 + self._answer.changes
        self._answer.finish()

    @property
    def data(self) -> dict[str, Any]:
        return {"reasoning": self._thoughts.text, "answer": self._answer.data if self._answer.changes else None}

    @property
    def fields(self) -> dict[str, Any]:
        return self.data


def _can_begin(grammar: Grammar, text: str) -> bool:
    """Return whether a text of a grammar can begin with `text`. False if the grammar cannot be compiled."""
    try:
        return byte_automaton(grammar).matcher().validate([*text.encode()]) == len(text.encode())
    except (ConstraintError, UnicodeEncodeError):
        return False


class Beginning:
    """Decides whether the beginning of a growing text matches a pattern.

    Args:
        pattern: The pattern, in the dialect of Python.
    """

    def __init__(self, pattern: str) -> None:
        self._matcher = byte_automaton(leaf(parse_pattern(pattern, "python"))).matcher()
        self.is_found = self._is_match()
        self.is_known = self.is_found

    def push(self, text: str) -> None:
        """Add text. Sets `is_known` when no further text can change `is_found`."""
        for byte in text.encode("utf-8", "replace"):
            if self.is_known:
                return
            if self._matcher.validate([byte]):
                self._matcher.advance(byte)
                self.is_found = self.is_known = self._is_match()
            else:
                self.is_known = True

    def _is_match(self) -> bool:
        return self._matcher.validate([END]) == 1


def _loosely(text: str) -> str:
    """Return the pattern of a text in a notation. White space in the text and after it may differ.

    White space before the text is left out, so that one run of white space never matches two parts of a pattern.
    """
    return "".join(re.escape(word) + r"\s*" for word in text.split())


class _Notation:
    """The patterns of the parts of a family's calls, without white space before the parts.

    Args:
        family: The family. Its arguments are not in Python notation.
        names: The names of the tools.
    """

    def __init__(self, family: Family, names: Iterable[str]) -> None:
        first, last = map(_loosely, family.call_id or ("", ""))
        call_id = rf"(?:{first}[A-Za-z0-9]+\s*{last})?" if family.call_id else ""
        one_of = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
        before, after = ("", call_id) if family.is_object else (call_id, "")
        middle = _loosely(family.middle)
        if family.arguments == "json":
            middle += r"(?=\{)"
        elif not family.middle.strip():
            middle = r"(?=[^A-Za-z0-9_.-])" + middle  # the end of the name
        name = rf"(?:functions\.)??({one_of})\s*{before}{middle}"
        lead = f"(?:{_loosely(family.lead)})?"
        begin, between, _ = map(_loosely, family.pair)
        self.first = re.compile(lead + _loosely(family.opening + family.prefix) + name)
        self.next = re.compile(
            f"{after}(?:{_loosely(family.suffix)})?{_loosely(family.separator + family.prefix)}{name}"
        )
        self.pair = re.compile(rf"{begin}([A-Za-z0-9_.-]+?)\s*{between}")


class CallsProgress:
    """The value of `ToolCalls`: a dict with "text", "reasoning" and "calls".

    A call is a dict with "name" and "arguments". If the notation writes arguments as JSON, "arguments" contains what
    was read so far. In other notations it is None until the reply is complete. Calls that a model writes as Python
    calls (`f(x=1)`) are left out until then.

    Text after the first marker of the reasoning is reasoning until the second marker follows. If it does not follow,
    `finish` makes the text a part of "text" and "calls", as `ToolCalls.parse` does.
    """

    def __init__(self, source: ToolCalls) -> None:
        family = source.family
        self._source, self._family = source, family
        self._thoughts = _Thoughts(*family.thoughts, space=True) if family.thoughts else None
        self._beginning = None if family.trigger else Beginning(family.begins)
        self._answer = family.answer
        self._notation = None if family.arguments == "python" else _Notation(family, [one.name for one in source.tools])
        self._read: list[str] = []  # the parts of the whole text
        self._text = ""
        self._held = ""  # text that was received and not yet read
        self._in_calls = self._is_only_text = False
        self._calls: list[dict[str, Any]] = []
        self._reader: PartialReader | None = None  # reads the open arguments, or an open value of the open pairs
        self._in_pairs = False
        self._value: Literal["json", "text", None] = None  # how the open value of a pair is written
        self._searched = 0  # where the search for the end of this value resumes: an offset in `_held`
        self.changes = 0

    def push(self, text: str) -> None:
        self._read.append(text)
        before = 0 if self._thoughts is None else len(self._thoughts.text)
        rest = text if self._thoughts is None else self._thoughts.push(text)
        self.changes += self._thoughts is not None and before != len(self._thoughts.text)
        self._held += rest
        if not self._in_calls:
            self._push_text(rest)
        while self._in_calls and self._push_call():
            pass

    def _push_text(self, new: str) -> None:
        """Move text before the first call from `_held` to `_text`. Sets `_in_calls` when the calls begin.

        `new`: the part of `_held` that was added.
        """
        family = self._family
        if self._answer:
            if self._held.startswith(self._answer):
                self._held, self._answer = self._held[len(self._answer) :], ""
            elif self._answer.startswith(self._held[: len(self._answer)]):
                return
            else:
                self._in_calls = True
                return
        if self._beginning is not None:
            self._beginning.push(new)
            self._in_calls = self._beginning.is_found
            if self._in_calls or not self._beginning.is_known:
                return
            at = end = len(self._held)
        else:
            at = self._held.find(family.trigger)
            self._in_calls = at >= 0
            end = at = len(self._held) if at < 0 else at
            if self._in_calls:
                end = len(self._held[:at].removesuffix(family.lead))
            else:
                at = end = at - max(begun(self._held, one) for one in (family.trigger, family.lead + family.trigger))
        self._text, self._held = self._text + self._held[:end], self._held[at:]
        self.changes += bool(end)

    def _push_call(self) -> bool:
        """Read arguments, or the name of the next call, from `_held`.

        Returns True if a part of a call was read: the method must then be called again. False: more text is needed.
        """
        notation = self._notation
        if notation is None:
            self._held = ""
            return False
        if self._reader is not None:
            before = self._reader.changes
            self._held = self._held[self._reader.push(self._held) :]
            self.changes += self._reader.changes != before and not self._in_pairs
            if not self._reader.is_closed:
                return False
            if not self._in_pairs:
                self._calls[-1]["arguments"] = self._reader.root
            self._reader = None
        if self._value is None:
            self._held = self._held.lstrip()
        if self._in_pairs and (done := self._push_pair(notation)) is not None:
            return done
        found = (notation.next if self._calls else notation.first).match(self._held)
        if found is None:
            return False
        self._calls.append({"name": found[1], "arguments": None})
        self._held = self._held[found.end() :]
        self._in_pairs = self._family.arguments == "pairs"
        if not self._in_pairs:
            self._reader = PartialReader(lambda key, value: None, parse_float=read_float)
        self.changes += 1
        return True

    def _push_pair(self, notation: _Notation) -> bool | None:
        """Read the beginning of a pair, or its end. Returns as `_push_call`, and None if no pair begins here."""
        end = self._family.pair[2].strip() or self._family.pair[2]
        if self._value is None:
            found = notation.pair.match(self._held)
            if found is None:
                return None
            self._held, self._searched = self._held[found.end() :], 0
            self._value = "text" if self._source.is_text(self._calls[-1]["name"], found[1]) else "json"
            return True
        if self._value == "json" and self._held[:1] in ("{", "["):
            self._reader, self._value = PartialReader(lambda key, value: None), "text"
            return True
        at = self._held.find(end, self._searched)
        if at < 0:
            self._searched = max(0, len(self._held) - len(end))
            return False
        self._held, self._value = self._held[at + len(end) :], None
        return True

    def finish(self) -> None:
        try:
            found = self._source.found("".join(self._read))
        except ConstraintError:  # the caller reports the error: it parses the text, too
            return
        if self._thoughts is not None:
            self._thoughts.text = found.reasoning
        self._text, self._reader = found.text, None
        self._calls = [{"name": name, "arguments": _as_json(arguments)} for name, arguments, _ in found.calls]
        self.changes += 1

    @property
    def data(self) -> dict[str, Any]:
        calls = [dict(call) for call in self._calls]
        if self._reader is not None and not self._in_pairs:
            calls[-1]["arguments"] = self._reader.snapshot()
        reasoning = "" if self._thoughts is None else self._thoughts.text
        return {"text": self._text, "reasoning": reasoning, "calls": calls}

    @property
    def fields(self) -> dict[str, Any]:
        return self.data


def _as_json(arguments: Any) -> Any:
    """Return the arguments of a call. A str that is the JSON text of an object becomes this object."""
    if isinstance(arguments, str):
        with suppress(ValueError, ConstraintError):
            arguments = one if isinstance(one := loads(arguments, **NUMBERS), dict) else arguments
    return plain_json(arguments)
