"""The cache of rows that run together, as the library has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from transformers import DynamicCache

__all__ = ["Batch"]


class Batch(DynamicCache):  # type: ignore[misc]  # the library has no types
    """Rows that run together, as the library has them. `tip`: how many tokens have run."""

    def __init__(self, layers: Iterable[tuple[Any, Any]] = (), length: int = 0) -> None:
        super().__init__()
        self.tip = length
        for index, (keys, values) in enumerate(layers):
            self.update(keys, values, index)

    def pairs(self) -> list[tuple[Any, Any]]:
        """Keys and values per layer."""
        return [(layer.keys, layer.values) for layer in self.layers]

    def go_on(self) -> Batch:
        """Itself, as it was when it last ran: a run that failed may have gone further."""
        for layer in self.layers:
            if (beyond := layer.get_seq_length() - self.tip) > 0:
                layer.crop(-beyond)
        return self
