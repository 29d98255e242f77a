"""Threads that prepare constraints for event loops and for the rows of a batch, a few at a time.

Preparing a constraint can take milliseconds or seconds: it is lowered by Python code, which holds the interpreter's
lock (GIL), and its compilation is work of the kernel, which occupies a processor. If many were prepared at once, they
would delay the generation loop of a model and the event loop. So all preparation of a process shares a few slots. A job
is work that needs a slot: a block of `Turn`, or a `Task`.

- A job has a level, which depends on the processor time that it has used. It begins at level 0, or at the level that is
  given to `Task.start`. After the times in `_LEVELS`, it moves to the next level. Each slot takes only jobs up to a
  highest level (`_SLOTS`), so long jobs cannot occupy all slots.
- A free slot is given to the waiting job of the lowest level. At the same level, the rank decides (`RUNNING`, then
  `WAITING`, then `NEW`), and at the same rank the order of arrival.
- A job that runs Python code (`Turn`) moves to its next level at a `checkpoint`. Work of the kernel (`call`, `Task`) is
  limited to the time of its level. If that is not enough, the work is repeated at the next level; the kernel has stored
  its intermediate results.
- Of the threads with a slot, one at a time runs Python code, for a millisecond. Then this thread sleeps for a moment,
  so that another one can take the GIL. `_Turns` describes when several run at once.
- While a generation loop computes in a round (`begin_round`), background threads pause at their next checkpoint, for
  10 ms at most, and before they use a store of the kernel, for 5 ms at most. So a loop delays them, but cannot stop
  them.

In threads that are not background threads, `Turn` and `checkpoint` have no effect, and `call` only calls the function.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import heapq
import itertools
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from guideway import _kernel
from guideway._kernel import WorkDeferred, bound_work

__all__ = [
    "NEW",
    "RUNNING",
    "WAITING",
    "Task",
    "Turn",
    "begin_round",
    "call",
    "checkpoint",
    "end_round",
    "processor_count",
    "run",
    "submit",
]

P = ParamSpec("P")
T = TypeVar("T")


def processor_count() -> int:
    """Return the number of processors that this process may use, at least 1."""
    # A process may be restricted to some of the processors of the machine.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


RUNNING, WAITING, NEW = 0, 1, 2
"""The order of jobs at one level: for rows that generate, for rows that wait, for new calls."""

_LEVELS = (0.02, 0.1, 0.5)  # seconds of processor time after which a job is at the next level
# For each slot, the highest level of its jobs. If this process may use only one or two processors, only one slot takes
# long jobs, so that they cannot occupy all processors while a generation loop runs.
_SLOTS = (0, 2, len(_LEVELS)) if processor_count() > 2 else (1, len(_LEVELS))
_UNITS = 100_000_000  # the units of kernel work that count as one second of processor time
_ACTIVE = 16  # the maximum number of threads of `run`, and of `submit`, that do not wait for a slot
# The maximum number of threads of `run`, and of `submit`. A thread that waits for a slot takes only memory.
_THREADS = 256
_TURN_SECONDS = 0.001
_MOST_PAUSE_SECONDS = 0.01  # the longest time for which Python code waits while generation loops compute
_SLEEP_SECONDS = 0.0002  # how long a thread sleeps after a turn: enough for another one to wake up and take the GIL
_MOST_SECONDS = 0.2  # the longest time that a thread with a slot waits for its turn
_STUCK_SECONDS = 1.0  # a thread without a checkpoint for this time can lose its slot to a waiting one (`reclaim`)


class _Job:
    """A block of `Turn`, or the work of a `Task`: what gets a slot. One thread works on it at a time.

    Attributes:
        rank: `RUNNING`, `WAITING` or `NEW`.
        level: The level, see the module's docstring.
        slot: The slot that the job has; None: it has none.
        is_in_kernel: Whether the job runs in the kernel. Always True for a `Task`.
        pulse: The last time at which the job got a slot, or at which its processor time was counted.
        wake: Is called when the job gets a slot.
    """

    __slots__ = ("_since", "_used", "is_in_kernel", "level", "pulse", "rank", "slot", "wake")

    def __init__(self, rank: int, level: int, wake: Callable[[], None]) -> None:
        self.rank, self.level, self.wake = rank, level, wake
        self.slot: int | None = None
        self.is_in_kernel = False
        self.pulse = 0.0
        self._used = 0.0
        self._since = 0.0

    def begin(self) -> None:
        """Begin to measure the processor time of this thread."""
        self._since = time.thread_time()
        self.pulse = time.perf_counter()

    def count(self) -> None:
        """Add the processor time since the last call to the time that the job has used, and adapt its level."""
        now = time.thread_time()
        self._used += now - self._since
        self._since, self.pulse = now, time.perf_counter()
        while self.level < len(_LEVELS) and self._used >= _LEVELS[self.level]:
            self.level += 1

    @property
    def units(self) -> int | None:
        """The kernel work after which the job moves to the next level, at least that of a millisecond.

        None: the job is at the last level.
        """
        if self.level == len(_LEVELS):
            return None
        before = _LEVELS[self.level - 1] if self.level else 0.0
        return max(int((_LEVELS[self.level] - max(self._used, before)) * _UNITS), _UNITS // 1000)


class _Slots:
    """Gives slots to jobs (see the module's docstring)."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._count = itertools.count()
        self._holders: list[_Job | None] = [None] * len(_SLOTS)
        self._waiting: list[tuple[int, int, int, _Job]] = []

    def request(self, job: _Job) -> None:
        """Add a job to the queue. `job.wake` is called when the job gets a slot, which can be before this returns."""
        with self._guard:
            heapq.heappush(self._waiting, (job.level, job.rank, next(self._count), job))
            self._grant()

    def release(self, job: _Job) -> None:
        """Take back the slot of a job, if it has one."""
        with self._guard:
            if job.slot is not None:
                self._holders[job.slot] = None
                job.slot = None
                self._grant()

    def reclaim(self) -> None:
        """Take back the slots of jobs that run Python code and reached no checkpoint for `_STUCK_SECONDS`.

        Such a thread probably waits for something. It continues without a slot until its next checkpoint.
        """
        with self._guard:
            latest = time.perf_counter() - _STUCK_SECONDS
            for slot, job in enumerate(self._holders):
                if job is not None and not job.is_in_kernel and job.pulse < latest:
                    self._holders[slot] = job.slot = None
            self._grant()

    def _grant(self) -> None:
        for slot, most in enumerate(_SLOTS):
            if self._holders[slot] is None and self._waiting and self._waiting[0][0] <= most:
                job = heapq.heappop(self._waiting)[3]
                self._holders[slot], job.slot, job.pulse = job, slot, time.perf_counter()
                job.wake()


class _Turns:
    """Gives turns to threads with a slot: one thread at a time, in the order of their calls of `begin`.

    A turn protects no data: a thread that has waited for `_MOST_SECONDS` continues without a turn. So no deadlock is
    possible if a thread holds another lock while it waits.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Lock] = deque()

    def begin(self) -> bool:
        """Wait for the turn. Returns True if this thread has it, False if it has waited for too long."""
        with self._guard:
            if not self._taken:
                self._taken = True
                return True
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        if mine.acquire(timeout=_MOST_SECONDS):  # `end` in another thread releases it
            return True
        with self._guard:
            if mine not in self._waiting:
                return True
            self._waiting.remove(mine)
            return False

    def end(self) -> None:
        """End the turn of this thread, and give the turn to the thread that has waited for the longest time, if any."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


class _Rounds:
    """Counts the parts of rounds that have begun and not ended (`begin_round`).

    In such a part, a generation loop computes in Python or in the kernel: before or after a call of the model.

    Attributes:
        count: The number of these parts.
    """

    def __init__(self) -> None:
        self.count = 0
        self._guard = threading.Lock()
        self._none = threading.Event()
        self._none.set()

    def begin(self) -> None:
        with self._guard:
            self.count += 1
            self._none.clear()
        _THREAD.is_in_round = True
        _kernel.begin_round()

    def end(self) -> None:
        """End the part that this thread has begun. It has no effect if `_renew` has ended this part after a fork."""
        _kernel.end_round()
        if not _THREAD.is_in_round:
            return
        _THREAD.is_in_round = False
        with self._guard:
            self.count -= 1
            if not self.count:
                self._none.set()

    def wait(self) -> bool:
        """Wait until `count` is 0, at most `_MOST_PAUSE_SECONDS`. Returns whether it is 0."""
        return self._none.wait(_MOST_PAUSE_SECONDS)


class Cancelled(BaseException):
    """Raised in a background thread if its caller does not wait any more, or if the interpreter ends."""


class _Caller:
    """The caller of `run`. `is_cancelled`: it does not wait for the result any more."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def run(self, function: Callable[[], T]) -> T:
        """Call a function in this background thread; `_check_caller` then checks this caller."""
        _THREAD.caller = self
        try:
            return function()
        finally:
            _THREAD.caller = None


class _ThreadState(threading.local):
    pool: _ThreadPool | None = None  # None: this is not a background thread
    caller: _Caller | None = None
    job: _Job | None = None  # of the block of `Turn` in which the thread is
    has_turn = False
    until: float | None = None  # the time at which this thread's turn ends; None: it is not in a turn
    yields = False  # whether the turn also ends when a round of a generation loop begins
    is_in_round = False  # whether this thread has begun a part of a round


_THREAD = _ThreadState()


def _begin_turn() -> None:
    _THREAD.has_turn = _POOL.turns.begin()
    _THREAD.yields = _POOL.rounds.wait()
    _THREAD.until = time.perf_counter() + _TURN_SECONDS


def _end_turn() -> None:
    _THREAD.until = None
    if _THREAD.has_turn:
        _THREAD.has_turn = False
        _POOL.turns.end()


def _wait_for_slot(job: _Job) -> None:
    """Wait until the job of this thread has a slot."""
    granted, pool = threading.Lock(), _THREAD.pool
    granted.acquire()
    job.wake = granted.release
    _POOL.slots.request(job)
    if not granted.acquire(blocking=False):
        if pool is not None:
            pool.replace()
        while not granted.acquire(timeout=_STUCK_SECONDS):
            _POOL.slots.reclaim()
        if pool is not None:
            pool.resume()
    job.begin()


class Turn:
    """A context manager. In its block, a background thread has a slot, and background threads take turns.

    Usually one of them runs Python code at a time (see `_Turns`). The block has no effect in other threads, and within
    another block. Code in C that takes long and releases the GIL should run in `call`. Entering the block raises
    `Cancelled` if the caller no longer waits or the thread pool is closed. A class is faster here than
    `contextlib.contextmanager`.

    Args:
        rank: `RUNNING`, `WAITING` or `NEW`: the order of the jobs of one level that wait for a slot.
    """

    __slots__ = ("_job", "_rank")

    def __init__(self, rank: int = NEW) -> None:
        self._rank = rank

    def __enter__(self) -> None:
        self._job = None
        if _THREAD.pool is not None and _THREAD.job is None:
            _check_caller()
            self._job = _THREAD.job = _Job(self._rank, 0, _nothing)
            _wait_for_slot(self._job)
            _begin_turn()

    def __exit__(self, *_: object) -> None:
        if self._job is not None:
            _end_turn()
            _THREAD.job = None
            _POOL.slots.release(self._job)


def _nothing() -> None:
    pass


def checkpoint() -> None:
    """If the turn of this thread has lasted a millisecond, or a round has begun, end the turn and wait for the next one.

    Loops that lower constraints call it at each step; a call that does not wait takes about 0.1 us. After the wait, it
    raises `Cancelled` if the caller no longer waits or the thread pool is closed.
    """
    until = _THREAD.until
    if until is None or (time.perf_counter() < until and not (_POOL.rounds.count and _THREAD.yields)):
        return
    job = _THREAD.job
    _end_turn()
    if job is not None:
        time.sleep(_SLEEP_SECONDS)
        _resume(job, job.level)


def _resume(job: _Job, level: int) -> None:
    """Wait for the next turn of a job, at this level or a higher one.

    If the level has changed, or the job has lost its slot, wait for a slot, too.

    Raises `Cancelled` after the wait, as `_check_caller` does.
    """
    before = job.level
    job.level = level
    job.count()
    if job.level != before or job.slot is None:
        _POOL.slots.release(job)
        _wait_for_slot(job)
    _begin_turn()
    _check_caller()


def _check_caller() -> None:
    """Raise `Cancelled` if this thread's caller no longer waits for its result, or if the thread pool is closed."""
    caller, pool = _THREAD.caller, _THREAD.pool
    if (caller is not None and caller.is_cancelled) or (pool is not None and pool.is_closed):
        raise Cancelled


def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of the kernel that releases the GIL, and return its result.

    In a block of `Turn`, other threads run Python code meanwhile, and the job's level limits the work. If the
    work exceeds this limit, the job moves to the next level and the function is called again.

    Raises:
        WorkDeferred: The work exceeds a lower limit, which the caller has set by `bound_work`.
        Cancelled: The caller of the background thread does not wait any more, or the pool of threads is closed.
    """
    job = _THREAD.job
    if job is None or _THREAD.until is None:
        return function(*args, **kwargs)
    while True:
        outer, units = bound_work(None), job.units
        by_level = units is not None and (outer is None or units < outer)
        granted = units if by_level else outer
        bound_work(granted)
        _end_turn()
        job.is_in_kernel, is_repeated = True, False
        try:
            return function(*args, **kwargs)
        except WorkDeferred:
            if not by_level:
                raise
            is_repeated = True
        finally:
            left = bound_work(None) or 0
            used = 0 if granted is None or is_repeated else granted - left
            bound_work(None if outer is None else outer - used)
            job.is_in_kernel = False
            _resume(job, job.level + is_repeated)


class Task:
    """Work of the kernel in a worker thread, for a loop that does not wait for it. Subclasses implement `run`.

    Args:
        tell: A function without arguments. The worker thread calls it when the task is done.

    Attributes:
        done: Whether the task has ended.
        error: The exception that `run` raised; None: it raised none.
    """

    __slots__ = ("_job", "_tell", "done", "error")

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self.done = False
        self.error: Exception | None = None

    def run(self) -> None:
        """Do the work. Raises `WorkDeferred` if it exceeds the limit of the thread; it is then called again."""
        raise NotImplementedError

    def start(self, rank: int, level: int = 0) -> None:
        """Add the task to the queue, as a job of this rank and level. Raises `RuntimeError` if no thread can be started."""
        pool = _POOL
        pool.start_workers()
        self._job = _Job(rank, level, lambda: pool.ready.put(self))
        self._job.is_in_kernel = True
        pool.slots.request(self._job)

    def attempt(self, slots: _Slots) -> None:
        """Call `run` in the slot of the job, with the limit of its level.

        If the limit is exceeded, put the job into the queue again, at the next level.
        """
        job = self._job
        level, is_over = job.level, True
        job.begin()
        bound_work(job.units)
        try:
            self.run()
        except WorkDeferred:
            level, is_over = level + 1, False
        except Exception as error:
            self.error = error
        finally:
            bound_work(None)
        job.count()
        job.level = max(job.level, level)
        slots.release(job)
        if is_over:
            job.wake = _nothing  # it refers to this object, which refers to the job
            self.done = True
            self._tell()
        else:
            slots.request(job)


class _ThreadPool:
    """Threads that call functions in the order in which they are given. They are started when they are needed.

    At most `most_active` threads work. A thread that waits for a slot is replaced, up to `most` threads. A new
    thread takes a function, and then starts the next thread if one is needed. So the thread of an event loop, which
    calls `submit`, does not spend time on starting several.
    """

    def __init__(self, name: str, most_active: int, most: int) -> None:
        self._name, self._most_active, self._most = name, most_active, most
        self._changed = threading.Condition()
        self._given: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads: list[threading.Thread] = []
        self._active = self._idle = 0
        self._is_starting = False  # a thread that is being started starts the next one
        self.is_closed = False

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function in one of the threads, and return its future.

        Raises `RuntimeError` if there is no thread and none can be started.
        """
        item: tuple[Future[T], Callable[[], T]] = Future(), function
        with self._changed:
            self._given.append(item)
            self._changed.notify()
        try:
            self._start_if_needed()
        except RuntimeError:
            with self._changed:
                if self._threads or item not in self._given:
                    return item[0]  # a thread that exists calls the function
                self._given.remove(item)
            raise
        return item[0]

    def replace(self) -> None:
        """Let another thread work in place of this one, which is going to wait."""
        with self._changed:
            self._active -= 1
        with suppress(RuntimeError):
            self._start_if_needed()

    def resume(self) -> None:
        """Let this thread work again."""
        with self._changed:
            self._active += 1

    def close(self) -> None:
        """Cancel the functions that have not begun, and wait for the end of the others."""
        with self._changed:
            self.is_closed = True
            for future, _ in self._given:
                future.cancel()
            self._given.clear()
            self._changed.notify_all()
        for thread in list(self._threads):
            with suppress(RuntimeError):  # it was not started
                thread.join()

    def _start_if_needed(self) -> None:
        with self._changed:
            if self._is_starting or not self._needs_one():
                return
            self._is_starting = True
        self._start()

    def _needs_one(self) -> bool:
        has_room = self._active < self._most_active and len(self._threads) < self._most
        return len(self._given) > self._idle and has_room and not self.is_closed

    def _start(self) -> None:
        """Start a thread, which sets `_is_starting` to False, or starts another one."""
        made = threading.Thread(target=self._work, name=self._name, daemon=True)
        with self._changed:
            self._threads.append(made)
        try:
            made.start()
        except BaseException:
            with self._changed:
                self._threads.remove(made)
                self._is_starting = False
            raise

    def _work(self) -> None:
        _THREAD.pool = self
        _kernel.work_in_background()
        item = self._next()
        with self._changed:
            self._is_starting = self._needs_one()
            starts = self._is_starting
        if starts:
            with suppress(RuntimeError):
                self._start()
        while item is not None:
            future, function = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except BaseException as error:
                    future.set_exception(error)
            with self._changed:
                self._active -= 1
            del item, future, function
            item = self._next()

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """Wait for the next function, and return it with its future. None: the pool is closed, the thread must end."""
        with self._changed:
            self._idle += 1
            while not self._given and not self.is_closed:
                self._changed.wait()
            self._idle -= 1
            self._active += 1
            return self._given.popleft() if self._given else None


class _Pool:
    """The threads, their slots and turns."""

    def __init__(self) -> None:
        self.turns, self.slots, self.rounds = _Turns(), _Slots(), _Rounds()
        self.threads = _ThreadPool("guideway-prepare", _ACTIVE, _THREADS)
        self.finishers = _ThreadPool("guideway-finish", _ACTIVE, _THREADS)
        self.ready: queue.SimpleQueue[Task | None] = queue.SimpleQueue()  # tasks with a slot
        self._guard = threading.Lock()
        self._workers: list[threading.Thread] = []

    def start_workers(self) -> None:
        """Start the threads that run tasks, one per slot, unless they have been started."""
        with self._guard:
            while len(self._workers) < len(_SLOTS):
                made = threading.Thread(target=self._work, name="guideway-constraints", daemon=True)
                made.start()
                self._workers.append(made)

    def close(self) -> None:
        """End the threads. Calls that have begun end at their next checkpoint."""
        for _ in self._workers:
            self.ready.put(None)
        self.threads.close()
        self.finishers.close()
        for worker in self._workers:
            worker.join()

    def _work(self) -> None:
        _kernel.work_in_background()
        while (task := self.ready.get()) is not None:
            task.attempt(self.slots)
            del task


_POOL = _Pool()


def _renew() -> None:
    """Replace `_POOL` in the child process after a fork, where its threads do not exist.

    If this thread has begun a part of a round, this part ends, too.
    """
    global _POOL
    _POOL = _Pool()
    _THREAD.is_in_round = False
    _kernel.end_round()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
atexit.register(lambda: _POOL.close())  # a thread in the kernel must not outlive the interpreter


def begin_round() -> None:
    """Begin a part of a round of a generation loop in which this thread computes, so that background threads pause.

    The module's docstring describes the pauses. The parts of one thread must not overlap.
    """
    _POOL.rounds.begin()


def end_round() -> None:
    """End the part of a round that `begin_round` began."""
    _POOL.rounds.end()


async def run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a background thread, and return its result. The arguments are those of `asyncio.to_thread`.

    If the caller is cancelled, a call that has not begun is not made. A call that has begun ends early only where it
    begins a block of `Turn`, or waits inside such a block for its next turn. Otherwise it continues to its end, and its
    result is lost.
    """
    caller = _Caller()
    within = partial(contextvars.copy_context().run, partial(function, *args, **kwargs))
    try:
        return await asyncio.wrap_future(_POOL.threads.submit(partial(caller.run, within)))
    except asyncio.CancelledError:
        caller.is_cancelled = True
        raise


def submit(function: Callable[[], None]) -> None:
    """Call a function in a background thread, in a block of `Turn(RUNNING)`, and do not wait for it.

    The function must not raise: the exception would be lost. The threads are separate from those of `run`, so that the
    call does not wait for a thread that prepares a constraint.

    Raises:
        RuntimeError: There is no such thread yet, and none can be started.
    """

    def in_turns() -> None:
        with Turn(RUNNING):
            function()

    _POOL.finishers.submit(in_turns)
