"""What a session stores for rewinding: recent logits; and checkpoints, if the engine cannot truncate its caches.

A checkpoint is the cache of a shorter prefix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guideway.engines.base import Cache, Logits

__all__ = ["Checkpoints", "LogitsRing", "TopLogits"]


TOP = 256
"""The number of the largest logits that are stored for a position whose other logits were dropped: 3 KB per position.
"""

_SPAN = 8.0
"""If there are more than 8 * `TOP` logits, those that are at least this much below the largest are not stored."""

OLDER_POSITIONS = 1024
"""The maximum number of positions of which only the largest logits are stored."""


class TopLogits:
    """The largest logits of a position.

    Attributes:
        ids: The ids of these logits, ascending, int64.
        values: The logits, float32.
        bound: Every other logit of the position is at most this number.
    """

    __slots__ = ("bound", "ids", "values")

    def __init__(self, ids: NDArray[np.int64], values: NDArray[np.float32], bound: float) -> None:
        self.ids, self.values, self.bound = ids, values, bound

    @classmethod
    def of(cls, logits: Logits) -> TopLogits | None:
        """Return the largest of these logits; None if the largest one is not finite."""
        most = min(TOP, len(logits))
        bound = -np.inf  # this remains if all logits are stored
        largest, ids = logits.max(), np.arange(logits.size)
        if logits.size > 8 * TOP:  # this is faster than sorting all
            bound = float(largest) - _SPAN
            ids = np.flatnonzero(logits > bound)
        if ids.size > most:
            ids = ids[np.argpartition(-logits[ids], most - 1)[:most]]
        values = logits[ids]
        if not np.isfinite(largest):
            return None
        if ids.size == most < len(logits):
            bound = float(values.min())
        order = np.argsort(ids)
        return cls(ids[order].astype(np.int64), values[order].astype(np.float32), bound)

    def best(self, mask: NDArray[np.uint32] | None) -> int | None:
        """Return the legal token with the largest logit.

        None: the stored logits do not determine it, because two are equal, or a logit that is not stored may be larger.
        """
        ids, values = self.ids, self.values
        if mask is not None:
            legal = (mask[ids >> 5] >> (ids & 31).astype(np.uint32)) & 1
            ids, values = ids[legal != 0], values[legal != 0]
        if not values.size:
            return None
        place = int(values.argmax())
        largest = values[place]
        return int(ids[place]) if largest > self.bound and np.count_nonzero(values == largest) == 1 else None


class LogitsRing:
    """The logits of the last positions, within a memory budget.

    The logits of the two newest positions are always stored; if the budget is 0, those of the newest one. Of up to
    `OLDER_POSITIONS` positions before the stored ones, the largest logits are stored, unless the budget is 0.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._least = 2 if budget_bytes else 1
        self._held: list[tuple[int, Logits]] = []
        self._older: list[tuple[int, TopLogits]] = []

    def at(self, position: int) -> Logits | None:
        """Return the logits after `position` tokens if this is the newest stored position; else None."""
        return self._held[-1][1] if self._held and self._held[-1][0] == position else None

    def top_at(self, position: int) -> TopLogits | None:
        """Return the largest logits after `position` tokens if this is the newest stored position; else None.

        None, too, if all logits of this position are stored (`at`).
        """
        if self._held or not self._older or self._older[-1][0] != position:
            return None
        return self._older[-1][1]

    def put(self, position: int, logits: Logits) -> None:
        """Store the logits of a position, and drop those of later positions."""
        held = self._held
        if (held and held[-1][0] >= position) or (self._older and self._older[-1][0] >= position):
            self.rewind(position - 1)
        held.append((position, logits))
        if len(held) > self._least and len(held) * logits.nbytes > self.budget_bytes:
            oldest = held.pop(0)
            top = TopLogits.of(oldest[1]) if self.budget_bytes else None
            if top is not None:
                self._older.append((oldest[0], top))
                del self._older[:-OLDER_POSITIONS]

    def rewind(self, position: int) -> None:
        """Drop the logits of later positions."""
        for kept in (self._held, self._older):
            while kept and kept[-1][0] > position:
                kept.pop()

    def copy(self) -> LogitsRing:
        """Return a copy that shares the arrays. The arrays are never modified."""
        other = LogitsRing(self.budget_bytes)
        other._held, other._older = list(self._held), list(self._older)
        return other


class Checkpoints:
    """Caches of one sequence at several lengths, within a memory budget. They are denser near the end of the sequence.

    If the budget is exceeded, the cache is evicted whose two neighbours have the smallest distance, relative to the
    distance of the cache from the end. After rewinding by n tokens, the model must run a number of tokens again that is
    roughly proportional to n.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._held: list[Cache] = []

    def put(self, cache: Cache) -> None:
        """Store a cache. It must be longer than all stored ones.

        While more than two caches are stored and they exceed `budget_bytes`, one of them is evicted.
        """
        self._held.append(cache)
        while len(self._held) > 2 and sum(one.nbytes for one in self._held) > self.budget_bytes:
            lengths = np.array([0, *(one.length for one in self._held)])
            gaps = (lengths[2:] - lengths[:-2]) / (lengths[-1] - lengths[1:-1] + 1)
            del self._held[int(gaps.argmin())]

    def best(self, limit: int) -> Cache | None:
        """Return the longest cache that covers at most `limit` positions; None: there is none."""
        return next((one for one in reversed(self._held) if one.length <= limit), None)

    def rewind(self, length: int) -> None:
        """Drop the caches that cover more than `length` positions."""
        while self._held and self._held[-1].length > length:
            self._held.pop()

    def copy(self) -> Checkpoints:
        other = Checkpoints(self.budget_bytes)
        other._held = list(self._held)
        return other
