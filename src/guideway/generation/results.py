"""`Generation`: one result, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from guideway.sessions import FinishReason, Timings

__all__ = ["Generation"]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Generation(Generic[T_co]):
    """One result, and how it came about.

    `tokens`: the ids generated, EOS included. `forced`: how many of them had no alternative and were not drawn.
    `finish_reason`: "stop" at EOS; "length" where `max_tokens` or the context cut free text; a constraint is never cut.
    """

    value: T_co
    text: str
    tokens: tuple[int, ...]
    prompt_tokens: int
    forced: int
    finish_reason: FinishReason
    timings: Timings

    @property
    def sampled(self) -> int:
        """How many tokens were drawn."""
        return len(self.tokens) - self.forced

    @property
    def tokens_per_second(self) -> float:
        """Tokens over the seconds they took, the prompt's left out; 0 where it took no time."""
        seconds = self.timings.model + self.timings.mask + self.timings.sample
        return len(self.tokens) / seconds if seconds > 0 else 0.0
