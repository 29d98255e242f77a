"""The characters of regex classes in Python's `re` and ECMA-262, as code point ranges.

Python's classes are computed with the `re` module, so they have the Unicode version of the running Python. They are
computed on first use and cached. There are also functions that merge, invert and search ranges.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from guideway.caching import cached
from guideway.grammar.regular import MAX_CODE_POINT, Ranges, chars

__all__ = [
    "ECMA_DIGIT",
    "ECMA_NEWLINE",
    "ECMA_SPACE",
    "ECMA_WORD",
    "Ranges",
    "contains",
    "fold_class",
    "fold_literal",
    "invert",
    "merge",
    "python_class",
]

ECMA_DIGIT: Ranges = ((0x30, 0x39),)
ECMA_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ECMA_NEWLINE: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
ECMA_SPACE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
_SURROGATES: Ranges = ((0xD800, 0xDFFF),)
_CASED_END = 0x20000  # all characters with upper or lower case are below this code point; a test checks this


def merge(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return sorted and disjoint ranges with the same characters as `ranges`."""
    return chars(*ranges).ranges


@cached(64, characters=1 << 16, size=len)
def invert(ranges: Ranges) -> Ranges:
    """Return the characters that are not in `ranges`, without surrogates, which do not occur in texts."""
    left: list[tuple[int, int]] = []
    start = 0
    for low, high in merge((*ranges, *_SURROGATES)):
        if start < low:
            left.append((start, low - 1))
        start = high + 1
    if start <= MAX_CODE_POINT:
        left.append((start, MAX_CODE_POINT))
    return tuple(left)


def contains(ranges: Ranges, code: int) -> bool:
    """Return whether a character is in sorted, disjoint ranges."""
    at = bisect_right(ranges, (code, MAX_CODE_POINT)) - 1
    return at >= 0 and ranges[at][0] <= code <= ranges[at][1]


@cached(32, characters=1 << 16, size=lambda source, _: len(source))
def python_class(source: str, ascii_only: bool) -> Ranges:
    """Return the characters of a class such as `\\w` in Python's `re`."""
    finder = re.compile(f"(?:{source})+", re.ASCII if ascii_only else 0)
    return tuple((found.start(), found.end() - 1) for found in finder.finditer(_all_characters()))


def _all_characters() -> str:
    """Return every code point in order, surrogates included."""
    encoded = bytearray(4 * (MAX_CODE_POINT + 1))
    encoded[0::4] = bytes(range(256)) * (len(encoded) >> 10)
    encoded[1::4] = b"".join(bytes([row]) * 256 for row in range(256)) * (len(encoded) >> 18)
    encoded[2::4] = b"".join(bytes([plane]) * (1 << 16) for plane in range(len(encoded) >> 18))
    return encoded.decode("utf-32-le", "surrogatepass")


@cached(1)
def _cased() -> str:
    found = []
    for code in range(_CASED_END):
        char = chr(code)
        if char.lower() != char or char.upper() != char:
            found.append(char)
    return "".join(found)


@cached(1)
def _cased_ranges() -> Ranges:
    return merge((ord(c), ord(c)) for c in _cased())


@cached(1024)
def fold_literal(char: str, ascii_only: bool) -> Ranges:
    """Return the characters that one character matches under `(?i)`."""
    if not contains(_cased_ranges(), ord(char)):
        return ((ord(char), ord(char)),)
    finder = re.compile(re.escape(char), re.IGNORECASE | (re.ASCII if ascii_only else 0))
    return merge((ord(c), ord(c)) for c in finder.findall(_cased()))


@cached(256, characters=1 << 20, size=lambda source, plain, _: len(source) + len(plain))
def fold_class(source: str, plain: Ranges, ascii_only: bool) -> Ranges:
    """Return the characters that a class of Python's `re` matches under `(?i)`.

    Args:
        source: The class, in the notation of `re`.
        plain: The characters that it matches without this flag.
        ascii_only: Whether the flag `(?a)` is set.
    """
    finder = re.compile(source, re.IGNORECASE | (re.ASCII if ascii_only else 0))
    without_case = _intersect(plain, invert(_cased_ranges()))
    return merge((*without_case, *((ord(c), ord(c)) for c in finder.findall(_cased()))))


def _intersect(left: Ranges, right: Ranges) -> Ranges:
    return invert(merge((*invert(left), *invert(right))))
