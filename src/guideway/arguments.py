"""Checks of arguments, and the texts of values in messages."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["integer", "short_repr"]

_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    deque: ("deque([", "])"),
}


def integer(name: str, value: Any, least: int | None = None) -> int:
    """Return an argument as an int. Values with `__index__`, such as NumPy integers, are accepted.

    Args:
        name: Name of the argument, for messages.
        value: The argument.
        least: Minimum value; None: there is no minimum.

    Raises:
        TypeError: The value is not an integer.
        ValueError: The value is below `least`.
    """
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {short_repr(value)}") from None
    if least is not None and found < least:
        bound = f"be at least {least}" if least else "not be negative"
        raise ValueError(f"{name} must {bound}, got {short_repr(found)}")
    return found


def short_repr(value: Any, most: int = 80) -> str:
    """Return the beginning of `repr(value)` for a message. "…" ends it if it is not complete.

    The time and the depth of the calls are limited by `most` for nested lists, tuples, sets, dicts, str, bytes and int,
    of any size and depth. For other objects, an error of their `__repr__` is ignored: the text then names the type.

    Args:
        value: Any object.
        most: The maximum number of characters before the "…".
    """
    made = ""
    for part in _pieces(value, most):
        made += part
        if len(made) > most:
            return made[:most] + "…"
    return made


def _pieces(value: Any, most: int) -> Iterator[str]:
    """Yield `repr(value)` in pieces. The caller stops after `most` characters; each level of nesting yields some."""
    todo: list[Iterator[Any]] = [iter([value])]
    ends = [""]
    while todo:
        one = next(todo[-1], ends)
        if one is ends:
            todo.pop()
            yield ends.pop()
            continue
        if type(one) is _Separator:
            yield one
            continue
        opened, inner, closed = _opened(one, most)
        yield opened
        if inner is not None:
            todo.append(inner)
            ends.append(closed)


class _Separator(str):
    """A piece of the text between the values."""

    __slots__ = ()


def _opened(value: Any, most: int) -> tuple[str, Iterator[Any] | None, str]:
    """Return the text of a value without parts, or what begins it, its parts and what ends it."""
    kind = type(value)
    if kind is dict:
        return "{", _separated(value.items(), pairs=True), "}"
    if kind in _BRACKETS and (value or kind is list or kind is tuple):
        first, last = _BRACKETS[kind]
        if kind is tuple and len(value) == 1:
            last = ",)"
        return first, _separated(value), last
    if kind in (str, bytes, bytearray):
        return repr(value[: most + 1]), None, ""
    if kind is int and value.bit_length() > 4 * most:
        return f"an int of {value.bit_length():,} bits", None, ""
    try:
        return repr(value), None, ""
    except Exception:  # of foreign code, or RecursionError
        return f"<{kind.__name__}>", None, ""


def _separated(values: Iterable[Any], *, pairs: bool = False) -> Iterator[Any]:
    for number, one in enumerate(values):
        if number:
            yield _Separator(", ")
        if pairs:
            yield one[0]
            yield _Separator(": ")
            yield one[1]
        else:
            yield one
