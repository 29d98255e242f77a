"""Copies JSON-like Python values as plain dicts and lists with exact numbers, without recursion."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from guideway._kernel import copy_plain, count_values
from guideway.errors import ConstraintError, InvalidConstraintError, LimitExceededError
from guideway.jsontext.numbers import MAX_DIGITS, TOO_MANY_DIGITS, WrittenFloat, bounded, read_float
from guideway.jsontext.pointer import pointer, shown

__all__ = ["LONE_SURROGATE", "MAX_C_DEPTH", "MAX_DEPTH", "MAX_VALUES", "SURROGATE", "copy_schema", "copy_value"]

MAX_VALUES = 2_000_000
"""Maximum number of values of a schema."""

UNCOUNTED_VALUES = 50_000
"""A schema with at most this number of values is copied without counting its values first."""

MAX_DEPTH = 4000
"""The maximum nesting depth of a schema. A cyclic Python value exceeds it."""

MAX_C_DEPTH = 150
"""The maximum nesting depth of values that are passed to recursive code in C, such as `json`.

Recursion to this depth needs about 40 KB of stack.
"""

SURROGATE = re.compile("[\ud800-\udfff]")
LONE_SURROGATE = "a string contains a lone surrogate, which UTF-8 cannot encode"
_NAMING = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$schema"})
_ANCHORS = frozenset({"$anchor", "$dynamicAnchor"})


def copy_schema(value: object) -> tuple[object, bool]:
    """Copy a schema as plain dicts and lists with exact numbers.

    Returns:
        The copy, and whether a subschema may have an identifier or an anchor.

    Raises:
        InvalidConstraintError: The value is not JSON-like.
        LimitExceededError: The value is too large or nested too deep, or a number has too many digits.
    """
    copied = _copied(value, UNCOUNTED_VALUES)
    if copied is None:
        _check_count(value, MAX_DEPTH)
        copied = _copied(value, MAX_VALUES)
    return (copy_value(value), True) if copied is None else copied  # None: `copy_value` copies or raises


def _copied(value: object, most: int) -> tuple[object, bool] | None:
    """Return the result of `copy_schema`; None if `copy_plain` cannot copy the value, such as above `most` values."""
    return copy_plain(value, _exact, _NAMING, _ANCHORS, most, MAX_DEPTH, 3 * MAX_DIGITS)


def _check_count(value: object, deepest: int) -> None:
    """Raise `LimitExceededError` if a value has more than `MAX_VALUES` values or contains itself.

    An object that occurs several times counts each time, because the copy contains it each time. `deepest` is used only
    in the message.
    """
    if count_values(value, MAX_VALUES) > MAX_VALUES:
        raise _too_large(deepest)


def _exact(number: object) -> int | Decimal | None:
    """Return a float or `Decimal` as an exact number; None for other types, NaN, infinity, and too many digits."""
    if type(number) is float:
        number = Decimal(repr(number))
    elif isinstance(number, WrittenFloat):
        number = Decimal(number.text)
    return bounded(number) if type(number) is Decimal and number.is_finite() else None


def copy_value(
    value: object,
    *,
    exact: bool = True,
    deepest: int = MAX_DEPTH,
    parse_float: Callable[[str], object] = read_float,
) -> object:
    """Copy a JSON-like Python value as plain dicts and lists.

    Args:
        value: The value.
        exact: True: floats become `Decimal`, by their shortest repr. False: floats and `Decimal` numbers become the
            results of `parse_float`.
        deepest: The maximum nesting depth.
        parse_float: Is called with the text of a number.

    Raises:
        InvalidConstraintError: The value is not JSON-like.
        LimitExceededError: The value is too large or nested too deep, or a number has too many digits.
    """
    _check_count(value, deepest)
    root: list[object] = [None]
    todo: list[tuple[object, dict[str, object] | list[object], str | int, _Path | None]] = [(value, root, 0, None)]
    count = 0
    while todo:
        one, box, slot, path = todo.pop()
        count += 1
        if count > MAX_VALUES or (path and path.depth > deepest):
            raise _too_large(deepest)
        if isinstance(one, Mapping):
            made: dict[str, object] = {}
            for key, inner in one.items():
                if not isinstance(key, str):
                    raise _error(InvalidConstraintError, path, f"keys must be str, got {type(key).__name__}")
                made[_text(key, path)] = None  # reserves the place of the key; the value is set later
                todo.append((inner, made, key, _Path(path, key)))
            box[slot] = made  # type: ignore[index]  # slot is a key of a dict or an index of a list
        elif isinstance(one, (list, tuple)):
            items: list[object] = [None] * len(one)
            box[slot] = items  # type: ignore[index]  # as above
            todo += ((inner, items, i, _Path(path, str(i))) for i, inner in enumerate(one))
        else:
            box[slot] = _scalar(one, path, None if exact else parse_float)  # type: ignore[index]  # as above
    return root[0]


def _too_large(deepest: int) -> LimitExceededError:
    return LimitExceededError(
        f"the JSON value has more than {MAX_VALUES:,} values or is nested deeper than {deepest} levels"
    )


class _Path:
    """The path of a value as a linked list. It is converted to a JSON Pointer only for errors."""

    __slots__ = ("before", "depth", "name")

    def __init__(self, before: _Path | None, name: str) -> None:
        self.before = before
        self.name = name
        self.depth: int = before.depth + 1 if before else 1


def _place(path: _Path | None) -> str:
    """Return the JSON Pointer of a path."""
    names = []
    while path:
        names.append(path.name)
        path = path.before
    return pointer("", *reversed(names))


def _scalar(value: object, path: _Path | None, parse_float: Callable[[str], object] | None) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(str(value), path)
    if isinstance(value, int):
        return _number(int(value), path)
    if isinstance(value, float):
        value = Decimal(value.text if isinstance(value, WrittenFloat) else repr(float(value)))
    if isinstance(value, Decimal) and value.is_finite():
        return _number(value, path) if parse_float is None else parse_float(str(value))
    found = "a number that JSON cannot write" if isinstance(value, Decimal) else f"a {type(value).__name__}"
    raise _error(InvalidConstraintError, path, f"expected a JSON value, got {found}")


def _error(kind: type[ConstraintError], path: _Path | None, message: str) -> ConstraintError:
    """Return an error of a class for a value, with its place."""
    place = _place(path)
    return kind(f"at {shown(place)}: {message}", place)


def _number(value: int | Decimal, path: _Path | None) -> int | Decimal:
    number = bounded(value)
    if number is None:
        raise _error(LimitExceededError, path, TOO_MANY_DIGITS)
    return number


def _text(text: str, path: _Path | None) -> str:
    if SURROGATE.search(text):
        raise _error(InvalidConstraintError, path, LONE_SURROGATE)
    return text
