"""Encodes values as JSON text without recursion, with exact numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal

from guideway._kernel import nests_deeper
from guideway.caching import cached
from guideway.jsontext.copying import MAX_C_DEPTH
from guideway.jsontext.numbers import WrittenFloat

__all__ = ["contains", "exact_json", "identity", "write_json", "write_number"]


def write_json(value: object, comma: str = ", ", colon: str = ": ") -> str:
    """Return the JSON text of a value: keys in the order of the dict, only the escapes that JSON requires.

    `Decimal` numbers are written without an exponent. `comma` and `colon` are the separators.
    """
    return _plainly_written(value, comma, colon, same=False) or "".join(_written(value, comma, colon))


def exact_json(value: object, *, allow_nan: bool = True) -> str:
    """Return `json.dumps(value, ensure_ascii=False)`, but each `WrittenFloat` as its text, and `Decimal` numbers, too.

    A `Decimal` is written by `str`, with an exponent if it has one. A value that is nested too deeply for `json.dumps` is
    written without recursion. Raises the other errors of `json.dumps`.
    """
    if not contains(value, (WrittenFloat, Decimal)):
        with suppress(RecursionError):
            return json.dumps(value, ensure_ascii=False, allow_nan=allow_nan)
    return "".join(_written(value, ", ", ": ", write_decimal=str, allow_nan=allow_nan))


def contains(value: object, kinds: tuple[type, ...]) -> bool:
    """Return whether a JSON-like value has an instance of one of the classes in it, at any depth."""
    found, seen = [value], set()
    for one in found:  # grows in the loop
        if isinstance(one, kinds):
            return True
        if isinstance(one, (dict, list, tuple)) and id(one) not in seen:
            seen.add(id(one))
            found += one.values() if isinstance(one, dict) else one
    return False


def _plainly_written(value: object, comma: str, colon: str, same: bool) -> str | None:
    """Encode a value with the standard library. None for values with `Decimal` numbers, and for deeply nested values.

    `same`: sort the keys, as `identity` needs it.
    """
    if nests_deeper(value, MAX_C_DEPTH):
        return None
    try:
        return _encoder(comma, colon, same).encode(value)
    except (TypeError, RecursionError):
        return None


@cached(16)
def _encoder(comma: str, colon: str, same: bool) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=same, separators=(comma, colon))


def write_number(value: int | Decimal) -> str:
    """Return a number in decimal digits without an exponent. Zero is written "0", never "-0"."""
    if value == 0:
        return "0"
    return str(value) if isinstance(value, int) else format(value, "f")


def _written(
    value: object,
    comma: str,
    colon: str,
    same: bool = False,
    write_decimal: Callable[[Decimal], str] = write_number,
    allow_nan: bool = True,
) -> Iterator[str]:
    todo: list[object] = [value]  # values, and `_Raw` texts
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
        elif isinstance(one, (list, tuple)):
            pieces = [_Raw("[")]
            for number, inner in enumerate(one):
                pieces += [_Raw(comma), inner] if number else [inner]
            todo += reversed([*pieces, _Raw("]")])
        elif isinstance(one, Decimal):
            digits = write_decimal(one)
            yield digits.rstrip("0").rstrip(".") if same and "." in digits else digits
        elif isinstance(one, WrittenFloat):
            yield one.text
        else:
            yield json.dumps(one, ensure_ascii=False, allow_nan=allow_nan)


class _Raw:
    """Text that is written as it is: punctuation, and encoded keys."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def identity(value: object) -> str:
    """Return a text that is the same for values that are equal in JSON Schema: 1 equals 1.0, key order is irrelevant.

    Numbers must be int or `Decimal`.
    """
    return _plainly_written(value, ",", ":", same=True) or "".join(_written(value, ",", ":", same=True))
