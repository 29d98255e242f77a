"""`CompileLimits`: how much one constraint may cost."""

from __future__ import annotations

from dataclasses import dataclass

from guideway.arguments import integer

__all__ = ["CompileLimits"]


@dataclass(frozen=True)
class CompileLimits:
    """The limits of a compiled constraint, for `guideway.compile(..., limits=)`. Exceeding one is a `LimitExceededError`.

    Both are counts, so that the same constraint has the same outcome on every machine.

    Args:
        max_states: The number of automaton states that constraints with these limits may create together.
        max_work: The units of work of one call (compiling, or computing one mask).
    """

    max_states: int = 4_000_000
    max_work: int = 400_000_000

    def __post_init__(self) -> None:
        for name in ("max_states", "max_work"):
            object.__setattr__(self, name, integer(name, getattr(self, name), 1))
