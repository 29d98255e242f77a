"""`Loop`: one thread per model that generates for all async calls.

The rows of all calls run in the same rounds. Rows join and leave the batch between rounds.
"""

from __future__ import annotations

import os
import sys
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, finalize

from guideway.engines.base import runs_prompts_separately
from guideway.generation.deferral import JOIN_WORK, JOINS, Deferral, Preparation, bound_work
from guideway.generation.plan import Job
from guideway.generation.scheduler import Row, step
from guideway.sessions import ModelBase

if TYPE_CHECKING:
    from guideway.compiler import Automaton

__all__ = ["Call", "Loop", "Outbox", "loop_of"]


SWITCH_SECONDS = 0.001
"""The largest switch interval of the interpreter (`sys.setswitchinterval`) while a loop runs.

A loop needs the interpreter's lock (GIL) several times per round, and background threads lower constraints meanwhile.
"""

_PARKED_SECONDS = 0.05  # if no row can run, the loop waits at most this time before it looks for new calls


class Call:
    """A job in a loop.

    Args:
        job: The job.
        moved: Called in each round with the rows of the job that were in the batch, parked rows and rows that ended in
            this round included. A round can call it several times, each time with other rows: rows that ended before
            the model ran, and rows that ran before the others, come first. It is not called without rows, or if this
            `Call` is cancelled.
        done: Called once at the end, with the error that ended the `Call`; None: it ended without an error, or was
            cancelled.
        streams: Whether the caller shows tokens while others are generated. False: its rows do not run before others,
            and `moved` is called only with rows that drew their first token or ended.

    `moved` and `done` run in the loop's thread. Set `cancelled` to remove the call from the loop.
    """

    def __init__(
        self,
        job: Job,
        moved: Callable[[list[Row]], None],
        done: Callable[[BaseException | None], None],
        *,
        streams: bool = True,
    ) -> None:
        self.job = job
        self.streams = streams
        self.begun: set[Row] = set()  # if `streams` is False: the active rows whose first token was reported
        self.moved = moved
        self.done = done
        self.cancelled = False
        self.waiting: Generator[Row | Automaton, None, None] = job.starts(JOIN_WORK)
        self.preparation: Preparation | None = None  # prepares the matcher of the next row; None: not needed
        self.exhausted = False
        self.active: list[Row] = []


class Outbox:
    """Calls functions in event loops. The calls that a generation loop makes in a `with` block are sent together.

    Each wake-up of an event loop takes the interpreter's lock (GIL) from the generation loop. So an event loop wakes up
    once for the calls of a block, not once for each sequence.
    """

    def __init__(self) -> None:
        self._owner = 0  # the id of the thread in a `with` block; 0: none
        self._held: dict[AbstractEventLoop, list[tuple[Callable[[], object], Callable[[], object]]]] = {}

    def __enter__(self) -> None:
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._owner = 0
        held, self._held = self._held, {}
        for where, calls in held.items():
            _send(where, calls)

    def call(self, where: AbstractEventLoop, function: Callable[[], object], lost: Callable[[], object]) -> None:
        """Call a function in an event loop; within a `with` block, at its end. If the loop is closed, call `lost`."""
        if self._owner == threading.get_ident():
            self._held.setdefault(where, []).append((function, lost))
        else:
            _send(where, [(function, lost)])


def _send(where: AbstractEventLoop, calls: list[tuple[Callable[[], object], Callable[[], object]]]) -> None:
    try:
        where.call_soon_threadsafe(_call_all, [function for function, _ in calls])
    except RuntimeError:
        for _, lost in calls:
            lost()


def _call_all(functions: list[Callable[[], object]]) -> None:
    for function in functions:
        function()


