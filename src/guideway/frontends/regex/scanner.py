"""A position in a pattern, and errors with a caret."""

from __future__ import annotations

from typing import Literal, NoReturn

from guideway.errors import InvalidConstraintError, LimitExceededError, UnsupportedError

__all__ = ["Dialect", "Scanner", "caret"]

Dialect = Literal["python", "ecma"]

_WINDOW = 60  # number of characters shown on each side of the caret


class Scanner:
    """A position in a pattern."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect = dialect
        self.at = 0

    @property
    def next(self) -> str:
        """The next character, or "" at the end."""
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        """Read and return the next character."""
        char = self.next
        self.at += len(char)
        return char

    def skip(self, text: str) -> bool:
        """Read a text if it is next; return whether it was."""
        found = self.pattern.startswith(text, self.at)
        if found:
            self.at += len(text)
        return found

    def take_while(self, allowed: str, at_most: int | None = None) -> str:
        """Read and return the longest run of allowed characters."""
        start = self.at
        while self.next and self.next in allowed and (at_most is None or self.at - start < at_most):
            self.at += 1
        return self.pattern[start : self.at]

    def take_until(self, end: str, what: str) -> str:
        """Read up to and including `end`, and return the text before it."""
        found = self.pattern.find(end, self.at)
        if found < 0:
            self.invalid(f"expected {end!r} at the end of {what}", len(self.pattern))
        text = self.pattern[self.at : found]
        self.at = found + len(end)
        return text

    def invalid(self, message: str, at: int | None = None) -> NoReturn:
        """Raise `InvalidConstraintError`: the pattern is malformed here."""
        raise InvalidConstraintError(*self._marked(message, at))

    def unsupported(self, what: str, at: int | None = None) -> NoReturn:
        """Raise `UnsupportedError`: the construct is not supported."""
        raise UnsupportedError(*self._marked(f"{what} is not supported in a pattern", at))

    def too_large(self, message: str, at: int | None = None) -> NoReturn:
        """Raise `LimitExceededError`: the pattern exceeds a limit here."""
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
    """Return the line of the text at a position, with a caret under the position."""
    start = max(text.rfind("\n", 0, at) + 1, at - _WINDOW)
    end = text.find("\n", at)
    end = min(end if end >= 0 else len(text), at + _WINDOW)
    line = "".join(c if c.isprintable() else " " for c in text[start:end])
    return f"{line}\n{' ' * (at - start)}^"
