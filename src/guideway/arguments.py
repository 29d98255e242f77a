"""Checks of arguments, and the texts of values in messages."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["first_line", "integer", "short_list", "short_repr", "shortened"]

_TYPES: tuple[Any, ...] = (str, bytes, bytearray, int, dict, list, tuple, set, frozenset, deque)
"""The types whose values `short_repr` shows in pieces."""


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
    of any size and depth, and for objects of a subclass that does not define `__repr__`. For other objects, an error of
    their `__repr__` is ignored: the text then names the type.

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


def shortened(text: str, most: int = 400) -> str:
    """Return a text for a message: its first `most` characters, and "…" if it is longer."""
    return text if len(text) <= most else text[:most] + "…"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, `shortened`; the name of its class if it has no message."""
    return shortened(next(iter(str(error).splitlines()), "") or type(error).__name__)


def short_list(names: Iterable[str], most: int = 400) -> str:
    """Return names for a message, separated by ", ". "…" is in the place of names after `most` characters.

    A name of more than 80 characters is shortened.
    """
    made = ""
    for name in names:
        if len(made) > most:
            return made + ", …"
        made += (made and ", ") + shortened(name, 80)
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
    name = _name_of(kind)
    try:
        base = next((one for one in _TYPES if issubclass(kind, one) and kind.__repr__ is one.__repr__), None)
        if base is None:
            return repr(value), None, ""
        return _opened_as(base, name, value, most)
    except Exception:  # of foreign code, or RecursionError
        return f"<{name}>", None, ""


def _opened_as(base: Any, name: str, value: Any, most: int) -> tuple[str, Iterator[Any] | None, str]:
    """Return the texts and parts of a value whose `__repr__` is that of `base`, a member of `_TYPES`.

    The methods of `base` are called, because a subclass can define others. `name`: the name of the value's type.
    """
    if base is int:
        bits = int.bit_length(value)
        return (int.__repr__(value) if bits <= 4 * most else f"an int of {bits:,} bits"), None, ""
    if base is str or base is bytes:
        return repr(base.__getitem__(value, slice(most + 1))), None, ""
    if base is bytearray:
        return f"{name}({bytes(bytearray.__getitem__(value, slice(most + 1)))!r})", None, ""
    if base is dict:
        return "{", _separated(dict.items(value), pairs=True), "}"
    parts = _separated(base.__iter__(value))
    if base is list:
        return "[", parts, "]"
    if base is tuple:
        return "(", parts, ",)" if tuple.__len__(value) == 1 else ")"
    if base is deque:
        longest = deque.maxlen.__get__(value)
        return f"{name}([", parts, "])" if longest is None else f"], maxlen={longest})"
    if not base.__len__(value):
        return f"{name}()", None, ""
    return ("{", parts, "}") if type(value) is set else (f"{name}({{", parts, "})")


def _name_of(kind: type) -> str:
    """Return the name of a type, even if its metaclass defines `__name__`."""
    return str(type.__dict__["__name__"].__get__(kind))


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
