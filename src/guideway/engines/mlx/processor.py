"""A logits processor for the loops of mlx-lm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from guideway.errors import EngineError
from guideway.masks.mlx import masked
from guideway.processors import Processor, ProcessorTimings

__all__ = ["ConstrainedLogits", "logits_processor"]

Function = Callable[[Any, Any], Any]


class ConstrainedLogits:
    """See `logits_processor`. `timings`: where the time of its calls went."""

    def __init__(self, processor: Processor, before: Sequence[Function], *, free: bool) -> None:
        self._processor, self._before, self._free = processor, tuple(before), free

    @property
    def timings(self) -> ProcessorTimings:
        return self._processor.timings

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """`tokens`: [tokens]; `logits`: [1, vocabulary]."""
        with self._processor.call():
            for one in self._before:
                logits = one(tokens, logits)
            if self._free:
                return logits
            rows, held = self._processor.masks(np.array(tokens)[None])
            if not held[0]:  # both models of a speculative step are held, so no draft is illegal
                raise EngineError("an illegal token was drawn: another processor forbids all that is legal")
            start = perf_counter()
            found = masked(logits, rows[0])
            self.timings.apply += perf_counter() - start
            return found


def logits_processor(
    constraints: object, tokenizer: object, *, max_tokens: int | None = None, before: Sequence[Function] = ()
) -> ConstrainedLogits:
    """Holds one sequence of mlx-lm to a constraint: `logits_processors=[...]` of `generate` and its kin.

    In a batch (`BatchGenerator`) each sequence has one of its own. `constraints`: a source, Python
    type or automaton. `tokenizer`: the model's. `max_tokens`: what the sequence's is, so that the text is whole by
    then. `before`: functions of (tokens, logits) that run first. Raises what `guideway.compile` raises, and
    `BudgetTooSmall`; in use, `EngineError` for a second sequence, or where another processor leaves nothing.
    """
    return ConstrainedLogits(Processor(constraints, tokenizer, max_tokens=max_tokens), before, free=constraints is None)
