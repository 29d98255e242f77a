"""Limits the size of a type: the number of types in it.

A type that occurs twice counts twice. A class counts as one, whatever fields it has.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from typing import Any

from guideway.errors import LimitExceededError

__all__ = ["MAX_TYPES", "check_size"]

MAX_TYPES = 20_000
"""The maximum number of types in a type.

Pydantic reads each occurrence of a type. So repeated assignments of `t = tuple[t, t]` would take it exponential time.
"""


def check_size(annotation: Any) -> None:
    """Check the size of a type.

    The types of the fields of a dataclass or `TypedDict` are checked separately.

    Raises:
        LimitExceededError: There are more than `MAX_TYPES`.
    """
    sizes: dict[int, int] = {}  # sizes by the identity of a type
    todo: list[tuple[Any, list[Any] | None]] = [(annotation, None)]
    held: list[Any] = []  # keeps the types alive, so that their identities in `sizes` stay valid
    while todo:
        one, parts = todo.pop()
        if parts is None:
            if id(one) in sizes:
                continue
            parts = _parts(one)
            held += (one, parts)
            sizes[id(one)] = 1
            if typing.get_origin(one) is not None:  # for a class the size stays 1, because Pydantic reads it once
                todo.append((one, parts))
            todo += [(part, None) for part in parts]
        else:
            sizes[id(one)] = 1 + sum(sizes[id(part)] for part in parts)
        if sizes[id(one)] > MAX_TYPES:
            raise LimitExceededError(
                f"the type has more than {MAX_TYPES:,} types in it, where each occurrence counts; use a model for parts"
                " that occur several times"
            )


def _parts(annotation: Any) -> list[Any]:
    """Return the arguments of a type, or the types of the fields of a dataclass or `TypedDict`.

    The result is empty for models of Pydantic, which has read their fields when the class was created.
    """
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return []
    if origin is typing.Annotated:
        return [annotation.__origin__]
    if origin is not None:
        found = typing.get_args(annotation)
        return [part for one in found for part in (one if isinstance(one, list) else [one])]
    if isinstance(annotation, type) and (dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation)):
        try:
            return list(inspect.get_annotations(annotation, eval_str=True).values())
        except Exception:  # an error in an annotation: Pydantic reports it later
            return []
    return []
