"""Finds a JSON text with a given value that a constraint accepts, for constraints that do not allow every spelling."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

__all__ = ["MAX_DEPTH", "MAX_TRIES", "respelled"]

MAX_TRIES = 20_000
"""The maximum number of beginnings of texts that are tried."""

MAX_DEPTH = 64
"""The maximum nesting depth of a value."""


def respelled(value: Any, begins: Callable[[str], bool], fits: Callable[[str], bool]) -> str:
    """Return a spelling of a JSON value that fits; "" if none is found within `MAX_TRIES` and `MAX_DEPTH`.

    Args:
        value: The value, with floats as `Decimal`.
        begins: Returns whether a text that fits begins with the argument.
        fits: Returns whether the argument is a text that fits.
    """
    search = _Search(begins)
    for text in search.values("", value, MAX_DEPTH):
        if fits(text):
            return text
    return ""


class _Search:
    """A search over spellings: white space, the order of keys, and the notation of numbers and strings."""

    def __init__(self, begins: Callable[[str], bool]) -> None:
        self._begins = begins
        self._left = MAX_TRIES

    def values(self, start: str, value: Any, depth: int) -> Iterator[str]:
        """Yield texts that consist of `start` and a spelling of the value, and with which a text that fits begins."""
        if depth == 0:
            return
        if isinstance(value, dict):
            yield from self._filled(start, "{", "}", value, depth)
        elif isinstance(value, list):
            yield from self._filled(start, "[", "]", value, depth)
        else:
            yield from self._kept(start, _scalars(value))

    def _kept(self, start: str, options: list[str]) -> Iterator[str]:
        for option in options:
            if self._left <= 0:
                return
            self._left -= 1
            if self._begins(start + option):
                yield start + option

    def _filled(self, start: str, opening: str, closing: str, value: Any, depth: int) -> Iterator[str]:
        for begun in self._kept(start, [opening]):
            yield from self._items(begun, closing, value, True, depth)

    def _items(self, start: str, closing: str, left: Any, first: bool, depth: int) -> Iterator[str]:
        # The items of one container are added in a loop with a stack, because a container can have many items. Only
        # nested containers use recursion, at most `MAX_DEPTH` levels deep.
        todo: list[Iterator[tuple[str, Any, bool]]] = [iter([(start, left, first)])]
        while todo:
            step = next(todo[-1], None)
            if step is None:
                todo.pop()
                continue
            begun, rest, none_yet = step
            if not rest:
                yield from self._kept(begun, [closing])
            else:
                todo.append(self._next(begun, rest, none_yet, depth))

    def _next(self, start: str, left: Any, first: bool, depth: int) -> Iterator[tuple[str, Any, bool]]:
        for begun in self._kept(start, [""] if first else [", ", ","]):
            if isinstance(left, list):
                yield from ((text, left[1:], False) for text in self.values(begun, left[0], depth - 1))
                continue
            for key, value in left.items():
                rest = {name: one for name, one in left.items() if name != key}
                for named in self._kept(begun, _scalars(key)):
                    for ready in self._kept(named, [": ", ":"]):
                        yield from ((text, rest, False) for text in self.values(ready, value, depth - 1))


def _scalars(value: Any) -> list[str]:
    if isinstance(value, str):
        return list(dict.fromkeys([json.dumps(value, ensure_ascii=False), json.dumps(value)]))
    if isinstance(value, Decimal):
        whole = [str(int(value))] if value == value.to_integral_value() and abs(value) < 10**30 else []
        fixed = [format(value, "f")] if abs(value.adjusted()) < 1000 else []
        short = [one.rstrip("0").rstrip(".") for one in fixed if "." in one]
        return list(dict.fromkeys([*whole, *short, *(f"{one}.0" for one in whole), *fixed, str(value)]))
    if isinstance(value, int) and not isinstance(value, bool):
        return [str(value), f"{value}.0"]
    return [json.dumps(value)]
