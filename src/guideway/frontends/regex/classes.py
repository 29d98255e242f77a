"""Parses escapes and `[classes]` of Python's `re` and ECMA-262.

An item of a class is a character, a range, or a category such as `\\d`. Its source in Python's notation is kept,
because for Python's dialect, `re` computes what the class matches under `(?i)` (see character_ranges.py). For ECMA-262,
`fold` of unicode_properties.py does.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from guideway.arguments import short_repr
from guideway.frontends.regex import character_ranges as tables
from guideway.frontends.regex.character_ranges import Ranges
from guideway.frontends.regex.scanner import Scanner
from guideway.frontends.regex.unicode_properties import fold, property_ranges

__all__ = ["Item", "parse_class", "parse_escape"]

_HEX = "0123456789abcdefABCDEF"
_OCTAL = "01234567"
_DIGITS = "0123456789"
_PYTHON_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "\\": "\\"}
_ECMA_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_HEX_LENGTHS = {"python": {"x": 2, "u": 4, "U": 8}, "ecma": {"x": 2, "u": 4}}
_ECMA_CATEGORIES = {"d": tables.ECMA_DIGIT, "w": tables.ECMA_WORD, "s": tables.ECMA_SPACE}


@dataclass(frozen=True, slots=True)
class Item:
    """An escape, or an item of a class.

    Attributes:
        ranges: The characters that it matches.
        source: The item in the notation of Python's `re`; "" for properties (`\\p{...}`), which `re` does not have.
        code: The code point of a single character; None for ranges and categories.
    """

    ranges: Ranges
    source: str
    code: int | None = None


def _single(code: int) -> Item:
    return Item(((code, code),), f"\\U{code:08x}", code)


def parse_escape(scanner: Scanner, ascii_only: bool, ignore_case: bool, in_class: bool) -> Item:
    """Parse an escape whose backslash was read. The caller handles `\\b`, `\\B`, `\\A` and `\\Z` outside classes.

    `ascii_only` and `ignore_case` are the flags a and i. The caller adds the characters that are equal to those of the
    item under the flag i.
    """
    start = scanner.at - 1
    char = scanner.take()
    if not char:
        scanner.invalid("expected an escape after the backslash at the end of the pattern", start)
    if char in "dwsDWS":
        return _category(scanner, char, ascii_only, ignore_case)
    if char in _HEX_LENGTHS[scanner.dialect]:
        return _single(_hex_escape(scanner, char, start))
    if scanner.dialect == "python":
        return _python_escape(scanner, char, start, in_class)
    return _ecma_escape(scanner, char, start, in_class)


def _category(scanner: Scanner, char: str, ascii_only: bool, ignore_case: bool) -> Item:
    if scanner.dialect == "python":
        return Item(tables.python_class(f"\\{char}", ascii_only), f"\\{char}")
    ranges = _ECMA_CATEGORIES[char.lower()]
    if ignore_case and char in "wW":
        ranges = fold(ranges)  # so `\W` does not match a character that equals a word character under the flag i
    return Item(ranges if char.islower() else tables.invert(ranges), f"\\{char}")


def _hex_escape(scanner: Scanner, char: str, start: int) -> int:
    if char == "u" and scanner.dialect == "ecma" and scanner.skip("{"):
        digits = scanner.take_until("}", "the escape \\u{")
        code = int(digits, 16) if digits and not digits.strip(_HEX) else -1
    else:
        length = _HEX_LENGTHS[scanner.dialect][char]
        digits = scanner.take_while(_HEX, length)
        if len(digits) < length:
            scanner.invalid(f"the escape \\{char} needs {length} hexadecimal digits", start)
        code = int(digits, 16)
    if not 0 <= code <= 0x10FFFF:
        scanner.invalid("the escape is not a character: code points must be at most 10FFFF", start)
    if scanner.dialect == "ecma" and 0xD800 <= code <= 0xDBFF:
        return _surrogate_pair(scanner, code)
    return code


def _surrogate_pair(scanner: Scanner, high: int) -> int:
    back = scanner.at
    if scanner.skip("\\u"):
        digits = scanner.take_while(_HEX, 4)
        low = int(digits, 16) if len(digits) == 4 else 0
        if 0xDC00 <= low <= 0xDFFF:
            return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
    scanner.at = back
    return high


def _python_escape(scanner: Scanner, char: str, start: int, in_class: bool) -> Item:
    if char in _PYTHON_SIMPLE:
        return _single(ord(_PYTHON_SIMPLE[char]))
    if char == "b" and in_class:
        return _single(0x08)
    if char == "N":
        return _single(_named(scanner, start))
    if char in _DIGITS:
        return _single(_octal(scanner, char, start, in_class))
    if char.isascii() and char.isalpha():
        scanner.invalid(f"unknown escape \\{char}{' in a class' if in_class else ''} in Python's re", start)
    return _single(ord(char))


def _named(scanner: Scanner, start: int) -> int:
    if not scanner.skip("{"):
        scanner.invalid("expected {name} after \\N")
    name = scanner.take_until("}", "the escape \\N{")
    try:
        return ord(unicodedata.lookup(name))
    except (KeyError, TypeError):
        scanner.invalid(f"unknown character name {short_repr(name)}", start)


def _octal(scanner: Scanner, first: str, start: int, in_class: bool) -> int:
    """Parse an octal escape of Python's `re`, and return its character code. `first`: its first digit, already read.

    Outside a class, the escape is `\\0` and up to two octal digits, or three octal digits. In a class, it is one to
    three octal digits. Raises an error for any other escape that begins with a digit (outside a class, it is a
    back-reference), and for codes above `\\377`.
    """
    if first == "0" or (in_class and first in _OCTAL):
        digits = first + scanner.take_while(_OCTAL, 2)
    else:
        more = scanner.pattern[scanner.at : scanner.at + 2]
        if in_class:
            scanner.invalid(f"unknown escape \\{first} in a class in Python's re", start)
        if first not in _OCTAL or len(more) < 2 or more.strip(_OCTAL):
            scanner.unsupported("a back-reference", start)
        scanner.at += 2
        digits = first + more
    code = int(digits, 8)
    if code > 0o377:
        scanner.invalid("octal escapes must be at most \\377", start)
    return code


def _ecma_escape(scanner: Scanner, char: str, start: int, in_class: bool) -> Item:
    if char in _ECMA_SIMPLE:
        return _single(ord(_ECMA_SIMPLE[char]))
    if char == "b" and in_class:
        return _single(0x08)
    if char == "c":
        letter = scanner.take()
        if not (letter.isascii() and letter.isalpha()):
            scanner.invalid("expected a letter A to Z after \\c", start)
        return _single(ord(letter) % 32)
    if char == "0" and (not scanner.next or scanner.next not in _DIGITS):
        return _single(0)
    if char in "pP":
        return _property(scanner, char, start)
    if char == "k" or char in _DIGITS:
        scanner.unsupported("a back-reference", start)
    if char.isascii() and char.isalpha():
        scanner.invalid(f"unknown escape \\{char} in ECMA-262, the dialect of JSON Schema", start)
    return _single(ord(char))


def _property(scanner: Scanner, char: str, start: int) -> Item:
    if not scanner.skip("{"):
        scanner.invalid(f"expected {{name}} after \\{char}", start)
    name = scanner.take_until("}", f"the property \\{char}{{")
    ranges = property_ranges(name)
    if ranges is None:
        scanner.invalid(
            f"unknown Unicode property {short_repr(name)}; expected for example \\p{{L}} or \\p{{Script=Greek}}", start
        )
    return Item(ranges if char == "p" else tables.invert(ranges), "")


def parse_class(scanner: Scanner, ascii_only: bool, ignore_case: bool) -> Ranges:
    """Parse the rest of a character class after its `[`, and return the characters that it matches.

    `ascii_only` and `ignore_case` are the flags a and i.
    """
    start = scanner.at - 1
    negated = scanner.skip("^")
    items: list[Item] = []
    first = True
    while True:
        if not scanner.next:
            scanner.invalid("expected ']' at the end of the class", start)
        if scanner.next == "]" and not (first and scanner.dialect == "python"):
            scanner.at += 1
            break
        items += _range(scanner, ascii_only, ignore_case, start)
        first = False
    ranges = tables.merge(r for item in items for r in item.ranges)
    if scanner.dialect == "ecma" and ignore_case:
        ranges, ignore_case = fold(ranges), False
    ranges = tables.invert(ranges) if negated else ranges
    if ignore_case and items:
        source = "".join(item.source for item in items)
        return tables.fold_class(f"[{'^' if negated else ''}{source}]", ranges, ascii_only)
    return ranges


def _range(scanner: Scanner, ascii_only: bool, ignore_case: bool, start: int) -> list[Item]:
    """Parse one character or category, or a range `low-high`. `start` is the position of the class, for errors.

    A `-` directly before `]` is not read: the next call returns it as a character. In ECMA-262, a `-` next to a
    category such as `\\d` is a character: the result then has three items.
    """
    at = scanner.at
    low = _class_atom(scanner, ascii_only, ignore_case)
    if scanner.next != "-" or scanner.pattern[scanner.at + 1 : scanner.at + 2] == "]":
        return [low]
    scanner.at += 1
    if not scanner.next:
        scanner.invalid("expected ']' at the end of the class", start)
    high = _class_atom(scanner, ascii_only, ignore_case)
    if low.code is None or high.code is None:
        if scanner.dialect == "ecma":  # Annex B: the dash is literal
            return [low, _single(ord("-")), high]
        scanner.invalid("the ends of a range in a class must be single characters", at)
    if low.code > high.code:
        scanner.invalid("the range in the class is in the wrong order: its start is greater than its end", at)
    return [Item(((low.code, high.code),), f"{low.source}-{high.source}")]


def _class_atom(scanner: Scanner, ascii_only: bool, ignore_case: bool) -> Item:
    char = scanner.take()
    if char == "\\":
        return parse_escape(scanner, ascii_only, ignore_case, in_class=True)
    return _single(ord(char))
