"""The times of the parts of another library's generation loop, as measured by a logits processor."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProcessorTimings"]


@dataclass
class ProcessorTimings:
    """The number of calls of a logits processor, and the total times of the parts of the loop, in seconds.

    `ahead` is a method of some processors. A loop can call it after sampling, to compute the next masks in another
    thread while the model runs. `ContinuousConstraints` sets only `calls`, `mask` (the time for which the loop waits
    for masks) and `copy`.

    Attributes:
        calls: The number of calls.
        model: The time from the end of `ahead` to the next call. Without `ahead`: from the end of a call to the next
            one, sampling included.
        mask: The time of computing masks, that of the other thread included.
        copy: The time of copying masks to the logits and applying them.
        sample: The time from the end of a call to the call of `ahead`; 0 if the loop does not call it.
        overlap: The part of `mask` for which the loop did not wait.
    """

    calls: int = 0
    model: float = 0.0
    mask: float = 0.0
    copy: float = 0.0
    sample: float = 0.0
    overlap: float = 0.0
