"""How nodes and expressions are written down: values that nobody changes once they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

__all__ = ["value"]

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def value(cls: type[T]) -> type[T]:
        """A dataclass with slots that is equal and hashed by its content, and frozen for those who check types.

        At run time it is not: setting the fields of a frozen one takes three times as long, and thousands are made.
        """
else:
    value = dataclass(slots=True, unsafe_hash=True)
