"""Prepares constraints and results for event loops, in threads that release the interpreter's lock regularly.

Translating a constraint is Python code, which holds the interpreter's lock (GIL). A thread that waits for the lock gets
it after the switch interval (5 ms), once per waiting thread, so several translations at once would delay the steps of a
model's loop by tens of milliseconds. Here only one background thread at a time runs Python code. It may do so for a
millisecond (a turn); then the lock is free for a moment, and the next waiting thread has its turn. So a short
translation does not wait for the end of a long one.

In threads that are not background threads, `turn` and `checkpoint` do nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import ParamSpec, TypeVar

__all__ = ["checkpoint", "run", "submit", "turn"]

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 32
_FINISHERS = 4
_TURN_SECONDS = 0.001
_PAUSE_SECONDS = 0.0002  # enough for a waiting thread to wake up and to take the lock
_MOST_SECONDS = 0.2  # the longest time that a thread waits for its turn


class _Turns:
    """Gives turns to threads: one thread at a time, in the order of their calls of `begin`.

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
        """End the turn of this thread. The next waiting thread has its turn."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


class _ThreadState(threading.local):
    is_background = False
    has_turn = False
    until: float | None = None  # the time at which this thread's turn ends; None: it runs without turns now


_THREAD = _ThreadState()


def _begin_turn() -> None:
    _THREAD.has_turn = _POOL.turns.begin()
    _THREAD.until = time.perf_counter() + _TURN_SECONDS


def _end_turn() -> None:
    _THREAD.until = None
    if _THREAD.has_turn:
        _THREAD.has_turn = False
        _POOL.turns.end()


class _CodeTurn:
    """The context manager that `turn` returns. A class is faster here than `contextlib.contextmanager`."""

    __slots__ = ("_begun",)

    def __enter__(self) -> None:
        self._begun = _THREAD.is_background and _THREAD.until is None
        if self._begun:
            _begin_turn()

    def __exit__(self, *_: object) -> None:
        if self._begun:
            _end_turn()


def turn() -> AbstractContextManager[None]:
    """Return a context in which a background thread runs Python code in turns with the other background threads.

    Code in C that releases the GIL needs no turn.
    """
    return _CodeTurn()


def checkpoint() -> None:
    """If the turn of this thread has lasted a millisecond, end it and wait for the next one.

    Loops that translate constraints call it at each step; a call takes less than 0.1 us.
    """
    until = _THREAD.until
    if until is None or time.perf_counter() < until:
        return
    _end_turn()
    time.sleep(_PAUSE_SECONDS)
    _begin_turn()


class _Pool:
    """The threads and their turns."""

    def __init__(self) -> None:
        self.turns = _Turns()
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="guideway-prepare", initializer=_begin_thread)
        self.finishers = ThreadPoolExecutor(_FINISHERS, thread_name_prefix="guideway-finish", initializer=_begin_thread)


def _begin_thread() -> None:
    _THREAD.is_background = True


_POOL = _Pool()


def _renew() -> None:
    global _POOL
    _POOL = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)  # the threads do not exist in the child


async def run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a background thread, and return its result. The arguments are those of `asyncio.to_thread`."""
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_POOL.threads, call)


def submit(function: Callable[[], None]) -> None:
    """Call a function in another background thread, and do not wait for it. The function must not raise.

    These threads are separate from those of `run`, so that the call need not wait until constraints are prepared.

    Raises:
        RuntimeError: No thread can be started.
    """

    def in_turns() -> None:
        with turn():
            function()

    _POOL.finishers.submit(in_turns)
