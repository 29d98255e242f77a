"""`of`: whatever a user may pass as a constraint, as a `Source`."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, TypeVar, overload

from guideway._kernel import Automaton, Matcher
from guideway.errors import InvalidConstraint

from .base import Source
from .json_schema import JsonSchema
from .python_types import PythonType

__all__ = ["of"]

T = TypeVar("T")

_NO_TYPES = (types.BuiltinFunctionType, types.ModuleType)


@overload
def of(constraint: Source[T]) -> Source[T]: ...
@overload
def of(constraint: type[T]) -> Source[T]: ...
@overload
def of(constraint: object) -> Source[Any]: ...
def of(constraint: object) -> Source[Any]:
    """A source as it is; a mapping as a JSON Schema; everything else as a Python type (a function:
    its arguments).
    """
    if isinstance(constraint, Source):
        return constraint
    if isinstance(constraint, Mapping):
        return JsonSchema(constraint)
    if isinstance(constraint, (Automaton, Matcher)):
        raise InvalidConstraint("this is compiled already: pass the source that it was made of, whose values it reads")
    if constraint is None or isinstance(constraint, (str, bytes, int, float, list, tuple, set, frozenset, *_NO_TYPES)):
        raise InvalidConstraint(
            f"{constraint!r} is not a constraint; pass a source such as Regex(…), Choice([…]) or JsonSchema({{…}}), "
            "a JSON Schema as a dict, or a Python type"
        )
    return PythonType(constraint)
