"""What a session keeps of the way it came: logits of recent positions, and checkpoints of what cannot be truncated."""

from __future__ import annotations

import numpy as np

from guideway.engines.base import Cache, EngineLogits

__all__ = ["Checkpoints", "LogitsRing"]


class LogitsRing:
    """Logits of the last positions, within a byte budget; at least the two newest, or the newest where it is 0.

    Ascending by position.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._least = 2 if budget_bytes else 1
        self._held: list[tuple[int, EngineLogits]] = []

    def at(self, position: int) -> EngineLogits | None:
        """The logits behind so many tokens, where they are the newest that are kept."""
        return self._held[-1][1] if self._held and self._held[-1][0] == position else None

    def put(self, position: int, logits: EngineLogits) -> None:
        """Those of this position; what lies behind is forgotten."""
        held = self._held
        while held and held[-1][0] >= position:
            held.pop()
        held.append((position, logits))
        if len(held) > self._least and len(held) * logits.nbytes > self.budget_bytes:
            del held[0]

    def rewind(self, position: int) -> None:
        """Forget what lies behind this position."""
        while self._held and self._held[-1][0] > position:
            self._held.pop()

    def copy(self) -> LogitsRing:
        """Shares the arrays, which nobody changes."""
        other = LogitsRing(self.budget_bytes)
        other._held = list(self._held)
        return other


class Checkpoints:
    """Caches of one sequence at several lengths, within a byte budget: near the end most of them, further back fewer.

    The one to go is that which leaves the smallest gap in relation to how far back it lies, so that going back by n
    tokens runs again a number of tokens that is about proportional to n.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._held: list[Cache] = []

    def put(self, cache: Cache) -> None:
        self._held.append(cache)
        while len(self._held) > 2 and sum(one.nbytes for one in self._held) > self.budget_bytes:
            lengths = np.array([0, *(one.length for one in self._held)])
            gaps = (lengths[2:] - lengths[:-2]) / (lengths[-1] - lengths[1:-1] + 1)
            del self._held[int(gaps.argmin())]

    def best(self, limit: int) -> Cache | None:
        """The longest that covers at most so many positions."""
        return next((one for one in reversed(self._held) if one.length <= limit), None)

    def rewind(self, length: int) -> None:
        """Forget what covers more."""
        while self._held and self._held[-1].length > length:
            self._held.pop()

    def copy(self) -> Checkpoints:
        other = Checkpoints(self.budget_bytes)
        other._held = list(self._held)
        return other
