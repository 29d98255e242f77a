"""Incremental JSON: the complete parts of a text that is still being written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

__all__ = ["PartialReader"]

_SPACE = re.compile(r"[ \t\r\n,:]*")
_IN_STRING = re.compile(r'[^"\\]*')
_IN_SCALAR = re.compile(r"[^,\]} \t\r\n]*")
_WHOLE = re.compile(  # the part of a string without an incomplete escape or half of a surrogate pair at its end
    r"(?:[^\\]+|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4})*"
)


class PartialReader:
    """Parses a JSON text incrementally, in linear time. Strings grow; other scalars count once they are complete.

    The text must be JSON: the syntax is not checked. Text after the value is ignored if the value is an array or object.

    Args:
        on_entry: Called with key and value of each complete entry of the outermost object.

    Attributes:
        root: All complete values so far, with containers and strings that are still open. None before any input.
        changes: Number of values that began, grew or ended.
        is_closed: Whether an outermost array or object has ended.
    """

    def __init__(self, on_entry: Callable[[str, Any], None]) -> None:
        self._on_entry = on_entry
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []
        self._scalar: list[str] = []  # the parts of an incomplete scalar
        self._grown = ""  # the decoded beginning of an incomplete string
        self._rest = ""  # its end that is not decoded yet
        self._is_placed = False  # whether the incomplete string is in its container
        self.is_closed = False
        self._escaped = False  # whether the last character of an incomplete string is an unpaired backslash
        self.root: Any = None
        self.changes = 0

    def push(self, text: str) -> int:
        """Read the next part of the text, up to the end of the value. Returns the number of characters that were read."""
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
        """Return the root as a value that later input does not change. Containers that have ended are shared."""
        copies: list[Any] = [one.copy() for one in self._open]
        for parent, child, key in zip(copies, copies[1:], self._keys, strict=False):
            if isinstance(parent, list):
                parent[-1] = child
            elif key is not None:
                parent[key] = child
        return copies[0] if copies else self.root

    def finish(self) -> None:
        """Signal the end of the text, which completes a number at the top level."""
        if self._scalar:
            self._complete()

    def _in_string(self, text: str, at: int) -> int:
        """Read characters of a string. Returns the offset after them."""
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
        """Show the beginning of an incomplete string, unless it is a key."""
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
        """Put a value into the open container, in place of its incomplete beginning."""
        if not self._open:
            self.root = value
        elif isinstance(container := self._open[-1], list):
            container[len(container) - self._is_placed :] = [value]
        elif (key := self._keys[-1]) is not None:
            container[key] = value
        self._is_placed = True

    def _in_scalar(self, text: str, at: int) -> int:
        """Read characters of another scalar. Returns the offset after them."""
        end = _end(_IN_SCALAR, text, at)
        self._scalar.append(text[at:end])
        if end < len(text):
            self._complete()
        return end

    def _complete(self) -> None:
        value = json.loads("".join(self._scalar))
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
