"""Two clocks around a call, and statistics of many calls.

Wall time is what a user waits for. On a shared machine, other processes cause its tail. Therefore medians and means are
wall time, and the 99th percentile and beyond are CPU time of the calling thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter_ns, process_time_ns, thread_time_ns
from typing import Any

import numpy as np

from .engines import Walker

Times = np.ndarray[Any, np.dtype[np.float64]]  # [2, n]: wall and CPU time, microseconds

COLUMNS = ("p50", "mean", "p90", "p99", "p99.9", "max")


def timed(call: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    """What a call gives, its wall time and the CPU time of all threads, in microseconds."""
    cpu, wall = process_time_ns(), perf_counter_ns()
    made = call()
    wall_end, cpu_end = perf_counter_ns(), process_time_ns()
    return made, ((wall_end - wall) / 1000, (cpu_end - cpu) / 1000)


def walked(walker: Walker, tokens: Iterable[int]) -> Times | None:
    """Times each advance and the mask after it; returns None if a token is refused."""
    walls, cpus = [], []
    advance, fill, step, row = walker
    for token in tokens:
        cpu, wall = thread_time_ns(), perf_counter_ns()
        try:
            if step is not None:
                taken = step(token, row)
            else:
                taken = advance(token)
                fill()
        except Exception:  # each engine raises different errors for a token that does not fit
            return None
        wall_end, cpu_end = perf_counter_ns(), thread_time_ns()
        if taken is False:
            return None
        walls.append(wall_end - wall)
        cpus.append(cpu_end - cpu)
    return np.array([walls, cpus], np.float64) / 1000


@dataclass(frozen=True)
class Summary:
    """Percentiles of many calls, microseconds."""

    count: int
    values: dict[str, float]


def summary(times: Iterable[Times]) -> Summary:
    """p50, mean, p90 of the wall time; p99, p99.9 and the maximum of the CPU time."""
    wall, cpu = np.concatenate([*times, np.zeros((2, 0))], axis=1)
    if not len(wall):
        return Summary(0, dict.fromkeys(COLUMNS, float("nan")))
    p99, p999 = np.percentile(cpu, [99, 99.9])
    numbers = (np.median(wall), wall.mean(), np.percentile(wall, 90), p99, p999, cpu.max())
    return Summary(len(wall), dict(zip(COLUMNS, map(float, numbers), strict=True)))


def overhead() -> float:
    """Returns the overhead of the clocks in each wall time, microseconds: the time of an empty call."""
    made = walked(Walker(lambda token: None, lambda: None), range(5000))
    assert made is not None  # noqa: S101 (nothing refuses here)
    return float(np.median(made[0]))
