"""Limits the work that the constraints of a batch may do in one round of the generation loop.

Each round may do a limited amount of work in the kernel (`ROUND_WORK`). Work is counted in units, not timed; the Python
code of a row counts as `ROW_OVERHEAD` units. A row that exceeds the limit is parked: it is left out of the rounds, and
its state is unchanged. A worker thread repeats the row's calls of the kernel, with higher limits and finally without
one. Their results are then cached in the vocabulary's store, and the row joins the rounds again.

A row is slow if it was parked at two positions or more, the last time at most `_SLOW_TOKENS` tokens ago.
(Many ordinary rows are parked once, at their beginning.) The other rows run first. Slow rows share what is left of the
round's limit. There are three exceptions:

- A row that is not slow may do `ROW_WORK` units even if nothing is left.
- One of the slow rows, a different one in each round, may do `SLOW_WORK` units.
- A row that was parked more than `_MOST_TIMES` times at one position runs without a limit.

The workers are those of `guideway.background`, which also prepares constraints. The task of a row that already
generates has priority over this, unless the row is slow. Long tasks do not delay short ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from guideway import background
from guideway._kernel import WorkDeferred, bound_work
from guideway.errors import GuidewayError, LimitExceededError

if TYPE_CHECKING:
    from guideway.compiler import Automaton
    from guideway.generation.scheduler import Row
    from guideway.matcher import Matcher

__all__ = ["JOINS", "JOIN_WORK", "Deferral", "Preparation", "WorkDeferred", "bound_work"]

ROUND_WORK = 500_000
"""The maximum work of the constraints of one round, in units of about 10 ns."""

ROW_OVERHEAD = 8_000
"""The units that are counted for the Python code of a row: once before the model runs in a round, and once after it."""

JOIN_WORK = 100_000
"""The maximum work of each of two calls when a row is added to the batch: its matcher is made, its budget is checked.

