"""The complete parts of a JSON text that is still being generated, as values of their types."""

from __future__ import annotations

import copy
import json
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
            type.
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
        self.fields[key] = copy.deepcopy(value) if adapter is None else adapter.validate_json(json.dumps(value))
