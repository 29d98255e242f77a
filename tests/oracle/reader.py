"""Reading byte by byte."""

from __future__ import annotations

from collections.abc import Hashable


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

    def leave(self, rest: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
        """What follows, once it has ended."""
        return rest
