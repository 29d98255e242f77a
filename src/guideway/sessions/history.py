"""The history that a session keeps for rewinding: recent logits, and checkpoints of states that cannot be truncated."""

from __future__ import annotations

import numpy as np

from guideway.engines.base import Cache, EngineLogits

__all__ = ["Checkpoints", "LogitsRing"]


class LogitsRing:
    """The logits of the last positions, ascending, within a byte budget.

    Keeps at least the two newest, or the newest if the budget is 0.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._least = 2 if budget_bytes else 1
        self._held: list[tuple[int, EngineLogits]] = []

    def at(self, position: int) -> EngineLogits | None:
        """Return the logits after `position` tokens if they are the newest that are kept."""
        return self._held[-1][1] if self._held and self._held[-1][0] == position else None

    def put(self, position: int, logits: EngineLogits) -> None:
        """Store the logits of a position, and drop those of later positions."""
        held = self._held
        while held and held[-1][0] >= position:
            held.pop()
        held.append((position, logits))
        if len(held) > self._least and len(held) * logits.nbytes > self.budget_bytes:
            del held[0]

    def rewind(self, position: int) -> None:
        """Drop the logits of later positions."""
        while self._held and self._held[-1][0] > position:
            self._held.pop()

    def copy(self) -> LogitsRing:
        """Return a copy that shares the arrays. The arrays are never modified."""
        other = LogitsRing(self.budget_bytes)
        other._held = list(self._held)
        return other


class Checkpoints:
    """Caches of one sequence at several lengths, within a byte budget. They are denser near the end of the sequence.

    The cache to evict is the one that leaves the smallest gap relative to its distance from the end. Rewinding by n
    tokens then reruns a number of tokens that is roughly proportional to n.
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
        """Return the longest cache that covers at most `limit` positions."""
        return next((one for one in reversed(self._held) if one.length <= limit), None)

    def rewind(self, length: int) -> None:
        """Drop the caches that cover more than `length` positions."""
        while self._held and self._held[-1].length > length:
            self._held.pop()

    def copy(self) -> Checkpoints:
        other = Checkpoints(self.budget_bytes)
        other._held = list(self._held)
        return other
