"""`PartialReader`: the value of the beginning of a JSON text that is still being written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from guideway.jsontext.numbers import read_int

__all__ = ["PartialReader"]

_SPACE = re.compile(r"[ \t\r\n,:]*")
_IN_STRING = re.compile(r'[^"\\]*')
_IN_SCALAR = re.compile(r"[^,\]} \t\r\n]*")
_WHOLE = re.compile(  # the part of a string without an incomplete escape or half of a surrogate pair at its end
    r"(?:[^\\]+|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?=[^\\]|\\[^u]|\\u[^dD]|\\u[dD][^c-fC-F])))*"
)


class PartialReader:
    """Parses a JSON text piece by piece, in linear time.

    An incomplete string is part of the value with the characters so far. An incomplete number or word (true, false,
    null) is not part of it. The text must be JSON; this is not checked. Text after an array or object is not read.

    Args:
        on_entry: Is called with key and value of each complete entry of the outermost object.
        parse_float: Returns the value of a number with a fraction or an exponent.

    Attributes:
        root: The value so far, with arrays, objects and strings that are still open. None before any value.
        changes: A count that increases whenever `root` changes, or an array or object in it ends.
        is_closed: Whether an outermost array or object has ended.
    """

    def __init__(self, on_entry: Callable[[str, Any], None], *, parse_float: Callable[[str], Any] = float) -> None:
        self._on_entry, self._parse_float = on_entry, parse_float
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []
        self._scalar: list[str] = []  # the parts of an incomplete scalar
        self._grown = ""  # the decoded characters of an incomplete string
        self._rest = ""  # the end of an incomplete string that cannot be decoded yet, such as half of an escape
        self._is_placed = False  # whether the incomplete string is in its container
        self.is_closed = False
        self._escaped = False  # whether the last character of an incomplete string is an unpaired backslash
        self.root: Any = None
        self.changes = 0

    def push(self, text: str) -> int:
        """Read the next piece of the text, at most to the end of an outermost array or object.

        Returns the number of characters that were read.
        """
        at, size = 0, len(text)
        while at < size and not self.is_closed:
            if self._scalar:
                string = self._scalar[0][0] == '"'
                at = self._in_string(text, at) if string else self._in_scalar(text, at)
                continue
            char = text[at]
            if char in "{[":
                self._begin({} if char == "{" else [])
            elif char in "}]":
                self._end()
            elif char in " \t\r\n,:":
                at = _end(_SPACE, text, at)
                continue
            else:
                self._scalar.append(char)
            at += 1
        return at

    def snapshot(self) -> Any:
        """Return a copy of `root` that later input does not change. Complete arrays and objects are not copied."""
        copies: list[Any] = [one.copy() for one in self._open]
        for parent, child, key in zip(copies, copies[1:], self._keys, strict=False):
            if isinstance(parent, list):
                parent[-1] = child
            elif key is not None:
                parent[key] = child
        return copies[0] if copies else self.root

    def finish(self) -> None:
        """Signal the end of the text. A number or word that is the whole text is complete only then."""
        if self._scalar:
            self._complete()

    def _in_string(self, text: str, at: int) -> int:
        """Read characters of an incomplete string. Returns the index after them."""
        start = at
        while at < len(text):
            if self._escaped:
                self._escaped, at = False, at + 1
                continue
            at = _end(_IN_STRING, text, at)
            if at < len(text):
                at += 1
                if text[at - 1] == '"':
                    self._scalar.append(text[start:at])
                    self._complete()
                    return at
                self._escaped = True
        self._scalar.append(text[start:])
        self._grow(text[start:])
        return at

    def _grow(self, more: str) -> None:
        """Add characters to an incomplete string, and put it into `root`, unless it is a key."""
        if self._open and isinstance(self._open[-1], dict) and self._keys[-1] is None:
            return
        text = self._rest + more
        end = _end(_WHOLE, text, 0)
        self._rest = text[end:]
        self._grown += json.loads(f'"{text[:end]}"', strict=False)
        if end or not self._is_placed:
            self._place(self._grown)
            self.changes += 1

    def _place(self, value: Any) -> None:
        """Put a value into the innermost open array or object, in place of its beginning if that is there."""
        if not self._open:
            self.root = value
        elif isinstance(container := self._open[-1], list):
            container[len(container) - self._is_placed :] = [value]
        elif (key := self._keys[-1]) is not None:
            container[key] = value
        self._is_placed = True

    def _in_scalar(self, text: str, at: int) -> int:
        """Read characters of an incomplete number or word. Returns the index after them."""
        end = _end(_IN_SCALAR, text, at)
        self._scalar.append(text[at:end])
        if end < len(text):
            self._complete()
        return end

    def _complete(self) -> None:
        value = json.loads("".join(self._scalar), parse_float=self._parse_float, parse_int=read_int)
        self._scalar.clear()
        self._grown = self._rest = ""
        if self._open and isinstance(self._open[-1], dict) and self._keys[-1] is None:
            self._keys[-1] = value
            return
        self._put(value)
        if len(self._open) == 1:
            self._entry_ended(value)

    def _begin(self, container: dict[str, Any] | list[Any]) -> None:
        self._put(container, whole=False)
        self._open.append(container)
        self._keys.append(None)

    def _end(self) -> None:
        ended = self._open.pop()
        self._keys.pop()
        if self._keys:
            if len(self._open) == 1:
                self._entry_ended(ended)
            self._keys[-1] = None
        self.is_closed = not self._open
        self.changes += 1

    def _put(self, value: Any, *, whole: bool = True) -> None:
        self.changes += 1
        self._place(value)
        self._is_placed = False
        if whole and len(self._open) > 1 and isinstance(self._open[-1], dict):
            self._keys[-1] = None

    def _entry_ended(self, value: Any) -> None:
        key, self._keys[-1] = self._keys[-1], None
        if key is not None:
            self._on_entry(key, value)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()
