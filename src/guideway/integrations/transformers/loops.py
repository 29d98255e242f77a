"""Detects whether a loop of `generate` reads the scores after it called its processors.

There is no API for this.
"""

from __future__ import annotations

import sys
from inspect import unwrap
from types import CodeType, FrameType

from transformers import GenerationMixin

__all__ = ["Loops"]

_LOOPS = [getattr(GenerationMixin, name, None) for name in ("_sample", "_beam_search", "_assisted_decoding")]
_CODES = {unwrap(one).__code__ for one in _LOOPS if one is not None}


class Loops:
    """Stores for each loop of one call of `generate` whether its scores can be overwritten."""

    def __init__(self) -> None:
        self._known: dict[CodeType, bool] = {}

    def are_done(self) -> bool:
        """Return whether the calling loop is known and does not read the scores later, so they can be overwritten.

        Prompt lookup passes the same scores for all draft tokens, and with `output_logits=True` the loop stores the
        scores. In all other cases the scores are already a copy. The processor receives neither the model nor its
        configuration, so the stack frame of the caller is inspected. Every call is checked, because the loops of a
        draft model and of the main model alternate. Unknown callers are assumed to read the scores later.
        """
        try:
            loop = sys._getframe(3)  # frames: this method, the processor, the list of processors, its caller
        except ValueError:
            return False
        known = self._known.get(loop.f_code)
        return self._look_at(loop) if known is None else known

    def _look_at(self, loop: FrameType) -> bool:
        known = False
        if loop.f_code in _CODES:
            names = loop.f_locals
            known = not getattr(names.get("generation_config"), "output_logits", True)
            if isinstance(names, dict):  # a copy before Python 3.13; it would keep the logits alive
                names.clear()
        self._known[loop.f_code] = known
        return known
