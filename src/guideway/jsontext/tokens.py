"""The JSON tokenizer. Code that reads incomplete texts does not use it (partial.py, `pointer_at` in pointer.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["TOKEN", "Token", "is_deeper", "located", "nesting", "tokens"]

TOKEN = re.compile(
    r'[ \t\n\r]*([{}\[\],:]|"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
    r"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|NaN|-?Infinity|)"
)
"""Matches white space and one token (group 1); the group is empty if no token follows.

NaN and Infinity are tokens, because the decoder of the standard library accepts them, although they are not JSON.
"""

_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]]', re.DOTALL)  # a bracket, or a string, even without its end
_WORDS = frozenset("tfnNI")


class Token(NamedTuple):
    """A token of a JSON text.

    Attributes:
        kind: "key", "string", "number", "word" (true, false, null, NaN, Infinity, -Infinity), or the punctuation
            character.
        start: The index of its first character.
        end: The index after its last character.
        depth: The number of arrays and objects around it. The brackets of a value are not inside this value.
        text: Its characters.
    """

    kind: str
    start: int
    end: int
    depth: int
    text: str

    @property
    def key(self) -> bool:
        """Whether it is an object key."""
        return self.kind == "key"


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a JSON text, in linear time. The order of tokens is not checked.

    Raises:
        ValueError: A part of the text is not a token.
    """
    opened: list[bool] = []  # for each open container, whether it is an object
    at, last, match = 0, "", TOKEN.match
    while found := match(text, at):
        piece, (start, at) = found[1], found.span(1)
        if not piece:
            if start < len(text):
                raise ValueError(f"expected a JSON token at character {start}, found {text[start : start + 40]!r}")
            return
        first = piece[0]
        if first == '"':
            kind = "key" if last in ("{", ",") and opened and opened[-1] else "string"
        elif first in "{}[],:":
            kind = first
        else:
            kind = "word" if first in _WORDS or piece == "-Infinity" else "number"
        if kind in ("}", "]") and opened:
            opened.pop()
        yield Token(kind, start, at, len(opened), piece)
        if kind in ("{", "["):
            opened.append(kind == "{")
        last = kind


def located(text: str) -> Iterator[tuple[Token, list[str | int]]]:
    """Yield the tokens of a JSON text, each with the path of the value to which it belongs.

    The path is a list of keys and indices, as in a JSON Pointer. It is one list, which is modified between tokens: copy
    it to keep it. A bracket has the path of its array or object. A comma has the path of the item or entry before it.

    Raises:
        ValueError: A part of the text is not a token.
        IndexError: A comma or a closing bracket is outside all arrays and objects.
    """
    path: list[str | int] = []
    for token in tokens(text):
        kind = token.kind
        if kind == "key":
            path[-1] = json.loads(token.text)
        elif kind in ("}", "]"):
            path.pop()
        yield token, path
        if kind in ("{", "["):
            path.append(0)
        elif kind == "," and isinstance(path[-1], int):
            path[-1] += 1


def nesting(text: str, start: int = 0, stop: int | None = None) -> tuple[int, int | None]:
    """Measure the first array or object at or after the index `start`, in linear time.

    Args:
        text: The text. Its syntax is not checked.
        start: The index.
        stop: The search ends if the depth is more than this. None: it does not.

    Returns:
        The maximum nesting depth (0: there is no array or object; 1: none is inside it), and the index after the array
        or object. If the search ended because of `stop`, the depth is `stop` + 1 and the index is None. The index is
        also None if the array or object has no end.
    """
    level = deepest = 0
    for found in _BRACKET.finditer(text, start):
        sign = found[0]
        if sign in "{[":
            level += 1
            deepest = max(deepest, level)
            if stop is not None and level > stop:
                break
        elif sign in "}]":
            level -= 1
            if level <= 0:
                return deepest, found.end()
    return deepest, None


def is_deeper(text: str, depth: int) -> bool:
    """Return whether the first array or object of a JSON text is nested deeper than `depth` levels."""
    return text.count("{") + text.count("[") > depth and nesting(text, stop=depth)[0] > depth
