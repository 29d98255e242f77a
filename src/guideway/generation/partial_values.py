"""The complete parts of a JSON text that is still being generated, as values of their types."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

from guideway.constraints.base import Constraint
from guideway.constraints.python_types import PythonType, field_adapters
from guideway.jsontext.partial import PartialReader

__all__ = ["Progress"]


class Progress(PartialReader):
    """A `PartialReader` that also converts entries of the outermost object to their types.

    Attributes:
        data: All complete values so far, with containers that are still open.
        fields: The complete entries of the outermost object, as values of their types if the constraint is a Python
            type. An entry that the type's own validation rejects is left out.
    """

    def __init__(self, source: Constraint[Any]) -> None:
        super().__init__(self._field_ended)
        self._adapters = field_adapters(source) if isinstance(source, PythonType) else {}
        self.fields: dict[str, Any] = {}

    @property
    def data(self) -> Any:
        """A copy, which later input does not change. None before any input."""
        return copy.deepcopy(self.root)

    def _field_ended(self, key: str, value: Any) -> None:
        adapter = self._adapters.get(key)
        if adapter is None:
            self.fields[key] = copy.deepcopy(value)
            return
        with suppress(Exception):  # of the type's own validation: the error of the whole value is raised at the end
            self.fields[key] = adapter.validate_json(json.dumps(value))
