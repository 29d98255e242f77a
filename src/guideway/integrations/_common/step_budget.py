"""`StepBudget`: limits the work of the masks of one step of an engine in which all sequences wait for all masks.

The kernel counts the work. A sequence whose mask needs more work than the step has left ends with an error, so that the
other sequences of the batch continue. A reserve of work, which is refilled slowly, allows single slow masks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from guideway._kernel import WorkDeferred, bound_work
from guideway.errors import LimitExceededError
from guideway.integrations._common.follower import Follower

__all__ = ["StepBudget"]

T = TypeVar("T")

STEP_WORK = 1_000_000
"""The maximum work of the masks of one step, in units of about 10 ns."""

CALL_OVERHEAD = 2_000
"""The units that are counted for the Python code of each call."""

LEAST_WORK = 50_000
"""The minimum work that is granted to a sequence, even if the step has reached its maximum."""

RESERVE = 5_000_000
"""The size of the reserve: work in addition to `STEP_WORK`, for all steps together. `REFILL` refills it."""

REFILL = 20_000
"""The work that the reserve gains in a step."""


class StepBudget:
    """The work budget of the masks of one engine. Use it in the thread that runs the engine's steps."""

    def __init__(self) -> None:
        self._left = STEP_WORK
        self._reserve = RESERVE
        self._last = -1

    def row(self, index: int) -> None:
        """Report that the mask of row `index` is computed next.

        An index that is not greater than the last begins a step.
        """
        if index <= self._last:
            self._left = STEP_WORK
            self._reserve = min(RESERVE, self._reserve + REFILL)
        self._last = index

    def run(self, follower: Follower, call: Callable[[], T], otherwise: T) -> T:
        """Return the result of `call`.

        If it needs too much work, end the follower with an error and return `otherwise`.
        """
        granted = max(LEAST_WORK, self._left + self._reserve)
        before = bound_work(granted)
        try:
            return call()
        except WorkDeferred:
            follower.fail(
                LimitExceededError(
                    f"a step of this sequence needs more than {granted:,} units of work (about 10 ns each), and other"
                    " sequences of the batch would wait for it; simplify the constraint"
                )
            )
            return otherwise
        finally:
            self._left -= granted - (bound_work(before) or 0) + CALL_OVERHEAD
            if self._left < 0:
                self._reserve = max(0, self._reserve + self._left)
                self._left = 0
