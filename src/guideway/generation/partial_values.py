"""Incremental JSON: the complete parts of a text that is still being written."""

from __future__ import annotations

import copy
import json
from typing import Any

from guideway.constraints.base import Constraint
from guideway.constraints.python_types import PythonType, field_adapters

__all__ = ["Progress"]


class Progress:
    """Parses a JSON text incrementally. Strings, numbers and other scalars count once they are complete.

    The text must be JSON: the syntax is not checked.

    Attributes:
        data: All complete values so far, with containers that are still open.
        fields: The complete entries of the outermost object, as values of their types if the constraint is a Python
            type.
    """

    def __init__(self, source: Constraint[Any]) -> None:
        self._adapters = field_adapters(source) if isinstance(source, PythonType) else {}
        self._open: list[dict[str, Any] | list[Any]] = []
        self._keys: list[str | None] = []
        self._raw = ""
        self._escaped = False
        self._root: Any = None
        self.fields: dict[str, Any] = {}
        self.changes = 0
        """Filled as entries become complete."""

    @property
    def data(self) -> Any:
        """A copy, which later input does not change. None before any input."""
        return copy.deepcopy(self._root)

    def push(self, text: str) -> None:
        for char in text:
            if self._raw and self._within(char):
                continue
            if char in "{[":
                self._begin({} if char == "{" else [])
            elif char in "}]":
                self._end()
            elif char not in " \t\r\n,:":
                self._raw = char

    def finish(self) -> None:
        """Signal the end of the text, which completes a number at the top level."""
        if self._raw:
            self._scalar()

    def _within(self, char: str) -> bool:
        """Process one character of a scalar. Returns whether it belongs to the scalar."""
        if self._raw[0] != '"':
            if char not in ",]} \t\r\n":
                self._raw += char
                return True
            self._scalar()
            return False
        self._raw += char
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == '"':
            self._scalar()
        return True

    def _scalar(self) -> None:
        value, self._raw = json.loads(self._raw), ""
        if self._open and isinstance(self._open[-1], dict) and self._keys[-1] is None:
            self._keys[-1] = value
            return
        self._put(value)
        if len(self._open) == 1:
            self._field_ended(value)

    def _begin(self, container: dict[str, Any] | list[Any]) -> None:
        self._put(container, whole=False)
        self._open.append(container)
        self._keys.append(None)

    def _end(self) -> None:
        ended = self._open.pop()
        self._keys.pop()
        if self._keys:
            if len(self._open) == 1:
                self._field_ended(ended)
            self._keys[-1] = None
        self.changes += 1

    def _put(self, value: Any, *, whole: bool = True) -> None:
        self.changes += 1
        if not self._open:
            self._root = value
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

    def _field_ended(self, value: Any) -> None:
        key, self._keys[-1] = self._keys[-1], None
        if key is not None:
            adapter = self._adapters.get(key)
            self.fields[key] = copy.deepcopy(value) if adapter is None else adapter.validate_json(json.dumps(value))