class _SwitchInterval:
    """Limits the interpreter's switch interval to `SWITCH_SECONDS` while at least one thread is in the context."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._threads = 0
        self._before = self._set = 0.0

    def __enter__(self) -> None:
        with self._guard:
            self._threads += 1
            if self._threads == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH_SECONDS))
                self._set = sys.getswitchinterval()

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if not self._threads:  # the process was forked in the context
                return
            self._threads -= 1
            if not self._threads and sys.getswitchinterval() == self._set:  # not changed by the program meanwhile
                sys.setswitchinterval(self._before)

    def after_fork(self) -> None:
        """Restore the interval in a new process, in which the threads of loops do not exist."""
        self._guard = threading.Lock()
        if self._threads and sys.getswitchinterval() == self._set:
            sys.setswitchinterval(self._before)
        self._threads = 0


_SWITCH_INTERVAL = _SwitchInterval()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SWITCH_INTERVAL.after_fork)


class Loop:
    """Runs the rounds of one model in one thread, which waits while there are no calls.

    The first call starts the thread. It ends when this object is deleted. C libraries keep freed memory for the thread
    that allocated it, or for a group of threads. If each new call after a pause started a new thread, the memory that
    the model needs in a round would be kept once for each group.

    Attributes:
        outbox: Calls functions in the event loops of the callers.
    """

    def __init__(self) -> None:
        self.outbox = Outbox()
        self._guard = threading.Lock()
        self._calls: list[Call] = []
        self._running = False  # whether the thread runs rounds, or is about to
        self._wakes: SimpleQueue[Loop | None] | None = None  # wakes the thread; None: there is no thread
        self._deferral = Deferral()

    def add(self, call: Call) -> None:
        """Add a call. Its rows join the running batch. Raises `RuntimeError` if no thread can be started."""
        with self._guard:
            if self._wakes is None:
                wakes: SimpleQueue[Loop | None] = SimpleQueue()
                threading.Thread(target=_run, args=(wakes,), name="guideway-loop", daemon=True).start()
                finalize(self, wakes.put, None).atexit = False
                self._wakes = wakes  # set after the start of the thread, which can fail
            self._calls.append(call)
            if not self._running:
                self._running = True
                self._wakes.put(self)

    @property
    def sequences(self) -> int:
        """The number of rows in the batch, parked rows included."""
        with self._guard:
            return sum(len(call.active) for call in self._calls)

    def run_rounds(self) -> None:
        """Run rounds until there are no calls. It is called in the thread of the loop."""
        while True:
            with self._guard:
                ended = [call for call in self._calls if call.cancelled or (call.exhausted and not call.active)]
                self._calls = [call for call in self._calls if call not in ended]
                calls = list(self._calls)
                self._running = bool(calls)
                if not calls:
                    self._deferral = Deferral()  # the old one refers to rows, whose sessions would keep the model
            with self.outbox:
                for call in ended:
                    _tell(call, None)
            if not calls:
                return
            try:
                self._round(calls)
            except BaseException as error:  # the engine failed: no call can continue
                for call in calls:
                    call.cancelled = True
                    _tell(call, error)

    def fail(self, error: BaseException) -> None:
        """End all calls with an error that `run_rounds` did not expect, such as that of a callback."""
        with self._guard:
            calls, self._calls, self._running = self._calls, [], False
            self._deferral = Deferral()
        with self.outbox:
            for call in calls:
                call.cancelled = True
                with suppress(Exception):  # the next calls must end, too
                    _tell(call, error)

    def _round(self, calls: list[Call]) -> None:
        """Add waiting rows to the batch, run one round, and call `moved` of the calls that have rows."""
        most = max(call.job.width for call in calls)
        going = sum(len(call.active) for call in calls)
        unchecked = 0
        for call in calls:
            while going < most and len(call.active) < call.job.width and not call.exhausted and unchecked < JOINS:
                if not _joined(call, self._deferral):
                    break
                going += 1
                unchecked += not call.active[-1].is_checked
        active = [row for call in calls for row in call.active]
        rows = self._deferral.going(active)
        early = self._early(rows)
        told: set[Row] = set()  # the rows that were reported in this round

        def tell(some: list[Row]) -> None:
            told.update(some)
            left = bound_work(None)  # the limit is for the constraints of the rows, not for making results
            try:
                self._report(calls, some)
            finally:
                bound_work(left)

        if rows:
            self._deferral.begin()
            try:
                if early:
                    step(early, deferral=self._deferral, is_shared=True, ended=tell)
                    tell([row for row in early if row not in told])
                    rows = [row for row in rows if row not in told]
                step(rows, deferral=self._deferral, ended=tell)
            finally:
                self._deferral.end()
        elif not any(row.is_over for row in active) and (active or any(call.preparation for call in calls)):
            self._deferral.wait(_PARKED_SECONDS)
        self._report(calls, [row for row in active if row not in told])
        for call in calls:
            call.active = [row for row in call.active if not row.is_over]
            call.begun.intersection_update(call.active)

    def _early(self, rows: list[Row]) -> list[Row]:
        """Return the rows that run first in a round, so that their first tokens do not wait for the pass of the others.

        These are the rows of streams that have drawn no token and are not slow (`Deferral.is_slow`), if there are other
        rows, and the engine runs prompts in separate calls anyway.
        """
        new = [row for row in rows if row.streams and not row.has_drawn and not self._deferral.is_slow(row)]
        if not new or len(new) == len(rows) or not runs_prompts_separately(new[0].session.model.engine):
            return []
        return new

    def _report(self, calls: list[Call], rows: list[Row]) -> None:
        """Call `moved` of the calls to which these rows belong."""
        known = set(rows)
        with self.outbox:
            for call in calls:
                moved = [row for row in call.active if row in known]
                if not call.streams:
                    moved = [row for row in moved if row.is_over or (row.has_drawn and row not in call.begun)]
                    call.begun.update(moved)
                if moved and not call.cancelled:
                    _act(call, moved)
                    if call.exhausted and all(row.is_over for row in call.active):
                        _tell(call, None)


def _run(wakes: SimpleQueue[Loop | None]) -> None:
    """Run the rounds of the loop that is put into the queue, each time. None ends the thread.

    The thread has no reference to the loop while it waits, so that the loop can be deleted.
    """
    while (loop := wakes.get()) is not None:
        with _SWITCH_INTERVAL:
            try:
                loop.run_rounds()
            except BaseException as error:
                loop.fail(error)
        del loop


def _joined(call: Call, deferral: Deferral) -> bool:
    """Add the next row of a call to the rows that run.

    Returns False if no row was added: there is none, its matcher is still being prepared, or creating it failed.
    """
    preparation, call.preparation = call.preparation, None
    if preparation is not None and not preparation.done:
        call.preparation = preparation
        return False
    try:
        if preparation is not None and preparation.error is not None:
            one = call.waiting.throw(preparation.error)  # the job stores the error as the row's result, or raises it
        else:
            one = next(call.waiting)
        if not isinstance(one, Row):
            call.preparation = deferral.prepare(one)
            return False
    except StopIteration:
        call.exhausted = True
        return False
    except Exception as error:
        call.exhausted = call.cancelled = True
        _tell(call, error)
        return False
    one.streams = call.streams
    call.active.append(one)
    return True


def _act(call: Call, moved: Iterable[Row]) -> None:
    try:
        call.moved(list(moved))
    except Exception as error:  # an error of a row, or of its value, affects only its call
        call.cancelled = True
        _tell(call, error)


def _tell(call: Call, error: BaseException | None) -> None:
    """Call `done`, at most once. Afterwards `moved` is not called any more.

    The call gives up its references to both functions, which usually refer to an object that refers to the call. The
    rows of the call, whose caches are large, would otherwise stay in memory until the next garbage collection.
    """
    done, call.done, call.moved = call.done, _nothing, _nothing
    done(error)


def _nothing(_: object) -> None:
    pass


_LOOPS: WeakKeyDictionary[ModelBase, Loop] = WeakKeyDictionary()
_GUARD = threading.Lock()


def _renew() -> None:
    """Remove all loops in the child of a fork, where their threads do not exist."""
    global _LOOPS, _GUARD
    _LOOPS, _GUARD = WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def loop_of(model: ModelBase) -> Loop:
    """Return the loop of this model."""
    with _GUARD:
        return _LOOPS.setdefault(model, Loop())
