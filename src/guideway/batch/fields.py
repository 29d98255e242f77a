"""Checks of request fields.

Each check is a function of a value and of its path `param`. It returns the value, or raises `InvalidRequestError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guideway._kernel import nests_deeper
from guideway.arguments import short_repr
from guideway.errors import InvalidRequestError

__all__ = [
    "COUNT",
    "SAMPLING",
    "boolean_field",
    "check_repeated",
    "integer_field",
    "invalid_field",
    "list_field",
    "number_field",
    "object_field",
    "string_field",
    "strings_field",
    "token_ids_field",
]

MAX_REPEATED_DEPTH = 256
"""The maximum nesting depth of a field that a result line repeats, because the encoder of the line is recursive."""


def invalid_field(param: str, expected: str, value: object) -> InvalidRequestError:
    """Return the error of a field with a wrong value. `expected`: a description of valid values."""
    return InvalidRequestError(f"{param!r} must be {expected}, got {short_repr(value)}", param, "invalid_type")


def check_repeated(value: Any, param: str) -> None:
    """Raise `InvalidRequestError` if a field that the result line repeats is nested deeper than `MAX_REPEATED_DEPTH`."""
    if nests_deeper(value, MAX_REPEATED_DEPTH):
        raise InvalidRequestError(
            f"{param!r} is nested deeper than {MAX_REPEATED_DEPTH} levels, the limit for fields that the result repeats",
            param,
            "nested_too_deeply",
        )


def string_field(value: Any, param: str) -> str:
    """Check that a value is a string."""
    if not isinstance(value, str):
        raise invalid_field(param, "a string", value)
    return value


def boolean_field(value: Any, param: str) -> bool:
    """Check that a value is a boolean."""
    if not isinstance(value, bool):
        raise invalid_field(param, "a boolean", value)
    return value


def object_field(value: Any, param: str) -> dict[str, Any]:
    """Check that a value is an object (a dict)."""
    if not isinstance(value, dict):
        raise invalid_field(param, "an object", value)
    return value


def list_field(value: Any, param: str) -> list[Any]:
    """Check that a value is a list."""
    if not isinstance(value, list):
        raise invalid_field(param, "a list", value)
    return value


def integer_field(least: int, most: int = 2**63 - 1) -> Callable[[Any, str], int]:
    """Return a check that a value is an integer from `least` to `most`."""

    def check(value: Any, param: str) -> int:
        if type(value) is not int or not least <= value <= most:
            raise invalid_field(param, f"an integer from {least} to {most}", value)
        return value

    return check


def number_field(least: float, most: float) -> Callable[[Any, str], float]:
    """Return a check that a value is a number from `least` to `most`. It returns a float."""

    def check(value: Any, param: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise invalid_field(param, f"a number from {least} to {most}", value)
        return float(value)

    return check


def strings_field(value: Any, param: str) -> list[str]:
    """Check that a value is a non-empty string or a list of them. A string is returned as a list."""
    found = [value] if isinstance(value, str) else list_field(value, param)
    for number, one in enumerate(found):
        if not string_field(one, f"{param}[{number}]"):
            raise invalid_field(f"{param}[{number}]", "a string that is not empty", one)
    return found


def token_ids_field(value: Any, param: str) -> list[int]:
    """Check that a value is a list of token ids: integers that are not negative."""
    return [integer_field(0)(one, f"{param}[{number}]") for number, one in enumerate(list_field(value, param))]


def _bias_field(value: Any, param: str) -> dict[int, float]:
    found = {}
    for name, bias in object_field(value, param).items():
        if not (name.isascii() and name.isdigit() and len(name) < 10):
            raise invalid_field(param, "an object whose keys are token ids", name)
        found[int(name)] = number_field(-100, 100)(bias, f"{param}.{name}")
    return found


COUNT = integer_field(1)
"""Checks that a value is a positive integer."""

SAMPLING: dict[str, Callable[[Any, str], Any]] = {
    "temperature": number_field(0, 1000),
    "top_p": number_field(0, 1),
    "top_k": integer_field(-1),
    "min_p": number_field(0, 1),
    "presence_penalty": number_field(-2, 2),
    "frequency_penalty": number_field(-2, 2),
    "repetition_penalty": number_field(1e-3, 1000),
    "logit_bias": _bias_field,
    "seed": integer_field(-(2**63)),
    "stop": strings_field,
    "stop_token_ids": token_ids_field,
    "bad_words": strings_field,
    "token_healing": boolean_field,
    "min_tokens": integer_field(0),
}
"""By name: the checks of fields that have the meaning of the generation option or the `Sampler` field of this name."""
