"""Where the time of an engine's own loop goes, as its processor sees it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProcessorTimings"]


@dataclass
class ProcessorTimings:
    """Seconds spent in how many calls.

    `mask`: finding out what is legal, wherever that ran. `copy`: bringing it to the logits and writing it over them.
    `overlap`: the part of `mask` that the loop did not wait for, as it was found on another thread (`ahead`).
    `sample`: from a call's end to `ahead`, where the loop calls that; 0 where it does not. `model`: from there (or
    from the call's end: then drawing is in it) to the next call.
    """

    calls: int = 0
    model: float = 0.0
    mask: float = 0.0
    copy: float = 0.0
    sample: float = 0.0
    overlap: float = 0.0
