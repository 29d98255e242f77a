"""`Scanner`: a position in a pattern, and errors that show the position."""

from __future__ import annotations

from typing import Literal, NoReturn

from guideway.errors import InvalidConstraintError, LimitExceededError, UnsupportedError

__all__ = ["Dialect", "Scanner", "caret"]

Dialect = Literal["python", "ecma"]

_WINDOW = 60  # the maximum number of characters before and after the caret


class Scanner:
    """A position in a pattern.

    Attributes:
        pattern: The pattern.
        dialect: "python" or "ecma", as for `parse_pattern`.
        at: The index of the next character.
    """

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect = dialect
        self.at = 0

    @property
    def next(self) -> str:
        """The next character, or "" at the end."""
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        """Read and return the next character; "" at the end."""
        char = self.next
        self.at += len(char)
        return char

    def skip(self, text: str) -> bool:
        """Read `text` if it comes next. Returns whether it was read."""
        found = self.pattern.startswith(text, self.at)
        if found:
            self.at += len(text)
        return found

    def take_while(self, allowed: str, at_most: int | None = None) -> str:
        """Read and return as many characters of `allowed` as possible, but not more than `at_most` (None: no limit)."""
        start = self.at
        while self.next and self.next in allowed and (at_most is None or self.at - start < at_most):
            self.at += 1
        return self.pattern[start : self.at]

    def take_until(self, end: str, what: str) -> str:
        """Read up to and including `end`, and return the text before it.

        Raises `InvalidConstraintError` if `end` does not occur. `what` names the construct in the message.
        """
        found = self.pattern.find(end, self.at)
        if found < 0:
            self.invalid(f"expected {end!r} at the end of {what}", len(self.pattern))
        text = self.pattern[self.at : found]
        self.at = found + len(end)
        return text

    def invalid(self, message: str, at: int | None = None) -> NoReturn:
        """Raise `InvalidConstraintError` with a message. `at` is the position that it shows; None: the current one."""
        raise InvalidConstraintError(*self._marked(message, at))

    def unsupported(self, what: str, at: int | None = None) -> NoReturn:
        """Raise `UnsupportedError`: the construct `what` is not supported. `at` is as for `invalid`."""
        raise UnsupportedError(*self._marked(f"{what} is not supported in a pattern", at))

    def too_large(self, message: str, at: int | None = None) -> NoReturn:
        """Raise `LimitExceededError` with a message. `at` is as for `invalid`."""
        raise LimitExceededError(*self._marked(message, at))

    def _marked(self, message: str, at: int | None) -> tuple[str, str]:
        at = self.at if at is None else at
        drawing = caret(self.pattern, at)
        where = f"position {at}"
        if "\n" in self.pattern:
            before = self.pattern[:at]
            where = f"line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}"
        return f"{message}, at {where}:\n{drawing}", drawing


def caret(text: str, at: int) -> str:
    """Return the line of the text that contains the index `at`, and a second line with a caret under this index.

    Of a long line, only the characters near the index are returned.
    """
    start = max(text.rfind("\n", 0, at) + 1, at - _WINDOW)
    end = text.find("\n", at)
    end = min(end if end >= 0 else len(text), at + _WINDOW)
    line = "".join(c if c.isprintable() else " " for c in text[start:end])
    return f"{line}\n{' ' * (at - start)}^"
