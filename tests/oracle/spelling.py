"""Which characters can a byte sequence become, in plain text or inside a JSON string?

`decode(pending, spelling)` returns inclusive ranges of code points, and whether the bytes are a complete character.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal

from . import regular
from .reader import Reader
from .regular import Expr

Spelling = Literal["plain", "json", "json-any"]
Ranges = tuple[tuple[int, int], ...]

SHORT = {'"': 0x22, "\\": 0x5C, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9}
HEX = b"0123456789abcdef"


@cache
def utf8_range(pending: bytes) -> tuple[tuple[int, int], bool] | None:
    """The code points whose UTF-8 begins with `pending` (at least one byte), and whether it is whole."""
    lead = pending[0]
    length = 1 if lead < 0x80 else 8 - (lead ^ 0xFF).bit_length()  # the ones that it opens with
    if length not in (1, 2, 3, 4) or 0x80 <= lead < 0xC0:
        return None
    base, floor = ((0x00, 0x0), (0xC0, 0x80), (0xE0, 0x800), (0xF0, 0x10000))[length - 1]
    if len(pending) > length or any(byte & 0xC0 != 0x80 for byte in pending[1:]):
        return None
    value = lead - base
    for byte in pending[1:]:
        value = value << 6 | byte & 0x3F
    left = 6 * (length - len(pending))
    low, high = max(value << left, floor), min((value + 1 << left) - 1, regular.MAX_CODE_POINT)
    if low > high or 0xD800 <= low <= high <= 0xDFFF:
        return None
    return (low, high), length == len(pending)


@cache
def decode(pending: bytes, spelling: Spelling) -> tuple[Ranges, bool] | None:
    """Returns the possible values of the bytes, and whether the bytes are complete; None if there are none."""
    if spelling == "plain":
        found = utf8_range(pending)
        return found and ((found[0],), found[1])
    if pending[:1] == b"\\":
        return _canonical_escape(pending) if spelling == "json" else _any_escape(pending)
    if pending[0] < 0x20 or pending[:1] == b'"':
        return None
    found = utf8_range(pending)
    return found and ((found[0],), found[1])


def _canonical_escape(pending: bytes) -> tuple[Ranges, bool] | None:
    """`\\"`, `\\\\`, the five short ones, and `\\u00xx` (lower case) for the other controls."""
    named = {b"\\" + name.encode(): point for name, point in SHORT.items()}
    others = {b"\\u%04x" % point: point for point in range(0x20) if point not in SHORT.values()}
    fitting = {text: point for text, point in (named | others).items() if text.startswith(pending)}
    if not fitting:
        return None
    return tuple((point, point) for point in sorted(fitting.values())), pending in fitting


def _any_escape(pending: bytes) -> tuple[Ranges, bool] | None:
    """Every legal escape: short ones, `\\/`, and `\\uXXXX` of either case, in pairs above U+FFFF."""
    if pending == b"\\":
        return ((0, regular.MAX_CODE_POINT),), False
    if pending[1:2] != b"u":
        name = pending[1:].decode("latin-1")
        point = {**SHORT, "/": 0x2F}.get(name)
        return None if point is None else (((point, point),), True)
    first = _hex_range(pending[2:6])
    if first is None:
        return None
    low, high = first
    second = pending[6:]
    if len(pending) < 6:
        return _bmp_or_astral(low, high), False
    if 0xD800 <= low <= 0xDBFF:
        base = 0x10000 + (low - 0xD800) * 0x400
        if len(second) < 2:
            return (((base, base + 0x3FF),), False) if b"\\u".startswith(second) else None
        tail = _hex_range(second[2:6]) if second[:2] == b"\\u" and len(second) <= 6 else None
        if tail is None:
            return None
        low, high = max(tail[0], 0xDC00), min(tail[1], 0xDFFF)
        if low > high:
            return None
        return ((base + low - 0xDC00, base + high - 0xDC00),), len(second) == 6
    if 0xDC00 <= low <= 0xDFFF or second:
        return None
    return ((low, low),), True


def _bmp_or_astral(low: int, high: int) -> Ranges:
    """What `\\u` and fewer than four digits can become: that very unit, or the pairs that a high surrogate opens."""
    found = [part for part in ((low, min(high, 0xD7FF)), (max(low, 0xE000), high)) if part[0] <= part[1]]
    first, last = max(low, 0xD800), min(high, 0xDBFF)
    if first <= last:
        found.append((0x10000 + (first - 0xD800) * 0x400, 0x10000 + (last - 0xD800) * 0x400 + 0x3FF))
    return tuple(found)


def _hex_range(digits: bytes) -> tuple[int, int] | None:
    """The 16-bit numbers whose four hex digits begin with these."""
    text = digits.lower()
    if any(byte not in HEX for byte in text):
        return None
    value, left = int(text or b"0", 16), 4 * (4 - len(text))
    return value << left, (value + 1 << left) - 1


@cache
def leads(expr: Expr) -> frozenset[int]:
    """Bytes that characters begin with: all if there is one, and at least two if there are more."""
    starts = [0, *regular.borders(expr), regular.SURROGATES[0], regular.SURROGATES[1] + 1, regular.MAX_CODE_POINT + 1]
    ends = sorted({n for n in starts if n <= regular.MAX_CODE_POINT + 1})
    surrogates = range(regular.SURROGATES[0], regular.SURROGATES[1] + 1)
    points = (n for low, high in pairwise(ends) for n in (low, high - 1) if low not in surrogates)
    return frozenset(chr(n).encode()[0] for n in points)


regular.FORGETFUL.append(leads)


@dataclass(frozen=True, slots=True)
class Text(Reader):
    """Text read byte by byte: what characters may follow, and the bytes of a character not yet whole."""

    expr: Expr
    spelling: Spelling = "plain"
    pending: bytes = b""

    @property
    def done(self) -> bool:
        """Whether the text may end here."""
        return not self.pending and regular.nullable(self.expr)

    def step(self, byte: int) -> Text | None:
        """After one more byte; None where that can no longer be completed."""
        pending = self.pending + bytes([byte])
        found = decode(pending, self.spelling)
        if found is None:
            return None
        ranges, whole = found
        if whole:
            after = regular.derive(self.expr, ranges[0][0])
            return Text(after, self.spelling) if regular.alive(after) else None
        if any(regular.alive_after(self.expr, low, high) for low, high in ranges):
            return Text(self.expr, self.spelling, pending)
        return None
