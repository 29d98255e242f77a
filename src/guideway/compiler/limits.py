"""`CompileLimits`: how many states and how much work a constraint may take."""

from __future__ import annotations

from dataclasses import dataclass

from guideway.arguments import integer

__all__ = ["CompileLimits"]


@dataclass(frozen=True)
class CompileLimits:
    """The limits of a compiled constraint, for `guideway.compile(..., limits=)`. Exceeding one raises an error.

    The limits are counts, so that the result is the same on every machine.

    Args:
        max_states: The maximum number of automaton states of all constraints that are compiled with these limits for
            one vocabulary, together.
        max_work: The maximum number of the kernel's units of work in one call, such as compiling, or computing a mask.

    Raises:
        TypeError: A limit is not an integer.
        ValueError: A limit is less than 1.
    """

    max_states: int = 4_000_000
    max_work: int = 400_000_000

    def __post_init__(self) -> None:
        for name in ("max_states", "max_work"):
            object.__setattr__(self, name, integer(name, getattr(self, name), 1))
