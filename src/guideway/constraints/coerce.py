"""`of`: whatever a user may pass as a constraint, as a `Constraint`."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from typing import Any, TypeVar, overload

from guideway._kernel import Automaton, Matcher
from guideway.constraints.base import Constraint
from guideway.constraints.json_schema import JsonSchema
from guideway.constraints.python_types import PythonType
from guideway.constraints.regex import Regex
from guideway.errors import InvalidConstraintError
from guideway.frontends.json_schema.keywords import KEYWORDS, NOTES

__all__ = ["of"]

T = TypeVar("T")

_NO_TYPES = (types.BuiltinFunctionType, types.ModuleType)


@overload
def of(constraint: Constraint[T]) -> Constraint[T]: ...
@overload
def of(constraint: type[T]) -> Constraint[T]: ...
@overload
def of(constraint: object) -> Constraint[Any]: ...
def of(constraint: object) -> Constraint[Any]:
    """A source as it is; a mapping as a JSON Schema (refused where it has no keyword of one); a compiled pattern as a
    `Regex`; everything else as a Python type (a function: its arguments).
    """
    if isinstance(constraint, Constraint):
        return constraint
    if isinstance(constraint, Mapping):
        if constraint and not any(name in KEYWORDS or name in NOTES for name in constraint):
            raise InvalidConstraintError(f"{_shown(constraint)} has no keyword of JSON Schema; {_hint(constraint)}")
        return JsonSchema(constraint)
    if isinstance(constraint, re.Pattern):
        return Regex(constraint)
    if isinstance(constraint, (Automaton, Matcher)):
        raise InvalidConstraintError(
            "this is compiled already: pass the source that it was made of, whose values it reads"
        )
    if constraint is None or isinstance(constraint, (str, bytes, int, float, list, tuple, set, frozenset, *_NO_TYPES)):
        raise InvalidConstraintError(f"{_shown(constraint)} is not a constraint; {_hint(constraint)}")
    return PythonType(constraint)


def _hint(value: object) -> str:
    """What may have been meant."""
    shown = _shown(value)
    if isinstance(value, (list, tuple, set, frozenset)) and value and all(isinstance(one, str) for one in value):
        return f"for one of these texts, pass Choice({shown})"
    if isinstance(value, Mapping):
        return f'for an object with these keys, pass {{"properties": …}}; for any value, JsonSchema({shown})'
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return "for the schema that this text is, pass JsonSchema(text)"
    if isinstance(value, str):
        return f"for this text alone, pass Choice([{shown}]); for a pattern, Regex({shown})"
    return "pass a source such as Regex(…), Choice([…]) or JsonSchema({…}), a JSON Schema as a dict, or a Python type"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
