"""Decodes JSON text without recursion, so that deeply nested input cannot overflow the stack.

In `read_json`, numbers with a fraction or an exponent become `Decimal`, so that they are exact. The decoder of the
standard library is four times as fast, but recursive: with a stack of 128 KB it crashes at depth 980.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, NoReturn

from guideway.errors import InvalidConstraintError, LimitExceededError
from guideway.jsontext.copying import LONE_SURROGATE, MAX_C_DEPTH, MAX_DEPTH, SURROGATE, copy_value
from guideway.jsontext.encoder import contains, exact_json
from guideway.jsontext.numbers import MAX_DIGITS, TOO_MANY_DIGITS, WrittenFloat, bounded, read_float, read_int
from guideway.jsontext.tokens import TOKEN, is_deeper, nesting

__all__ = ["decode_prefix", "float_json", "loads", "plain_json", "read_json"]

_WORDS = {"true": True, "false": False, "null": None}
_CONSTANTS = frozenset({"NaN", "Infinity", "-Infinity"})


def loads(text: str, **hooks: Any) -> Any:
    """Return `json.loads(text, **hooks)`.

    A text that is nested deeper than `MAX_C_DEPTH` is decoded without recursion. Of the hooks, only `parse_float` is then
    used (`read_float` if it is not given). It gets a text of an equal number.

    Raises:
        ValueError: The text is not JSON, or a number has more digits than Python's limit for int.
        InvalidConstraintError: A deep text is not JSON, a string in it has a lone surrogate, or the text of a number in
            it has more than `MAX_DIGITS` characters.
        LimitExceededError: A deep text has too many values, or a number in it has too many digits before or after the
            point.
    """
    if not is_deeper(text, MAX_C_DEPTH):
        return json.loads(text, **hooks)
    parse_float = hooks.get("parse_float", read_float)
    return copy_value(read_json(text, deepest=len(text)), exact=False, deepest=len(text), parse_float=parse_float)


def plain_json(value: Any) -> Any:
    """Return a JSON value with the result of `read_float` in place of each `WrittenFloat`."""
    if not contains(value, (WrittenFloat,)):
        return value
    return loads(exact_json(value), parse_float=read_float, parse_int=read_int)


def float_json(value: Any) -> Any:
    """Return a JSON value with floats in place of `WrittenFloat` and `Decimal`, so that the `json` module can write it.

    A number that is infinite or zero as a float, although it is not, becomes a `WrittenFloat`.
    """
    if not contains(value, (WrittenFloat, Decimal)):
        return value
    return loads(exact_json(value), parse_float=_useful_float, parse_int=_useful_int)


def _useful_float(text: str) -> float:
    value = read_float(text)
    return value if isinstance(value, float) and isfinite(value) else WrittenFloat(text)


def _useful_int(text: str) -> int | float:
    value = read_int(text)
    return value if isinstance(value, int) else WrittenFloat(text)


def decode_prefix(text: str, start: int, **hooks: Any) -> tuple[Any, int]:
    """Return the JSON value that begins at the index `start`, and the index after it.

    The time is linear in the length of the value's text.
    `hooks` are the arguments of `json.JSONDecoder`. For a value deeper than `MAX_C_DEPTH`, they are used as by `loads`.

    Raises:
        ValueError: No JSON value begins there, a deep value has no end, or a number has more digits than Python's limit
            for int.
        InvalidConstraintError: As in `loads`, for a deep value.
        LimitExceededError: As in `loads`, for a deep value.
    """
    depth, end = nesting(text, start) if text.startswith(("{", "["), start) else (0, None)
    if depth <= MAX_C_DEPTH:
        value, after = json.JSONDecoder(**hooks).raw_decode(text, start)
        return value, after
    if end is None:
        raise ValueError("the JSON value has no end")
    return loads(text[start:end], **hooks), end


def read_json(text: str, *, deepest: int = MAX_DEPTH) -> object:
    """Return the value of a JSON text, with exact numbers.

    Args:
        text: The text.
        deepest: The maximum nesting depth.

    Raises:
        InvalidConstraintError: The text is not JSON, a string has a lone surrogate, or the text of a number has more
            than `MAX_DIGITS` characters. The message has line and column.
        LimitExceededError: It is nested too deep, or a number has too many digits before or after the point.
    """
    return _Decoder(text, deepest).read()


class _Decoder:
    """Decodes one text token by token.

    `_open` is a stack of the open arrays and objects, each with the key under which it is a value of the object around
    it.
    """

    def __init__(self, text: str, deepest: int) -> None:
        self._text = text
        self._deepest = deepest
        self._at = 0  # end of the last token; its start is `_from`
        self._from = 0
        self._open: list[tuple[dict[str, object] | list[object], str]] = []

    def read(self) -> object:
        key, token = "", self._next()
        while True:
            if token == "{" or token == "[":
                box: dict[str, object] | list[object] = {} if token == "{" else []
                token = self._next()
                if token != ("}" if isinstance(box, dict) else "]"):
                    if len(self._open) >= self._deepest:
                        raise LimitExceededError(
                            f"line {self._place(self._from)}: the JSON text is nested deeper than {self._deepest} levels"
                        )
                    self._open.append((box, key))
                    if isinstance(box, dict):
                        key, token = self._key(token), self._next()
                    continue
                value: object = box
            else:
                value = self._scalar(token)
            while self._open:
                box, outer = self._open[-1]
                token = self._next()
                if isinstance(box, dict):
                    box[key] = value
                else:
                    box.append(value)
                if token == ",":
                    token = self._next()
                    if isinstance(box, dict):
                        key, token = self._key(token), self._next()
                    break
                if token != ("}" if isinstance(box, dict) else "]"):
                    self._fail("',' or the closing bracket")
                value, key = box, outer
                self._open.pop()
            else:
                if self._next() or self._from < len(self._text):
                    self._fail("the end of the text")
                return value

    def _next(self) -> str:
        """Read and return the next token; "": no token follows."""
        found = TOKEN.match(self._text, self._at)
        if not found:  # only for type checkers: the pattern always matches, if only the empty text
            return ""
        self._from, self._at = found.span(1)
        return found[1]

    def _scalar(self, token: str) -> object:
        if token[:1] == '"':
            return self._string(token)
        if token in _WORDS:
            return _WORDS[token]
        if not token or token in "}],:" or token in _CONSTANTS:
            self._fail("a JSON string" if self._text.startswith('"', self._from) else "a JSON value")
        if len(token) > MAX_DIGITS:
            self._from = self._at  # `_fail` reports this position: the end of the number, as `where` does
            self._fail(f"a number of at most {MAX_DIGITS} digits")
        try:
            return self._bounded(int(token) if token.lstrip("-").isdigit() else Decimal(token))
        except (InvalidOperation, ValueError):  # an exponent of twenty digits, or the interpreter's limit of digits
            raise LimitExceededError(f"{self.where()}: {TOO_MANY_DIGITS}") from None

    def _bounded(self, value: int | Decimal) -> int | Decimal:
        number = bounded(value)
        if number is None:
            raise LimitExceededError(f"{self.where()}: {TOO_MANY_DIGITS}")
        return number

    def _string(self, token: str) -> str:
        text = str(json.loads(token)) if "\\" in token else token[1:-1]
        if SURROGATE.search(text):
            raise InvalidConstraintError(f"{self.where()}: {LONE_SURROGATE}")
        return text

    def _key(self, token: str) -> str:
        if token[:1] != '"':
            self._fail("a JSON string")
        key = self._string(token)
        if self._next() != ":":
            self._fail("':'")
        return key

    def _fail(self, expected: str) -> NoReturn:
        raise InvalidConstraintError(f"the text is not JSON at line {self._place(self._from)}: expected {expected}")

    def where(self) -> str:
        """Return the current line and column for a message."""
        return f"line {self._place(self._at)}"

    def _place(self, at: int) -> str:
        column = at - self._text.rfind("\n", 0, at)
        return f"{self._text.count(chr(10), 0, at) + 1}, column {column}"
