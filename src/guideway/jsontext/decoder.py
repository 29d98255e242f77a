"""Decodes and encodes JSON text without recursion, so that deeply nested input cannot overflow the stack.

Numbers with a fraction or an exponent become `Decimal`, so that they are exact. The decoder of the standard library is
four times as fast, but recursive: with a stack of 128 KB it crashes at depth 980.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NoReturn

from guideway._kernel import copy_plain
from guideway.errors import InvalidConstraintError, LimitExceededError
from guideway.jsontext.pointer import pointer, shown

__all__ = [
    "MAX_C_DEPTH",
    "MAX_DEPTH",
    "MAX_VALUES",
    "copy_schema",
    "copy_value",
    "decode_prefix",
    "identity",
    "is_deeper",
    "loads",
    "read_float",
    "read_int",
    "read_json",
    "write_json",
    "write_number",
]

MAX_VALUES = 2_000_000
"""Maximum number of values of a schema."""

MAX_DEPTH = 4000
"""Maximum nesting depth of a schema. It also stops at cyclic Python values."""

MAX_DIGITS = 1000
"""Maximum number of digits of a number in a schema, before and after the decimal point."""

MAX_C_DEPTH = 150
"""How deep arrays and objects may nest for the standard library's decoder, which recurses in C: about 40 KB of stack."""

_INFINITE = float("inf")
_NAMING = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$schema"})
_ANCHORS = frozenset({"$anchor", "$dynamicAnchor"})
_TOKEN = re.compile(
    r'[ \t\n\r]*([{}\[\],:]|"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
    r"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|)"
)
_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]]', re.DOTALL)  # a string may lack its end
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}


def is_deeper(text: str, depth: int) -> bool:
    """Whether arrays and objects of a JSON text nest deeper than `depth`."""
    if text.count("{") + text.count("[") <= depth:
        return False
    level = 0
    for found in _BRACKET.finditer(text):
        sign = found[0]
        if sign in "{[":
            level += 1
            if level > depth:
                return True
        elif sign in "}]":
            level -= 1
    return False


def loads(text: str, **hooks: Any) -> Any:
    """As `json.loads(text, **hooks)`, for texts of any depth; deep ones are decoded without recursion and without hooks.

    Raises:
        ValueError: The text is not JSON.
    """
    if not is_deeper(text, MAX_C_DEPTH):
        return json.loads(text, **hooks)
    return copy_value(read_json(text, deepest=len(text)), exact=False, deepest=len(text))


def decode_prefix(text: str, start: int, **hooks: Any) -> tuple[Any, int]:
    """The JSON value that begins at `start`, and where it ends.

    Raises:
        ValueError: No JSON value begins there.
    """
    if not text.startswith(("{", "["), start):
        value, end = json.JSONDecoder(**hooks).raw_decode(text, start)
        return value, end
    level = deepest = 0
    for found in _BRACKET.finditer(text, start):
        level += (found[0] in "{[") - (found[0] in "}]")
        deepest = max(deepest, level)
        if level == 0:
            if deepest > MAX_C_DEPTH:
                return loads(text[start : found.end()], **hooks), found.end()
            value, end = json.JSONDecoder(**hooks).raw_decode(text, start)
            return value, end
    raise ValueError("the JSON value has no end")


def read_json(text: str, *, deepest: int = MAX_DEPTH) -> object:
    """Return the value of a JSON text. Raises `InvalidConstraintError` with line and column if it is not JSON."""
    return _Decoder(text, deepest).read()


