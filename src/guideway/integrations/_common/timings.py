"""The times of the parts of another library's generation loop, as measured by a logits processor."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProcessorTimings"]


@dataclass
class ProcessorTimings:
    """The number of calls of a logits processor, and the times of the parts of the loop in seconds.

    Attributes:
        calls: The number of calls.
        mask: The time of computing masks, in all threads.
        copy: The time of copying masks to the logits and applying them.
        overlap: The part of `mask` for which the loop did not wait, because it ran in another thread (`ahead`).
        sample: The time from the end of a call to the call of `ahead`; 0 if the loop does not call it.
        model: The time from `ahead` to the next call. Without `ahead`: from the end of a call, so it includes sampling.
    """

    calls: int = 0
    model: float = 0.0
    mask: float = 0.0
    copy: float = 0.0
    sample: float = 0.0
    overlap: float = 0.0
