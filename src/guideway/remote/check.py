"""`StreamCheck`: follows the bytes of an answer and reports the first byte after which no valid completion exists."""

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
    """Return the automaton over single bytes of a constraint, or None if it exceeds the limits of the kernel."""
    try:
        return byte_automaton(constraint.grammar())
    except ConstraintError:
        return None


class StreamCheck:
    """A matcher over single bytes.

    Args:
        automaton: The automaton; None: nothing is checked.

    Attributes:
        taken: The number of valid bytes so far.
        failed: Whether an impossible byte came.
    """

    def __init__(self, automaton: Automaton | None) -> None:
        self._matcher: Matcher | None = None if automaton is None else automaton.matcher()
        self.taken = 0
        self.failed = False

    def feed(self, data: bytes) -> int:
        """Take bytes. Returns the number of valid ones; fewer than given: the next one is impossible."""
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
        """Return whether bytes may come next; False if nothing is checked. No byte is taken."""
        return self._matcher is not None and not self.failed and self._matcher.validate(list(data)) == len(data)

    def may_end(self) -> bool:
        """Return whether the bytes so far are a complete text."""
        return self._matcher is None or (not self.failed and self._matcher.validate([END]) == 1)

    def must_end(self, ignored: bytes = b"") -> bool:
        """Return whether the bytes so far are a complete text that nothing can follow but the ignored bytes."""
        if self._matcher is None or self.failed:
            return False
        found = set(legal(self._matcher))
        return END in found and found <= {END, *ignored}

    def forced(self) -> bytes:
        """Return the bytes that must come next."""
        return b"" if self._matcher is None else self._matcher.forced_bytes()

    def expected(self, limit: int = 12) -> str:
        """Return what may come next, for a message to the model."""
        if self._matcher is None:
            return ""
        shown = [repr(chr(byte)) for byte in legal(self._matcher) if 0x20 <= byte < 0x7F]
        end = ["the end of the text"] if self.may_end() else []
        if len(shown) > limit:
            shown = [*shown[:limit], "…"]
        return ", ".join([*shown, *end])