class _Decoder:
    """A decoder that reads token by token. Open arrays and objects are on a stack, each with its key."""

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
        """Return the next token; "" if there is none."""
        found = _TOKEN.match(self._text, self._at)
        if not found:  # for type checkers: the pattern matches the empty text
            return ""
        self._from, self._at = found.span(1)
        return found[1]

    def _scalar(self, token: str) -> object:
        if token[:1] == '"':
            return self._string(token)
        if token in _WORDS:
            return _WORDS[token]
        if not token or token in "}],:":
            self._fail("a JSON string" if self._text.startswith('"', self._from) else "a JSON value")
        if len(token) > MAX_DIGITS:
            self._from = self._at  # report the end of the digits
            self._fail(f"a number of at most {MAX_DIGITS} digits")
        try:
            return _number(int(token) if token.lstrip("-").isdigit() else Decimal(token), self)
        except (InvalidOperation, ValueError):  # an exponent of twenty digits, or the interpreter's limit of digits
            raise LimitExceededError(
                f"{self.where()}: numbers may have at most {MAX_DIGITS} digits before and after the point"
            ) from None

    def _string(self, token: str) -> str:
        return _text(str(json.loads(token)) if "\\" in token else token[1:-1], self)

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
        """Return the current position for a message. Lines are counted only then."""
        return f"line {self._place(self._at)}"

    def _place(self, at: int) -> str:
        column = at - self._text.rfind("\n", 0, at)
        return f"{self._text.count(chr(10), 0, at) + 1}, column {column}"


def copy_schema(value: object) -> tuple[object, bool]:
    """Copy a schema, and return whether an inner schema may have an identifier or an anchor."""
    copied = copy_plain(value, _exact, _NAMING, _ANCHORS, MAX_VALUES, MAX_DEPTH, 3 * MAX_DIGITS)
    return (copy_value(value), True) if copied is None else copied  # the general path reports errors


def _exact(number: object) -> int | Decimal | None:
    """Return a float or decimal as an exact number; None if JSON cannot write it or it has too many digits."""
    if type(number) is float:
        number = Decimal(repr(number))
    return _bounded(number) if type(number) is Decimal and number.is_finite() else None


def copy_value(value: object, *, exact: bool = True, deepest: int = MAX_DEPTH) -> object:
    """Copy a JSON-like Python value as plain dicts and lists.

    Args:
        value: The value.
        exact: Return non-integer numbers as `Decimal` (a float by its shortest repr), else as float.
        deepest: Maximum nesting depth.

    Raises:
        InvalidConstraintError: The value is not JSON-like.
        LimitExceededError: The value is too large or nested too deeply.
    """
    root: list[object] = [None]
    todo: list[tuple[object, dict[str, object] | list[object], str | int, _Path | None]] = [(value, root, 0, None)]
    count = 0
    while todo:
        one, box, slot, path = todo.pop()
        count += 1
        if count > MAX_VALUES or (path and path.depth > deepest):
            raise LimitExceededError(
                f"the schema has more than {MAX_VALUES:,} values or is nested deeper than {deepest} levels"
            )
        if isinstance(one, Mapping):
            made: dict[str, object] = {}
            for key, inner in one.items():
                if not isinstance(key, str):
                    raise InvalidConstraintError(
                        f"at {shown(_place(path))}: keys must be str, got {type(key).__name__}"
                    )
                made[_text(key, path)] = None  # keeps the order; filled later
                todo.append((inner, made, key, _Path(path, key)))
            box[slot] = made  # type: ignore[index]  # slot is a key of a dict or an index of a list
        elif isinstance(one, (list, tuple)):
            items: list[object] = [None] * len(one)
            box[slot] = items  # type: ignore[index]  # as above
            todo += ((inner, items, i, _Path(path, str(i))) for i, inner in enumerate(one))
        else:
            box[slot] = _scalar(one, path, exact)  # type: ignore[index]  # as above
    return root[0]


class _Path:
    """The path of a value as a linked list; joined only for errors."""

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


def _scalar(value: object, path: _Path | None, exact: bool) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(str(value), path)
    if isinstance(value, int):
        return _number(int(value), path)
    if isinstance(value, float):
        value = Decimal(repr(float(value)))
    if isinstance(value, Decimal) and value.is_finite():
        return _number(value, path) if exact else read_float(str(value))
    found = "a number that JSON cannot write" if isinstance(value, Decimal) else f"a {type(value).__name__}"
    place = _place(path)
    raise InvalidConstraintError(f"at {shown(place)}: expected a JSON value, got {found}", place)


