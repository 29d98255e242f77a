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


class PartialReader:
    """Parses a JSON text incrementally, in linear time. Scalars count once they are complete.

    The text must be JSON: the syntax is not checked.

    Args:
        on_entry: Called with key and value of each complete entry of the outermost object.

    Attributes:
        root: All complete values so far, with containers that are still open. None before any input.
        changes: Number of values that began or ended.
    """

    def __init__(self, on_entry: Callable[[str, Any], None]) -> None:
        self._on_entry = on_entry
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []
        self._scalar: list[str] = []  # the parts of an incomplete scalar
        self._escaped = False  # whether the last character of an incomplete string is an unpaired backslash
        self.root: Any = None
        self.changes = 0

    def push(self, text: str) -> None:
        """Continue with the next part of the text."""
        at, size = 0, len(text)
        while at < size:
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
        return at

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
        self.changes += 1

    def _put(self, value: Any, *, whole: bool = True) -> None:
        self.changes += 1
        if not self._open:
            self.root = value
            return
        container = self._open[-1]
        if isinstance(container, list):
            container.append(value)
            return
        key = self._keys[-1]
        if key is not None:
            container[key] = value
            if whole and len(self._open) > 1:
                self._keys[-1] = None

    def _entry_ended(self, value: Any) -> None:
        key, self._keys[-1] = self._keys[-1], None
        if key is not None:
            self._on_entry(key, value)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()
