"""Finds where a text that does not fit a grammar stops fitting, and what could follow there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from guideway.errors import UnsatisfiableError
from guideway.grammar.nodes import Grammar
from guideway.grammar.recognizer import END, byte_automaton

if TYPE_CHECKING:
    from guideway._kernel import Automaton, Matcher

__all__ = ["Mismatch", "legal", "mismatch"]

MAX_TEXT = 60
"""The maximum length of a forced text in a message. Longer texts are cut."""

MAX_CHARACTERS = 8
"""The maximum number of characters, or ranges of characters, that a message lists."""


class Mismatch(NamedTuple):
    """Where a text stops fitting.

    Attributes:
        position: The number of characters at the start of the text that are the beginning of a text of the grammar. 0
            if the grammar derives no text.
        expected: What could follow after these characters, in words.
    """

    position: int
    expected: str


def mismatch(grammar: Grammar | Automaton, text: str) -> Mismatch:
    """Return where a text stops fitting, and what could follow there.

    For a text of the grammar, and for the beginning of one, the position is its length.

    Args:
        grammar: The grammar, or its automaton from `byte_automaton`.
        text: The text. A lone surrogate fits nowhere.

    Raises:
        LimitExceededError: The grammar is too large, or the check takes too much work.
    """
    try:
        automaton = byte_automaton(grammar) if isinstance(grammar, Grammar) else grammar
    except UnsatisfiableError:
        return Mismatch(0, "nothing, since no text fits")
    matcher = automaton.matcher()
    data = text.encode("utf-8", "surrogatepass")
    ids = list(data)
    count = matcher.validate(ids)
    while count < len(data) and data[count] & 0xC0 == 0x80:  # within a character
        count -= 1
    for byte in ids[:count]:
        matcher.advance(byte)
    return Mismatch(len(data[:count].decode("utf-8", "surrogatepass")), _expected(matcher))


def _expected(matcher: Matcher) -> str:
    """Describe what may follow."""
    if matcher.is_finished:
        return "the end of the text"
    forced = matcher.forced_bytes().decode("utf-8", "ignore")
    if forced:
        return repr(forced if len(forced) <= MAX_TEXT else forced[:MAX_TEXT] + "…")
    allowed = legal(matcher)
    parts = [one for low, high in _ranges([byte for byte in allowed if byte < 0x80]) for one in _shown(low, high)]
    if any(0x80 <= byte < END for byte in allowed):
        parts.append("other characters")
    if len(parts) > MAX_CHARACTERS:
        parts = [*parts[:MAX_CHARACTERS], "…"]
    if END in allowed:
        parts.append("the end of the text")
    return " or ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]])) or "nothing"


def legal(matcher: Matcher) -> list[int]:
    """Return the ids that a matcher of `byte_automaton` allows next. `END` is one of them if the text may end."""
    row = np.zeros(matcher.words, np.uint32)
    matcher.fill_mask(row)
    return [one for one in range(END + 1) if row[one >> 5] >> (one & 31) & 1]


def _ranges(values: list[int]) -> list[tuple[int, int]]:
    """Group ascending numbers into ranges (first, last), both inclusive."""
    found: list[tuple[int, int]] = []
    for value in values:
        if found and found[-1][1] == value - 1:
            found[-1] = found[-1][0], value
        else:
            found.append((value, value))
    return found


def _shown(low: int, high: int) -> list[str]:
    if low == 0 and high == 0x7F:
        return ["any ASCII character"]
    return [f"{chr(low)!r} to {chr(high)!r}"] if high - low > 1 else [repr(chr(one)) for one in range(low, high + 1)]
