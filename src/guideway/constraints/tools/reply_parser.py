"""Parses replies of models: text, reasoning and tool calls.

The notations are those of `families.py`. The parser accepts more than the grammar: any white space between parts, any
JSON spelling and key order, "arguments" and "parameters" as synonyms, "functions." before the name of a tool, missing
end markers, and text between and after calls if the family has a `trigger`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from guideway.arguments import short_repr
from guideway.constraints.tools.families import NAME_KEY, Family
from guideway.constraints.tools.python_calls import read_calls
from guideway.errors import ConstraintError, InvalidTextError
from guideway.jsontext.decoder import decode_prefix
from guideway.jsontext.numbers import read_int, written_float

__all__ = ["NUMBERS", "Found", "read"]

_SPACE = re.compile(r"\s*")
_ARGUMENTS = ("arguments", "parameters")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NAMESPACE = "functions."
_LEADS = ("<|python_tag|>", "<|python_start|>")
_ID = re.compile(r"[A-Za-z0-9]+")
_END_MARKERS = (
    *(f"<|{name}|>" for name in ("im_end", "eot_id", "eom_id", "eot", "endoftext", "observation", "python_end")),
    "</s>",
    "<｜end▁of▁sentence｜>",
)
_CLOSED = re.compile(r"<\|(?:call|end)\|>")
_ENDED = re.compile(r"<\|(?:end|return)\|>")
_CHANNEL = re.compile(r"<\|channel\|>(\w+)")
_RECEIVER = re.compile(r"to=([^\s<]+)")
_KIND = re.compile(r"[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")


def _no_constant(text: str) -> NoReturn:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError(f"{text} is not JSON")


NUMBERS: dict[str, Any] = {"parse_constant": _no_constant, "parse_float": written_float, "parse_int": read_int}
"""Arguments of `loads` for the arguments of calls, which are checked with all digits of their numbers."""


@dataclass
class Found:
    """The parts of a reply. A call is (name, arguments, id); names and arguments are not checked.

    Numbers with a fraction or an exponent are results of `written_float`.
    """

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Any, str]] = field(default_factory=list)


def read(
    family: Family,
    text: str,
    names: Collection[str],
    is_text: Callable[[str, str], bool],
    fits: Callable[[str], bool],
) -> Found:
    """Parse a reply.

    Args:
        family: The notation.
        text: The reply.
        names: The names of the tools. A name in the reply that is not one of them may still be in `Found.calls`.
        is_text: Is called with the names of a tool and of an argument. Returns True if the value of the argument is
            written as text without quotes, and False if it is JSON.
        fits: Returns whether the grammar allows a text as a reply without reasoning.

    Raises:
        InvalidTextError: A call cannot be parsed, text follows the calls of a family without a `trigger`, or a part of
            a Harmony reply is not a message.
    """
    if family.answer:
        return _channels(text, names)
    found = Found()
    if family.thoughts is not None and (inside := _between(text, *family.thoughts)) is not None:
        reasoning, rest = inside
        calls = family.trigger in reasoning if family.trigger else re.match(family.begins, text)
        if not calls or fits(rest) or not fits(text):  # else the end of the reasoning is in an argument of a call
            found.reasoning, text = reasoning, rest
    _Calls(family, text, found, names, is_text).run()
    return found


def _between(text: str, before: str, after: str) -> tuple[str, str] | None:
    start = _space(text, 0) if before else 0
    if not text.startswith(before, start) or (end := text.find(after, start + len(before))) < 0:
        return None
    return text[start + len(before) : end], text[end + len(after) :]


def _without_end_markers(text: str) -> str:
    """Return the text without white space and end-of-turn markers at its end."""
    text = text.rstrip()
    while (marker := next(filter(text.endswith, _END_MARKERS), None)) is not None:
        text = text[: -len(marker)]
    return text.rstrip()


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _fail(text: str, at: int, what: str) -> NoReturn:
    raise InvalidTextError(f"expected {what} at character {at}, found {text[at : at + 40]!r}")


class _Calls:
    """Parses the text and the calls of a reply into `found`. `at` is the position in the reply."""

    def __init__(
        self, family: Family, text: str, found: Found, names: Collection[str], is_text: Callable[[str, str], bool]
    ) -> None:
        self.family, self.text, self.found, self.names, self.is_text, self.at = family, text, found, names, is_text, 0
        self._parts = re.compile("(" + ("|".join(map(re.escape, family.special)) or "(?!)") + r")|\s+")

    def run(self) -> None:
        """Parse the whole reply."""
        family, text = self.family, self.text
        start = text.find(family.trigger) if family.trigger else 0 if re.match(family.begins, text) else -1
        if start < 0:
            self.found.text = text
            return
        self.at = start
        if not family.trigger and not any(map(self._skip, filter(None, (*_LEADS, family.lead)))):
            self.at = start
        outside = [text[:start].removesuffix(family.lead)]
        while True:
            self._group()
            again = text.find(family.trigger, self.at) if family.trigger else -1
            outside.append(text[self.at : len(text) if again < 0 else again])
            if again < 0:
                break
            self.at = again
        outside[-1] = _without_end_markers(outside[-1])
        if not family.trigger and outside[-1]:
            _fail(text, self.at, "the end of the reply")
        self.found.text = outside[0] + "".join(one for one in outside[1:] if one.strip())

    def _skip(self, marker: str) -> bool:
        """Read white space and a marker. Returns False, and reads nothing, if the marker does not come next.

        White space in the marker matches any white space.
        """
        at = _space(self.text, self.at)
        for part in filter(None, self._parts.split(marker)):
            at = _space(self.text, at)
            if not self.text.startswith(part, at):
                return False
            at += len(part)
        self.at = at
        return True

    def _need(self, marker: str) -> None:
        if not self._skip(marker):
            _fail(self.text, self.at, repr(marker.strip()))

    def _skip_end(self, marker: str) -> None:
        """Read an end marker if it comes next. White space after a call is not read without a marker."""
        if marker.strip():
            self._skip(marker)

    def _group(self) -> None:
        """Parse the calls that are written together: one call, or all calls up to `closing` or the end of the list."""
        family = self.family
        if family.arguments == "python":
            self._python()
            return
        head = family.prefix.partition(NAME_KEY)[0]
        is_list = family.prefix == NAME_KEY and family.suffix == "}" and family.separator.strip() == ","
        listed = is_list and family.opening.endswith("[") and family.closing.startswith("]")
        self._need(family.opening[:-1] if listed else family.opening)
        if family.is_object:
            self._objects(head, family.suffix.partition("}")[2])
        else:
            self._need(head)
            self._named()
            while self._begins_again(head):
                self._named()
        self._skip_end(family.closing[1:] if listed else family.closing)

    def _begins_again(self, head: str) -> bool:
        """Read the separator and the beginning `head` of another call.

        Returns False, and reads nothing, if no other call comes next. Raises `InvalidTextError` if neither a call nor
        `closing` follows a separator.
        """
        family, before = self.family, self.at
        separator, closing = family.separator.strip(), family.closing.strip() or "\0"
        separated = bool(separator) and self._skip(separator)
        if (separated or not separator) and self._skip(head):
            start = _space(self.text, self.at)
            is_value = self.text.startswith(("{", "["), start) and not self.text.startswith(closing, start)
            if is_value if family.is_object else self._name(start):
                return True
        if separated and not self.text.startswith(closing, _space(self.text, before)):
            _fail(self.text, self.at, "a call")
        self.at = before
        return False

    # A JSON object with name and arguments, or a list of such objects.

    def _objects(self, head: str, tail: str) -> None:
        self._skip(head)
        while True:
            value = self._json()
            for one in value if isinstance(value, list) else [value]:
                self._object(one)
            self._skip_end(tail)
            if not self._begins_again(head):
                break

    def _object(self, value: Any) -> None:
        inner = value.get("function", value) if isinstance(value, dict) else None
        inner = value if isinstance(inner, str) else inner
        if not isinstance(inner, dict):
            raise InvalidTextError(f"expected a JSON object with a tool name, found {short_repr(value)}")
        name = inner.get("name", inner.get("function"))
        key = next((key for key in _ARGUMENTS if key in inner), None)
        if not isinstance(name, str):
            raise InvalidTextError(f"expected a tool name in the call, found {short_repr(value)}")
        arguments = inner[key] if key is not None else {}
        call_id = value.get("id", "")
        self._call(name, arguments, call_id if isinstance(call_id, str) else "")

    def _json(self) -> Any:
        at = _space(self.text, self.at)
        try:
            value, self.at = decode_prefix(self.text, at, **NUMBERS)
        except (ValueError, ConstraintError):
            _fail(self.text, at, "JSON")
        return value

    def _call(self, name: str, arguments: Any, call_id: str = "") -> None:
        self.found.calls.append((name, arguments, call_id))

    # A name followed by its arguments.

    def _name(self, at: int) -> re.Match[str] | None:
        """Match the name of a tool and what comes after it: an id or the text before the arguments."""
        found = _NAME.match(self.text, at)
        if found is None:
            return None
        before, self.at = self.at, found.end()
        after = (self.family.middle, *(self.family.call_id or ())[:1])
        follows = self.family.arguments == "pairs" or any(map(self._skip, after))
        self.at = before
        return found if follows else None

    def _named(self) -> None:
        family, call_id = self.family, ""
        found = _NAME.match(self.text, at := _space(self.text, self.at))
        if found is None:
            _fail(self.text, at, "the name of a tool")
        name = found[0] if found[0] in self.names else found[0].removeprefix(_NAMESPACE)
        self.at = found.end()
        if family.call_id is not None and self._skip(family.call_id[0]):
            given = _ID.match(self.text, self.at)
            if given is None:
                _fail(self.text, self.at, "the id of a call")
            call_id, self.at = given[0], given.end()
            self._need(family.call_id[1])
        if family.arguments == "pairs":
            self._skip(family.middle)
            arguments: Any = dict(self._pairs(name))
        else:
            self._need(family.middle)
            arguments = self._json()
        self._skip_end(family.suffix)
        self._call(name, arguments, call_id)

    def _pairs(self, tool: str) -> Iterator[tuple[str, Any]]:
        before, between, after = self.family.pair
        key_end = between.strip().partition("\n")[0] or between
        gap = between.partition(key_end)[2]
        end_mark = after.strip() or after
        line, last = between[len(between.rstrip()) :], after[: len(after) - len(after.lstrip())]
        # Without a text before a key, another key comes next if a name and the text after it do.
        named = None if before.strip() else re.compile(r"\s*[A-Za-z0-9_.-]+\s*" + re.escape(key_end))
        while self._skip(before) if named is None else named.match(self.text, self.at):
            if (end := self.text.find(key_end, self.at)) < 0:
                _fail(self.text, self.at, repr(key_end))
            key, self.at = self.text[self.at : end].strip(), end + len(key_end)
            if gap.strip():
                self._need(gap)
            if self.is_text(tool, key):
                if (end := self.text.find(end_mark, self.at)) < 0:
                    _fail(self.text, self.at, repr(end_mark))
                value, self.at = self.text[self.at : end], end
                yield key, value.removeprefix(line).removesuffix(last if last != after else "")
            else:
                yield key, self._json()
            self._need(end_mark)

    # Python notation.

    def _python(self) -> None:
        text = _without_end_markers(self.text[self.at :]).strip()
        try:
            calls = read_calls(text)
        except ValueError:
            _fail(self.text, self.at, "calls in Python notation with keyword arguments only")
        for name, arguments in calls:
            self._call(name, arguments)
        self.at = len(self.text)


# Harmony: messages in channels.


def _channels(text: str, names: Collection[str]) -> Found:
    """Parse Harmony messages, in linear time.

    A message with a receiver (`to=…`) is a call of the tool with this name, which is usually written after "functions.".
    Messages in the channel `analysis` are reasoning, and all others are text.
    """
    found = Found()
    reasoning: list[str] = []
    answer: list[str] = []
    at = 0
    while at < len(text):
        header = _header(text, at)
        if header is None:
            if text[at:].strip() in ("", "<|end|>", "<|return|>"):
                break
            _fail(text, at, "a message: '<|channel|>…<|message|>'")
        receiver, channel, at = header
        if receiver:
            try:
                arguments, at = decode_prefix(text, _space(text, at), **NUMBERS)
            except (ValueError, ConstraintError):
                _fail(text, at, "JSON")
            name = receiver.removeprefix(_NAMESPACE)
            found.calls.append((receiver if receiver in names and name not in names else name, arguments, ""))
            end = _CLOSED.match(text, _space(text, at))
            at = at if end is None else end.end()
            continue
        ends = _ENDED.search(text, at)
        body = text[at : len(text) if ends is None else ends.start()]
        at = len(text) if ends is None else ends.end()
        (reasoning if channel == "analysis" else answer).append(body)
    found.reasoning, found.text = "".join(reasoning), "".join(answer)
    return found


def _header(text: str, at: int) -> tuple[str, str, int] | None:
    """Return the receiver of a message ("": it has none), its channel, and the index where its body begins.

    None: no message begins at the index `at`.
    """
    receiver = ""
    for marker in ("<|end|>", "<|start|>assistant"):
        after = _space(text, at)
        at = after + len(marker) if text.startswith(marker, after) else at
    at = _space(text, at)
    if text.startswith("to=", at):
        end = text.find("<|channel|>", at)
        receiver, at = text[at + len("to=") : end].rstrip(), end
        if end < 0 or not receiver or any(char.isspace() for char in receiver):
            return None
    channel = _CHANNEL.match(text, at)
    if channel is None:
        return None
    to = _RECEIVER.match(text, _space(text, channel.end()))
    kind = _KIND.match(text, channel.end() if to is None else to.end())
    if kind is None:
        return None
    return (receiver if to is None else to[1]), channel[1], kind.end()
