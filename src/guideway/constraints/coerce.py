"""`of`: converts schemas, patterns and types that users pass as constraints to `Constraint` objects."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from typing import Any, TypeVar, overload

from guideway._kernel import Automaton, Matcher
from guideway.arguments import short_repr
from guideway.constraints.base import Constraint, Literal
from guideway.constraints.json_schema import JsonSchema, refuse_wrapper
from guideway.constraints.python_types import PythonType
from guideway.constraints.regex import Regex
from guideway.errors import InvalidConstraintError
from guideway.frontends.json_schema.keywords import KEYWORDS, NOTES

__all__ = ["of", "source_of"]

T = TypeVar("T")

_NO_TYPES = (types.BuiltinFunctionType, types.ModuleType)


@overload
def of(constraint: Constraint[T]) -> Constraint[T]: ...
@overload
def of(constraint: type[T]) -> Constraint[T]: ...
@overload
def of(constraint: object) -> Constraint[Any]: ...
def of(constraint: object) -> Constraint[Any]:
    """Convert a value to a `Constraint`.

    Args:
        constraint: One of these:

            - a `Constraint`, which is returned;
            - a JSON Schema as a mapping, which must be empty or have at least one known keyword;
            - a compiled `re.Pattern`;
            - a Python type, or a function, whose arguments are then constrained.

    Raises:
        InvalidConstraintError: The value is none of these, or the constraint has an error.
        UnsupportedError: The constraint cannot be enforced exactly.
        LimitExceededError: The constraint is too large.
        MissingDependencyError: A type needs a package that is not installed.
    """
    if type(constraint) is JsonSchema or isinstance(constraint, Constraint):  # the first test is faster
        return constraint
    if isinstance(constraint, Mapping):
        if constraint and not any(name in KEYWORDS or name in NOTES for name in constraint):
            refuse_wrapper(constraint)
            raise InvalidConstraintError(f"{short_repr(constraint)} has no JSON Schema keyword; {_hint(constraint)}")
        return JsonSchema(constraint)
    if isinstance(constraint, re.Pattern):
        return Regex(constraint)
    if isinstance(constraint, (Automaton, Matcher)):
        raise InvalidConstraintError(
            f"got a compiled {type(constraint).__name__}; pass the constraint that it was compiled from"
        )
    if constraint is None or isinstance(constraint, (str, bytes, int, float, list, tuple, set, frozenset, *_NO_TYPES)):
        raise InvalidConstraintError(f"{short_repr(constraint)} is not a constraint; {_hint(constraint)}")
    return PythonType(constraint)


def source_of(thing: object) -> Constraint[Any]:
    """Return a str as a `Literal`, and any other value as `of` converts it."""
    return Literal(thing) if isinstance(thing, str) else of(thing)


def _hint(value: object) -> str:
    """Return the end of an error message: what to pass in place of a value that is not a constraint."""
    shown = short_repr(value)
    if isinstance(value, (list, tuple, set, frozenset)) and value and all(isinstance(one, str) for one in value):
        return f"for one of these texts, pass Choice({shown})"
    if (
        isinstance(value, (list, tuple))
        and value
        and not any(isinstance(one, (str, bytes, int, float)) for one in value)
    ):
        return (
            "to use a different constraint for each prompt, pass guideway.GenerationRequest(prompt, constraint) for each; for texts"
            " that fit one of several constraints, join them with |"
        )
    if isinstance(value, Mapping):
        return f'for an object with these keys, pass {{"properties": …}}; for any value, JsonSchema({shown})'
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return "for a JSON Schema written as text, pass JsonSchema(text)"
    if isinstance(value, str):
        return f"for this text only, pass Choice([{shown}]); for a pattern, pass Regex({shown})"
    return "pass a constraint such as Regex(…), Choice([…]) or JsonSchema({…}), a schema as a dict, or a type"