def _bounded(number: int | Decimal) -> int | Decimal | None:
    """Return the number, or None if it has too many digits."""
    if not number:
        return 0  # 0e-999999999 would be written with all its zeros
    if isinstance(number, int):
        return number if number.bit_length() <= MAX_DIGITS * 3 else None
    fits = number.adjusted() < MAX_DIGITS and int(number.as_tuple().exponent) >= -MAX_DIGITS
    return number if fits else None


def _number(value: int | Decimal, path: _Path | _Decoder | None) -> int | Decimal:
    number = _bounded(value)
    if number is None:
        where = path.where() if isinstance(path, _Decoder) else f"at {shown(_place(path))}"
        raise LimitExceededError(f"{where}: numbers may have at most {MAX_DIGITS} digits before and after the point")
    return number


def _text(text: str, path: _Path | _Decoder | None) -> str:
    if _SURROGATE.search(text):
        where = path.where() if isinstance(path, _Decoder) else f"at {shown(_place(path))}"
        raise InvalidConstraintError(f"{where}: a string contains a lone surrogate, which UTF-8 cannot encode")
    return text


def read_float(text: str) -> float | Decimal:
    """Return the nearest float.

    Returns a `Decimal` if the float would be infinite, or zero for a non-zero number. Numbers whose exponent is too
    large for `Decimal` are infinite or zero, as in `json.loads`.
    """
    value = float(text)
    if value and abs(value) != _INFINITE:
        return value
    try:
        return Decimal(text) or value
    except InvalidOperation:
        return value


def read_int(text: str) -> int | Decimal:
    """Return the int, or a `Decimal` if it has more digits than Python's limit for int."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


def write_json(value: object, comma: str = ", ", colon: str = ": ") -> str:
    """Return the canonical JSON text of a value: dicts in their order, numbers without exponent."""
    return _plainly_written(value, comma, colon, same=False) or "".join(_written(value, comma, colon))


def _plainly_written(value: object, comma: str, colon: str, same: bool) -> str | None:
    """Encode with the standard library; None for values with decimals or great depth."""
    try:
        return _encoder(comma, colon, same).encode(value)
    except (TypeError, RecursionError):
        return None


@lru_cache(maxsize=16)
def _encoder(comma: str, colon: str, same: bool) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=same, separators=(comma, colon))


def _written(value: object, comma: str, colon: str, same: bool = False) -> Iterator[str]:
    todo: list[object] = [value]  # values, and `_Raw` punctuation
    while todo:
        one = todo.pop()
        if isinstance(one, _Raw):
            yield one.text
        elif isinstance(one, dict):
            pieces: list[object] = [_Raw("{")]
            for number, (key, inner) in enumerate(
                sorted(one.items(), key=lambda entry: entry[0]) if same else one.items()
            ):
                pieces += [_Raw((comma if number else "") + json.dumps(key, ensure_ascii=False) + colon), inner]
            todo += reversed([*pieces, _Raw("}")])
        elif isinstance(one, list):
            pieces = [_Raw("[")]
            for number, inner in enumerate(one):
                pieces += [_Raw(comma), inner] if number else [inner]
            todo += reversed([*pieces, _Raw("]")])
        elif isinstance(one, Decimal):
            digits = write_number(one)
            yield digits.rstrip("0").rstrip(".") if same and "." in digits else digits
        else:
            yield json.dumps(one, ensure_ascii=False)


class _Raw:
    """Punctuation between values."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def identity(value: object) -> str:
    """Return a text that is equal for values that are equal in JSON Schema: 1 equals 1.0, key order is ignored."""
    return _plainly_written(value, ",", ":", same=True) or "".join(_written(value, ",", ":", same=True))


def write_number(value: int | Decimal) -> str:
    """Return a number in decimal digits without exponent, never `-0`."""
    if value == 0:
        return "0"
    return str(value) if isinstance(value, int) else format(value, "f")
