"""`BatchProgress`: a progress bar that shows the rate and the expected remaining time. `duration`: seconds as text."""

from __future__ import annotations

import time
from typing import Any

__all__ = ["BatchProgress", "duration"]


class BatchProgress:
    """A progress bar on standard error. Without a terminal, nothing is shown.

    Args:
        total: The sum of the sizes of all requests; None: unknown.

    Attributes:
        total: The argument.
        done: The number of results, errors included.
        failed: The number of errors.
    """

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.done = self.failed = 0
        self._bytes = self._skipped = 0
        self._start = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> BatchProgress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress as Bar, TextColumn

        console = Console(stderr=True)
        if console.is_terminal:
            self._bar = Bar(BarColumn(), TextColumn("{task.description}"), console=console)
            self._bar.add_task(self.text(), total=self.total)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def skip(self, size: int) -> None:
        """Count a request that has a result from an earlier run. It does not change the rate."""
        self._skipped += size

    def advance(self, size: int, failed: bool) -> None:
        """Count a result.

        Args:
            size: The size of its request.
            failed: Whether it is an error.
        """
        self.done += 1
        self.failed += failed
        self._bytes += size
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._bytes + self._skipped, description=self.text())

    @property
    def seconds(self) -> float:
        """The time since the start, in seconds."""
        return time.monotonic() - self._start

    @property
    def seconds_left(self) -> float | None:
        """The expected seconds until the end, by the rate so far; None: unknown."""
        if self.total is None or not self._bytes:
            return None
        return max(0, self.total - self._bytes - self._skipped) * self.seconds / self._bytes

    def text(self) -> str:
        """Return the text next to the bar: results, rate, errors and remaining time."""
        rate = self.done / self.seconds if self.seconds > 0 else 0.0
        parts = [f"{self.done:,} results", f"{rate:,.1f}/s"]
        if self.failed:
            parts.append(f"{self.failed:,} errors")
        if (left := self.seconds_left) is not None:
            parts.append(f"{duration(left)} left")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a duration in seconds as text, such as "1:02:03" or "0:07"."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
