"""`value`: the dataclass decorator of nodes and expressions, which are not modified after construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

__all__ = ["value"]

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def value(cls: type[T]) -> type[T]:
        """Make a class a dataclass with slots that is compared and hashed by its content.

        Type checkers treat it as frozen. At run time it is not, because constructing frozen dataclasses takes three
        times as long.
        """
else:
    value = dataclass(slots=True, unsafe_hash=True)
