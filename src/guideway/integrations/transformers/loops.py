"""Whether a loop of `generate` reads again what it hands to its processors: transformers tells a processor nothing."""

from __future__ import annotations

import sys
from inspect import unwrap
from types import CodeType, FrameType

from transformers import GenerationMixin

__all__ = ["Loops"]

_LOOPS = [getattr(GenerationMixin, name, None) for name in ("_sample", "_beam_search", "_assisted_decoding")]
_CODES = {unwrap(one).__code__ for one in _LOOPS if one is not None}


class Loops:
    """What is known of the loops of one call of `generate`."""

    def __init__(self) -> None:
        self._known: dict[CodeType, bool] = {}

    def are_done(self) -> bool:
        """Whether whoever asks the caller is such a loop, and does not read again what it handed in.

        Prompt lookup hands in the same scores for all of a draft, and `output_logits=True` keeps them; everywhere else
        they are a copy already. A processor has no other way to know: the scores look the same, nothing holds them yet,
        and neither the model nor its configuration is passed. It has to look at each call, as drafts and the loop that
        they are for ask by turns. Whatever else asks (a loop of somebody's own, a function between) is taken to read
        them again.
        """
        try:
            loop = sys._getframe(3)  # here, the processor, transformers' list of processors, and what asks that
        except ValueError:
            return False
        known = self._known.get(loop.f_code)
        return self._look_at(loop) if known is None else known

    def _look_at(self, loop: FrameType) -> bool:
        known = False
        if loop.f_code in _CODES:
            names = loop.f_locals
            known = not getattr(names.get("generation_config"), "output_logits", True)
            if isinstance(names, dict):  # before Python 3.13 a copy, which would hold on to the first logits
                names.clear()
        self._known[loop.f_code] = known
        return known
