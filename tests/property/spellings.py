"""All spellings of a JSON value: key order, whitespace, escapes, number notations."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

SPACES = ("", "", "", " ", "\n  ", "\t", " \r\n")
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "/": "\\/"}


def respelled(rng: random.Random, value: Any, *, digits_only: bool = False) -> str:
    """Some JSON text of the value. Raises `ValueError` for what JSON cannot write.

    `digits_only`: integers are written with digits only, as draft 4 requires.
    """
    return "".join(_pieces(rng, value, digits_only))


def _pieces(rng: random.Random, value: Any, digits_only: bool) -> Iterator[str]:
    yield rng.choice(SPACES)
    if isinstance(value, dict):
        yield "{"
        for n, key in enumerate(rng.sample(list(value), len(value))):
            yield from ("," if n else "", rng.choice(SPACES), text(rng, key), rng.choice(SPACES), ":")
            yield from _pieces(rng, value[key], digits_only)
        yield from ("}" if value else rng.choice(SPACES) + "}",)
    elif isinstance(value, list):
        yield "["
        for n, item in enumerate(value):
            yield "," if n else ""
            yield from _pieces(rng, item, digits_only)
        yield "]" if value else rng.choice(SPACES) + "]"
    elif isinstance(value, str):
        yield text(rng, value)
    elif isinstance(value, bool) or value is None:
        yield json.dumps(value)
    elif digits_only and isinstance(value, int):
        yield str(value)
    else:
        yield number(rng, value)
    yield rng.choice(SPACES)


def text(rng: random.Random, value: str) -> str:
    """A string, some of its characters escaped that need not be."""
    made = []
    for char in value:
        must = char in '"\\' or char < " "
        if not must and rng.random() > 0.1:
            made.append(char)
        elif char in SHORT and rng.random() < 0.7:
            made.append(SHORT[char])
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            codes = [int.from_bytes(units[n : n + 2], "big") for n in range(0, len(units), 2)]
            made.append("".join(f"\\u{code:04x}" if rng.random() < 0.5 else f"\\u{code:04X}" for code in codes))
    return '"' + "".join(made) + '"'


def number(rng: random.Random, value: int | float) -> str:
    """A number: as it is, with a fraction of zeros, or with an exponent."""
    plain = json.dumps(value, allow_nan=False)
    if rng.random() < 0.5:
        return plain
    exact = Decimal(plain)
    kind = rng.randrange(4)
    if kind == 0 and exact == exact.to_integral_value():
        return f"{exact:f}." + "0" * rng.randrange(1, 3) if "." not in f"{exact:f}" else f"{exact:f}0"
    if kind == 1:
        return f"{exact:e}".replace("e+", rng.choice(("e", "e+", "E", "E+0")))
    if kind == 2:
        by = rng.randrange(-2, 4)
        return f"{exact.scaleb(-by):f}" + f"{rng.choice('eE')}{by}"
    return "-0" if exact == 0 and rng.random() < 0.5 else plain