If the matcher needs more work, a worker makes it first. If the check needs more, it is repeated in the row's rounds.
"""

JOINS = 4
"""The maximum number of rows per round that are added to the batch although the check of their budget is not done."""

ROW_WORK = 40_000
"""The work that a row that is not slow may do even if the round has reached `ROUND_WORK`."""

SLOW_WORK = 100_000
"""The work that one slow row may do even if the round has reached `ROUND_WORK`. Each round chooses another one."""

_MOST_TIMES = 3  # a row that was parked more often at one position runs without a limit
_SLOW_TOKENS = 32  # after this number of tokens without being parked, a row is not slow any more


class _Past(NamedTuple):
    """Where and how often a row was parked.

    Attributes:
        position: The last position at which it was parked.
        times: How often it was parked there.
        places: How often it was parked at another position than the time before; the first time counts.
    """

    position: int
    times: int
    places: int


class _Task(background.Task):
    """The kernel calls of a parked row, which a worker thread repeats.

    Args:
        matcher: The matcher of the row.
        budget: The number of tokens that the row may still take; None: its text need not be completed.
        tell: As in `background.Task`.

    Attributes:
        error: The error with which the row must end; None: there is none.
    """

    __slots__ = ("budget", "matcher")

    def __init__(self, matcher: Matcher, budget: int | None, tell: Callable[[], None]) -> None:
        super().__init__(tell)
        self.matcher, self.budget = matcher, budget

    def run(self) -> None:
        """Repeat the calls of the row at its position. Afterwards the matcher is at this position again.

        Raises `WorkDeferred` if the calls exceed the work limit of the thread.
        """
        matcher, start = self.matcher, self.matcher.position
        row = np.zeros(matcher.words, np.uint32)
        try:
            if self.budget is None:
                matcher.fill_mask(row)
            else:
                matcher.min_tokens_to_complete()
                matcher.fill_mask_within(row, self.budget)
            ids = matcher.forced_tokens()
            for token_id in ids:
                matcher.advance(token_id)
            if ids and self.budget is not None and not matcher.is_finished:
                matcher.min_tokens_to_complete()
        except WorkDeferred:
            raise
        except LimitExceededError as error:
            self.error = error
        except GuidewayError:
            pass  # the row makes the same call again, and raises or handles this error then
        finally:
            matcher.rollback(matcher.position - start)


class Preparation(background.Task):
    """A task that makes a matcher of an automaton in a worker thread, for a row that waits to join the batch.

    The result is discarded. Afterwards, it takes little work to make another matcher of this automaton.
    """

    __slots__ = ("automaton",)

    def __init__(self, automaton: Automaton, tell: Callable[[], None]) -> None:
        super().__init__(tell)
        self.automaton = automaton

    def run(self) -> None:
        """Make a matcher. Raises `WorkDeferred` if this exceeds the work limit of the thread."""
        self.automaton.matcher()


class Deferral:
    """The parked rows of a loop, and the work limit of its rounds. Use it in one thread."""

    def __init__(self) -> None:
        self._parked: dict[Row, _Task] = {}
        self._past: dict[Row, _Past] = {}  # of the rows that were parked
        self._turn = 0
        self._helped: Row | None = None  # the row that may do `SLOW_WORK` in this round
        self._woken = threading.Event()
        self._computes = False  # whether background threads pause for this loop

    def going(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of the next round: `rows` without those that are parked or have ended.

        Rows that are not slow come first. The others begin with a different row in each round. A row whose task
        failed ends with the error.
        """
        self._woken.clear()
        known = set(rows)
        for row, task in list(self._parked.items()):
            if task.done or row not in known:
                del self._parked[row]
                if task.error is not None and not row.is_over:
                    row.error = task.error
        self._past = {row: past for row, past in self._past.items() if row in known}
        self._turn += 1
        free = [row for row in rows if row not in self._parked and not row.is_over]
        slow = [row for row in free if self.is_slow(row)] if self._past else []
        if not slow:
            return free
        first = self._turn % len(slow)
        return [row for row in free if not self.is_slow(row)] + slow[first:] + slow[:first]

    def is_slow(self, row: Row) -> bool:
        """Return whether a row is slow (see the module's docstring)."""
        past = self._past.get(row)
        return past is not None and past.places > 1 and len(row.running) - past.position <= _SLOW_TOKENS

    def wait(self, seconds: float) -> None:
        """Wait until a task has ended, at most `seconds`."""
        self._woken.wait(seconds)

    def prepare(self, automaton: Automaton) -> Preparation:
        """Let a worker make a matcher of an automaton. Raises `RuntimeError` if no thread can be started."""
        made = Preparation(automaton, self._woken.set)
        made.start(background.WAITING)
        return made

    def begin(self) -> None:
        """Begin a round: limit the kernel work of this thread, and make background threads pause."""
        self._helped = None
        bound_work(ROUND_WORK)
        self.resume()

    def pause(self) -> None:
        """Let background threads work, while the model runs."""
        if self._computes:
            self._computes = False
            background.end_round()

    def resume(self) -> None:
        """End the time in which background threads work, after the model has run: they pause again."""
        self._computes = True
        background.begin_round()

    def end(self) -> None:
        """End the round: remove the limit, and let background threads work."""
        bound_work(None)
        self.pause()

    def allows(self, row: Row) -> bool:
        """Set the work limit of a row (see the module's docstring), and return whether the row may run in this round.

        The result is False if less than `ROW_WORK` is left of the round's limit, and no exception applies.
        """
        was_parked = row in self._past
        if was_parked and self._times(row) > _MOST_TIMES:
            bound_work(None)
            return True
        left = max(0, (bound_work(None) or 0) - ROW_OVERHEAD)
        if not was_parked or not self.is_slow(row):
            left = max(left, ROW_WORK)
        elif left < SLOW_WORK and self._helped in (None, row):
            self._helped, left = row, SLOW_WORK
        bound_work(left)
        return left >= ROW_WORK

    def _times(self, row: Row) -> int:
        """Return how often the row was parked at its present position."""
        past = self._past.get(row)
        return 0 if past is None or past.position != len(row.running) else past.times

    def park(self, row: Row) -> None:
        """Leave the row out of the rounds until a worker has repeated its calls. Call it after a `WorkDeferred`.

        A row without a constraint is not parked. If no thread can be started, the row ends with that error.
        """
        session = row.running
        matcher = session.matcher
        if matcher is None:
            return
        budget = row.left - (len(session) - len(row.session)) if row.limits.complete else None
        task = _Task(matcher, budget, self._woken.set)
        try:
            if self.is_slow(row):
                task.start(background.WAITING, level=1)
            else:
                task.start(background.RUNNING if row.has_drawn else background.WAITING)
        except RuntimeError as error:  # no thread can be started
            row.error = error
            return
        past, position = self._past.get(row), len(session)
        places = 0 if past is None else past.places
        is_new = past is None or past.position != position
        self._past[row] = _Past(position, self._times(row) + 1, places + is_new)
        self._parked[row] = task
