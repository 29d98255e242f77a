"""Internationalised host names of IDNA 2008 (RFC 5891, RFC 5892, and RFC 5893 for right-to-left scripts)."""

from __future__ import annotations

from guideway.frontends.formats.network import MOST_IN_NAME, label
from guideway.frontends.formats.rules import limited
from guideway.frontends.regex.character_ranges import invert, merge
from guideway.frontends.regex.unicode_properties import idna, property_ranges
from guideway.grammar.regular import (
    ANY_CHAR,
    ANY_TEXT,
    Chars,
    Regular,
    both,
    cat,
    chars,
    either,
    literal,
    optional,
    repeat,
)

__all__ = ["MOST_BEYOND_ASCII", "idn_hostname"]

MOST_BEYOND_ASCII = 52
"""The maximum number of characters of a non-ASCII label.

IDNA limits the encoded label (A-label) to 63 characters. About 52 characters of one script fit.
"""

_DOT = chars("..", "。。", "．．", "｡｡")
_DIGITS, _ARABIC_DIGITS, _EXTENDED_DIGITS = (0x30, 0x39), (0x660, 0x669), (0x6F0, 0x6F9)


def idn_hostname() -> Regular:
    """Return internationalised host names of at most 253 characters.

    A label is an ASCII label, but not an A-label (`xn--`), or consists of characters that IDNA allows. The labels are
    separated by one of the four dots of IDNA. The rules of RFC 5892 for characters in context, and of RFC 5893 for
    right-to-left labels, are enforced, with three exceptions:

    - U+200C is allowed only after a virama, because the joining types of its neighbours are not checked.
    - The length limit of A-labels is approximated by `MOST_BEYOND_ASCII`. With mixed scripts, a label can be too long.
    - If a name has a right-to-left label, each label that is not right-to-left must be ASCII.
    """
    plain = either([label(), _beyond(_left_to_right())])
    beside_right = both(label(), cat(chars("az", "AZ"), ANY_TEXT))
    right = either([_beyond(_right_to_left(False)), _beyond(_right_to_left(True))])
    mixed = either([right, beside_right])
    only_left = cat(plain, repeat(cat(_DOT, plain)))
    some_right = cat(repeat(cat(beside_right, _DOT)), right, repeat(cat(_DOT, mixed)))
    return limited(either([only_left, some_right]), MOST_IN_NAME)


def _of(*names: str) -> Chars:
    return chars(*(pair for name in names for pair in idna(name)))


def _ends(names: tuple[str, ...], *more: tuple[int, int]) -> Regular:
    """Return the texts whose last character, except nonspacing marks, is in the IDNA classes `names` or in `more`."""
    return cat(ANY_TEXT, chars(*_of(*names).ranges, *more), repeat(_of("NSM")))


def _script(name: str) -> Chars:
    return Chars(property_ranges(f"Script={name}") or ())


def _beyond(body: Regular) -> Regular:
    """Return the texts of `body` that meet the rules for all non-ASCII labels: hyphens, the first character, length."""
    no_hyphen = Chars(invert(((0x2D, 0x2D),)))
    first = Chars(invert(merge((*_of("mark").ranges, (0x2D, 0x2D)))))
    not_reserved = either([cat(no_hyphen, ANY_CHAR), cat("-", no_hyphen)])  # characters three and four
    return both(
        body,
        cat(first, optional(cat(ANY_TEXT, no_hyphen))),
        either([repeat(ANY_CHAR, 1, 3), cat(ANY_CHAR, ANY_CHAR, not_reserved, ANY_TEXT)]),
        repeat(ANY_CHAR, 1, MOST_BEYOND_ASCII),
    )


def _joined() -> Regular:
    """Return a virama followed by U+200C or U+200D."""
    return cat(_of("virama"), chars((0x200C, 0x200D)))


def _left_to_right() -> Regular:
    """Return left-to-right labels that meet the contextual rules. Rules for all non-ASCII labels are in `_beyond`."""
    plain = chars(*_of("L", "other", "NSM").ranges, _EXTENDED_DIGITS)
    greek = _script("Greek")
    dotted = cat("l", repeat(literal("·l"), 1))
    chunk = either([plain, _joined(), cat(repeat(literal("\u0375"), 1), _without(greek, 0x375)), dotted])
    japanese = chars(*_script("Hiragana").ranges, *_script("Katakana").ranges, *_script("Han").ranges)
    kana = both(japanese, plain)
    any_chunk = repeat(either([chunk, literal("・")]))
    return either([repeat(chunk, 1), cat(any_chunk, kana, any_chunk)])


def _right_to_left(arabic_digits: bool) -> Regular:
    """Return right-to-left labels that meet the contextual rules, except the rules that `_beyond` checks.

    They may have Arabic-Indic digits if `arabic_digits`, else European and extended Arabic-Indic digits.
    """
    other = _of("other")
    if arabic_digits:
        plain = chars(*_of("R", "AN", "NSM").ranges, *_without(other, *range(0x30, 0x3A)).ranges, _ARABIC_DIGITS)
        ends = _ends(("R", "AN"), _ARABIC_DIGITS, (0x5F3, 0x5F4))
    else:
        plain = chars(*_of("R", "NSM").ranges, *other.ranges, _EXTENDED_DIGITS)
        ends = _ends(("R",), _DIGITS, _EXTENDED_DIGITS, (0x5F3, 0x5F4))
    hebrew = both(_script("Hebrew"), plain)
    chunk = either([plain, _joined(), cat(hebrew, repeat(chars((0x5F3, 0x5F4)), 1))])
    return both(repeat(chunk, 1), cat(_of("R"), ANY_TEXT), ends)


def _without(some: Chars, *codes: int) -> Chars:
    """Return the set of characters `some` without the code points `codes`."""
    ranges = list(some.ranges)
    for code in codes:
        ranges = [
            part
            for low, high in ranges
            for part in (((low, code - 1), (code + 1, high)) if low <= code <= high else ((low, high),))
            if part[0] <= part[1]
        ]
    return Chars(tuple(ranges))
