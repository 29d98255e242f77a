"""The assertions `^`, `$`, `\\b` and `\\B` as parts of the syntax tree, by dialect and flags.

The argument `at` is the position in the pattern, for errors.
"""

from __future__ import annotations

import re

from guideway.caching import cached
from guideway.frontends.regex import character_ranges as tables
from guideway.frontends.regex.character_ranges import Ranges
from guideway.frontends.regex.scanner import Dialect
from guideway.frontends.regex.syntax import AT_END, AT_START, Lookaround, Part, characters, choice, series, times
from guideway.frontends.regex.unicode_properties import fold

__all__ = ["boundary", "line_end", "line_start", "no_boundary"]

_NEWLINE: Ranges = ((0x0A, 0x0A),)
_ANY_CHARACTER: Ranges = ((0, 0x10FFFF),)


def line_start(dialect: Dialect, multi_line: bool, at: int) -> Part:
    """Return the assertion `^`."""
    if not multi_line:
        return AT_START
    newline = _NEWLINE if dialect == "python" else tables.ECMA_NEWLINE
    return choice([AT_START, Lookaround(characters(newline), False, False, at)])


def line_end(dialect: Dialect, multi_line: bool, at: int) -> Part:
    """Return the assertion `$`. In Python's `re` it also holds before a newline at the end of the text."""
    if dialect == "python":
        newline = characters(_NEWLINE)
        if multi_line:
            return choice([AT_END, Lookaround(newline, True, False, at)])
        return Lookaround(series([times(newline, 0, 1, at), AT_END]), True, False, at)
    if multi_line:
        return choice([AT_END, Lookaround(characters(tables.ECMA_NEWLINE), True, False, at)])
    return AT_END


@cached(8)
def _word(dialect: Dialect, ascii_only: bool, ignore_case: bool) -> Part:
    """Return one word character (`\\w`)."""
    if dialect == "python":
        return characters(tables.python_class(r"\w", ascii_only))
    return characters(fold(tables.ECMA_WORD) if ignore_case else tables.ECMA_WORD)


def _sides(dialect: Dialect, ascii_only: bool, ignore_case: bool, at: int) -> tuple[Part, Part, Part, Part]:
    """Return four assertions: a word character precedes, none precedes, a word character follows, none follows."""
    part = _word(dialect, ascii_only, ignore_case)
    before, after = Lookaround(part, False, False, at), Lookaround(part, True, False, at)
    return before, Lookaround(part, False, True, at), after, Lookaround(part, True, True, at)


def boundary(dialect: Dialect, ascii_only: bool, ignore_case: bool, at: int) -> Part:
    """Return the assertion `\\b`."""
    before, none_before, after, none_after = _sides(dialect, ascii_only, ignore_case, at)
    return choice([series([before, none_after]), series([none_before, after])])


def no_boundary(dialect: Dialect, ascii_only: bool, ignore_case: bool, at: int) -> Part:
    """Return the assertion `\\B`. The version of Python decides whether its `re` lets `\\B` hold in the empty text."""
    before, none_before, after, none_after = _sides(dialect, ascii_only, ignore_case, at)
    neither = series([none_before, none_after])
    if dialect == "python" and not _holds_in_nothing():
        any_character = characters(_ANY_CHARACTER)
        some = [Lookaround(any_character, ahead, False, at) for ahead in (False, True)]
        neither = series([neither, choice(list(some))])
    return choice([series([before, after]), neither])


@cached(1)
def _holds_in_nothing() -> bool:
    return re.search(r"\B", "") is not None
