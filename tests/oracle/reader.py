"""What is read byte by byte."""

from __future__ import annotations


class Reader:
    """A piece of text that is read byte by byte; immutable."""

    __slots__ = ()

    @property
    def done(self) -> bool:
        """Whether it may end here."""
        raise NotImplementedError

    def step(self, byte: int) -> Reader | None:
        """After one more byte; None where it can no longer be completed."""
        raise NotImplementedError
