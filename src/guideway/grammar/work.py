"""`BoundedWork`: limits the total work while a constraint is lowered, in the kernel and in Python."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

from guideway._kernel import WorkDeferred, bound_work
from guideway.errors import LimitExceededError

__all__ = ["LOWERING_WORK", "BoundedWork", "spend"]

LOWERING_WORK = 300_000_000
"""The maximum work while one constraint is lowered, in the units of `CompileLimits.max_work`."""


_STEP_UNITS = 75  # units of the kernel for one step in Python, which takes about half a microsecond


def spend(steps: int) -> None:
    """Subtract steps of Python code from the work limit of the thread, if it has one.

    Raises `WorkDeferred` when the limit is reached.
    """
    left = bound_work(None)
    if left is None:
        return
    left -= min(left, steps * _STEP_UNITS)
    bound_work(left)
    if not left:
        raise WorkDeferred


class BoundedWork:
    """A context manager that limits the work in its block: of the kernel, and the steps that `spend` counts.

    More work than `units` raises `LimitExceededError`. If the thread already has a limit, the work of the block counts
    for it, too. If that limit is reached first, `WorkDeferred` is raised.

    Args:
        place: The value of `ConstraintError.place` for the error.
        units: The maximum work, in units of the kernel; None: `LOWERING_WORK`.
        purpose: What the work is done for, for the error.

    Attributes:
        used: The work of the block, after its end.
    """

    __slots__ = ("_granted", "_outer", "_place", "_purpose", "_units", "used")

    def __init__(
        self,
        place: str | None = None,
        units: int | None = None,
        purpose: Literal["compiled", "exported", "planned", "sampled"] = "compiled",
    ) -> None:
        self._place, self._purpose = place, purpose
        self._units = LOWERING_WORK if units is None else units
        self.used = 0

    def __enter__(self) -> None:
        self._outer = bound_work(None)
        self._granted = self._units if self._outer is None else min(self._units, self._outer)
        bound_work(self._granted)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        used = self.used = self._granted - (bound_work(None) or 0)
        outer = self._outer
        bound_work(None if outer is None else outer - used)
        if kind is WorkDeferred and (outer is None or used < outer):
            raise LimitExceededError(
                f"this constraint needs more than {self._units:,} units of work before it is {self._purpose}; use fewer"
                " patterns that match the same texts, simpler ones, or smaller counts",
                self._place,
            ) from None
