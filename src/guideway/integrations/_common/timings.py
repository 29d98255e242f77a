"""Where the time of another library's loop is spent, as measured by its processor."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProcessorTimings"]


@dataclass
class ProcessorTimings:
    """Seconds, and the number of calls.

    Attributes:
        mask: Computing masks, on any thread.
        copy: Copying masks to the logits and applying them.
        overlap: The part of `mask` for which the loop did not wait, because it ran on another thread (`ahead`).
        sample: From the end of a call to `ahead`, if the loop calls it; else 0.
        model: From `ahead` to the next call. Without `ahead`, from the end of a call, so that it includes sampling.
    """

    calls: int = 0
    model: float = 0.0
    mask: float = 0.0
    copy: float = 0.0
    sample: float = 0.0
    overlap: float = 0.0
