"""Compiling several constraints at once, and compiling without blocking an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from guideway._kernel import Automaton
from guideway.compiler.compilation import compile
from guideway.errors import ConstraintError, LimitExceededError
from guideway.tokenizers import Tokenizer, Vocabulary

__all__ = ["CompileLimits", "acompile", "acompile_many", "compile_many"]

_LOOK_SECONDS = 0.05  # interval at which the deadline and `cancelled` are checked


@dataclass(frozen=True)
class CompileLimits:
    """Limits of a batch.

    Attributes:
        seconds: Maximum time for the whole batch, in seconds; None for no limit.
        failures: Number of constraints that may fail; their errors are returned in their places.
    """

    seconds: float | None = None
    failures: int = 0


def compile_many(
    constraints: Iterable[object],
    vocabulary: Vocabulary | Tokenizer,
    *,
    cache: bool = True,
    threads: int | None = None,
    limits: CompileLimits | None = None,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> list[Automaton | ConstraintError]:
    """Compile several constraints in threads.

    Args:
        constraints: The constraints.
        vocabulary: As for `compile`.
        cache: As for `compile`.
        threads: Number of threads; by default at most 4.
        limits: Limits of the batch.
        progress: Called as `progress(done, total)` in this thread after each constraint.
        cancelled: Called about twenty times a second. If it returns True, the batch is cancelled.

    Returns:
        The automata (or errors) in the order of the constraints.

    Raises:
        ConstraintError: A constraint beyond `limits.failures` failed. The message has its number.
        LimitExceededError: The time limit was reached.
        concurrent.futures.CancelledError: The batch was cancelled. Compilations that have begun are completed and
            cached.
    """
    wanted, bounds = list(constraints), limits or CompileLimits()
    results: dict[int, Automaton | ConstraintError] = {}
    deadline = None if bounds.seconds is None else time.monotonic() + bounds.seconds
    pool = ThreadPoolExecutor(threads or min(4, os.cpu_count() or 1), "guideway-compile")
    try:
        waiting: dict[Future[Automaton], int] = {
            pool.submit(contextvars.copy_context().run, compile, constraint, vocabulary, cache=cache): number
            for number, constraint in enumerate(wanted)
        }
        while waiting:
            if cancelled is not None and cancelled():
                raise CancelledError(f"cancelled after {len(results)} of {len(wanted)} constraints")
            if deadline is not None and time.monotonic() > deadline:
                raise LimitExceededError(
                    f"the time limit of {bounds.seconds} s was reached after {len(results)} of {len(wanted)}"
                    " constraints; raise limits.seconds"
                )
            done, _ = wait(waiting, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                number = waiting.pop(future)
                results[number] = _result(future, number, results, bounds.failures)
                if progress is not None:
                    progress(len(results), len(wanted))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return [results[number] for number in range(len(wanted))]


def _result(
    future: Future[Automaton], number: int, results: dict[int, Automaton | ConstraintError], failures: int
) -> Automaton | ConstraintError:
    try:
        return future.result()
    except ConstraintError as error:
        named = type(error)(f"constraint {number}: {error}", error.place)
        if sum(isinstance(one, ConstraintError) for one in results.values()) >= failures:
            raise named from error
        return named


async def acompile(constraint: object, vocabulary: Vocabulary | Tokenizer, *, cache: bool = True) -> Automaton:
    """Like `compile`, in a thread, so that the event loop is not blocked."""
    return await asyncio.to_thread(compile, constraint, vocabulary, cache=cache)


async def acompile_many(
    constraints: Iterable[object],
    vocabulary: Vocabulary | Tokenizer,
    *,
    cache: bool = True,
    threads: int | None = None,
    limits: CompileLimits | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Automaton | ConstraintError]:
    """Like `compile_many`, without blocking. Cancelling the task cancels it. `progress` is called in another thread."""
    stop = False
    try:
        return await asyncio.to_thread(
            compile_many, constraints, vocabulary, cache=cache, threads=threads, limits=limits, progress=progress,
            cancelled=lambda: stop,
        )  # fmt: skip
    finally:
        stop = True
