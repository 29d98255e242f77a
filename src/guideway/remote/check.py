"""`StreamCheck`: checks the bytes of an answer as they arrive, and finds the first byte that cannot be valid."""

from __future__ import annotations

from typing import Any

from guideway._kernel import Automaton, Matcher
from guideway.caching import cached
from guideway.constraints import Constraint
from guideway.errors import ConstraintError, RejectedTokenError
from guideway.grammar.mismatch import legal
from guideway.grammar.recognizer import END, byte_automaton

__all__ = ["StreamCheck", "automaton_of"]


@cached(256)
def automaton_of(constraint: Constraint[Any]) -> Automaton | None:
    """Return the automaton of a constraint for a vocabulary of single bytes; None if it cannot be compiled."""
    try:
        return byte_automaton(constraint.grammar())
    except ConstraintError:
        return None


class StreamCheck:
    """Checks the bytes of an answer as they arrive.

    Args:
        automaton: The automaton of the constraint over single bytes; None: nothing is checked.

    Attributes:
        taken: The number of valid bytes so far.
        failed: Whether a byte was given to `feed` with which no valid text continues.
    """

    def __init__(self, automaton: Automaton | None) -> None:
        self._matcher: Matcher | None = None if automaton is None else automaton.matcher()
        self.taken = 0
        self.failed = False

    def feed(self, data: bytes) -> int:
        """Take bytes and return how many of them are valid.

        If fewer are valid than were given, no valid text continues with the next byte, and later calls return 0.
        """
        if self._matcher is None:
            self.taken += len(data)
            return len(data)
        if self.failed:
            return 0
        advance, fits = self._matcher.advance, 0
        try:
            for byte in data:
                advance(byte)
                fits += 1
        except RejectedTokenError:
            self.failed = True
        self.taken += fits
        return fits

    def allows(self, data: bytes) -> bool:
        """Return whether bytes may come next; False if nothing is checked. The bytes are not taken."""
        return self._matcher is not None and not self.failed and self._matcher.validate(list(data)) == len(data)

    def may_end(self) -> bool:
        """Return whether the bytes so far are a complete text; True if nothing is checked."""
        return self._matcher is None or (not self.failed and self._matcher.validate([END]) == 1)

    def must_end(self, ignored: bytes = b"") -> bool:
        """Return whether the bytes so far are a complete text, and no other byte than those in `ignored` can follow.

        False if nothing is checked.
        """
        if self._matcher is None or self.failed:
            return False
        found = set(legal(self._matcher))
        return END in found and found <= {END, *ignored}

    def forced(self) -> bytes:
        """Return the bytes that must come next, at most 4,096; b"" if several can come next or nothing is checked."""
        return b"" if self._matcher is None else self._matcher.forced_bytes()

    def expected(self, limit: int = 12) -> str:
        """Describe what may come next, for a message: at most `limit` printable ASCII characters, and the end.

        "" if nothing is checked.
        """
        if self._matcher is None:
            return ""
        shown = [repr(chr(byte)) for byte in legal(self._matcher) if 0x20 <= byte < 0x7F]
        end = ["the end of the text"] if self.may_end() else []
        if len(shown) > limit:
            shown = [*shown[:limit], "…"]
        return ", ".join([*shown, *end])
