"""`Reader`: a position in a grammar text, and error messages. `Groups`: a stack of open groups."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NoReturn

from guideway.arguments import short_repr
from guideway.errors import ConstraintError, InvalidConstraintError, LimitExceededError
from guideway.grammar.cfg import Alternation, Concatenation, Repetition, Term
from guideway.grammar.regular import Chars, Regular, Special, Union, chars

__all__ = ["MAX_COUNT", "MAX_IDS", "MAX_NESTING", "Groups", "Reader", "special_of"]

MAX_NESTING = 1000
"""Maximum nesting depth of groups."""

MAX_COUNT = 1_000_000
"""Maximum repetition count."""

MAX_IDS = 10_000
"""Maximum number of token ids in one `<[…]>`."""

_WINDOW = 70  # a message shows at most this number of characters before the error, and as many from the error on


def special_of(written: str) -> Regular:
    """Return the language of the special token or tokens that `written` names.

    Args:
        written: `<name>`: the token with this name, of which the angle brackets are a part. `<[id]>` or `<[id-id,id]>`:
            tokens by id.

    Raises:
        ValueError: The text in square brackets is not a list of ids and ranges of ids.
        OverflowError: The ranges have more than `MAX_IDS` ids.
    """
    if not (written.startswith("<[") and written.endswith("]>")):
        return Special(written)
    found: dict[int, None] = {}
    for one in written[2:-2].split(","):
        ends = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", one)
        low, high = (0, -1) if ends is None else (int(ends[1]), int(ends[2] or ends[1]))
        if high < low:
            raise ValueError(
                f"{short_repr(written)} is no list of token ids; expected ids and ranges of ids, such as <[7]> or <[3-5,9]>"
            )
        if high - low + len(found) >= MAX_IDS:
            raise OverflowError(f"{short_repr(written)} has more than {MAX_IDS:,} token ids")
        found.update(dict.fromkeys(range(low, high + 1)))
    tokens = tuple(map(Special, found))
    return tokens[0] if len(tokens) == 1 else Union(tokens)


class Reader:
    """A position in a grammar text.

    Attributes:
        text: The grammar text.
        at: The index of the next character.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._lines: list[int] = []  # the indices where lines begin; empty until `place` is called

    @property
    def next(self) -> str:
        """The next character, or "" at the end."""
        return self.text[self.at : self.at + 1]

    def skip(self, text: str) -> bool:
        """Read `text` if it comes next. Returns whether it was read."""
        found = self.text.startswith(text, self.at)
        if found:
            self.at += len(text)
        return found

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Read and return a match of the pattern at this position; None: it does not match here."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def need(self, text: str, what: str = "") -> None:
        """Read `text`. Raises an error if it does not come next. `what` follows `text` in the message."""
        if not self.skip(text):
            self.expected(f"{text!r}{what}")

    def place(self, at: int | None = None) -> str:
        """Return a position for messages: line and column, the line, and a caret under the column.

        `at` is the index of the position; None: the current one.
        """
        at = self.at if at is None else at
        if not self._lines:
            self._lines = [0, *(found.end() for found in re.finditer("\n", self.text))]
        number = bisect_right(self._lines, at)
        start = self._lines[number - 1]
        column = at - start
        left = max(0, column - _WINDOW)
        end = self._lines[number] - 1 if number < len(self._lines) else len(self.text)
        shown = self.text[start + left : min(end, start + column + _WINDOW)].rstrip("\r").expandtabs(1)
        return f"line {number}, column {column + 1}:\n{shown}\n{' ' * (column - left)}^"

    def expected(self, what: str, at: int | None = None) -> NoReturn:
        """Raise an error with the message "expected `what`, found …"; without "found …" at the end of a line.

        `at`: the position; None: the current one.
        """
        here = self.text[self.at if at is None else at :][:12].split("\n")[0].strip()
        self.fail(f"expected {what}, found {here!r}" if here else f"expected {what}", at)

    def fail(
        self, message: str, at: int | None = None, kind: type[ConstraintError] = InvalidConstraintError
    ) -> NoReturn:
        """Raise an error of a class with a position. `at`: the position; None: the current one."""
        raise kind(message, self.place(at))

    def hex(self, digits: int | None) -> int:
        """Read and return a code point in hexadecimal. `digits`: the exact number of digits; None: any number."""
        start = self.at
        while self.next and self.next in "0123456789abcdefABCDEF" and (digits is None or self.at - start < digits):
            self.at += 1
        if self.at == start or (digits is not None and self.at - start < digits):
            self.expected(f"{digits or ''} hexadecimal digits".strip(), start)
        point = int((self.text[start : self.at].lstrip("0") or "0")[:12], 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            self.fail(f"{point:#x} is not a character", start)
        return point

    def special(self, written: str, at: int) -> Regular:
        """Return the result of `special_of` for a notation at the position `at`. Its errors get this position."""
        try:
            return special_of(written)
        except ValueError as error:
            self.fail(str(error), at)
        except OverflowError as error:
            self.fail(str(error), at, LimitExceededError)

    def number(self) -> int:
        """Read and return a repetition count. Raises `LimitExceededError` if it is more than `MAX_COUNT`."""
        start = self.at
        while self.next and self.next in "0123456789":
            self.at += 1
        if self.at == start:
            self.expected("a number")
        if self.at - start > 12 or int(self.text[start : self.at]) > MAX_COUNT:
            self.fail(f"repetition counts must be at most {MAX_COUNT:,}", start, LimitExceededError)
        return int(self.text[start : self.at])

    def set_of(self, ranges: list[tuple[int, int]], negated: bool, start: int) -> Chars:
        """Return a character class or its complement. `start` is its position, for the error if there are no ranges."""
        if not ranges:
            self.fail("a character class must not be empty, because its meaning would be ambiguous", start)
        made = chars(*ranges)
        if not negated:
            return made
        edges = [-1, *(edge for pair in made.ranges for edge in pair), 0x110000]
        return Chars(tuple((a + 1, b - 1) for a, b in zip(edges[::2], edges[1::2], strict=True) if a + 1 < b))


class Groups:
    """A stack of nested groups. A group has alternatives, each a sequence of terms. A closed group is one term."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._open: list[tuple[str, int, list[list[Term]]]] = [("", reader.at, [[]])]

    @property
    def inside(self) -> str:
        """The closing bracket of the innermost open group; "" if none is open."""
        return self._open[-1][0]

    @property
    def series(self) -> list[Term]:
        """The current sequence: the last one of the innermost open group. It may be modified."""
        return self._open[-1][2][-1]

    @property
    def alternatives(self) -> int:
        """The number of alternatives of the innermost open group, or of the whole if none is open."""
        return len(self._open[-1][2])

    def add(self, term: Term) -> None:
        """Add a term to the current sequence."""
        self.series.append(term)

    def bar(self) -> None:
        """Begin the next alternative of the innermost open group."""
        self._open[-1][2].append([])

    def open(self, closing: str, at: int) -> None:
        """Open a group. `closing` is its closing bracket, `at` its position."""
        if len(self._open) > MAX_NESTING:
            self._reader.fail(f"groups may be nested at most {MAX_NESTING} deep", at, LimitExceededError)
        self._open.append((closing, at, [[]]))

    def close(self) -> Term:
        """Close the innermost group and return its term."""
        return self._term(self._open.pop()[2])

    def repeat(self, least: int, most: int | None, at: int) -> None:
        """Replace the last term of the current sequence by its repetition. `most` None: unbounded."""
        if not self.series:
            self._reader.fail("nothing precedes the repetition", at)
        if most is not None and most < least:
            self._reader.fail(f"a repetition needs minimum <= maximum, got {least} and {most}", at)
        self.series[-1] = Repetition(self.series[-1], least, most)

    def done(self) -> Term:
        """Return one term for everything that was added. Raises an error if a group is still open."""
        if self.inside:
            closing, at, _ = self._open[-1]
            self._reader.fail(f"expected {closing!r} at the end of this group", at)
        return self._term(self._open[0][2])

    @staticmethod
    def _term(options: list[list[Term]]) -> Term:
        made = [one[0] if len(one) == 1 else Concatenation(tuple(one)) for one in options]
        return made[0] if len(made) == 1 else Alternation(tuple(made))
