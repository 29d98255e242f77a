"""A logits processor for the loops of mlx-lm."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import mlx.core as mx
import numpy as np

from guideway.integrations._common import Chained, Function, Processor, no_token_left
from guideway.masks.mlx import masked

__all__ = ["ConstrainedLogits", "logits_processor"]

_START: Any = mx.async_eval


class ConstrainedLogits(Chained):
    """The processor that `logits_processor` returns."""

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """Return masked logits. `tokens`: [tokens]; `logits`: [1, vocabulary]."""
        with self._processor:
            logits = self._after_others(tokens, logits)
            if self._processor.is_free:
                return logits
            ids = np.array(tokens)[None]
            _START(logits)  # the model runs while the mask is computed
            rows, held = self._processor.masks(ids)
            if not held[0]:
                # The row has an illegal token. Draft tokens are constrained, too, so the illegal token was drawn
                # because no allowed token was left.
                raise no_token_left()
            start = perf_counter()
            found = masked(logits, rows[0])
            self.timings.copy += perf_counter() - start
            return found


def logits_processor(
    constraints: object, tokenizer: object, *, max_tokens: int | None = None, before: Sequence[Function] = ()
) -> ConstrainedLogits:
    """Return a processor that constrains one sequence of mlx-lm, for `logits_processors=[...]` of `generate`.

    In a batch (`BatchGenerator`), make one processor for each sequence.

    Args:
        constraints: A constraint, a Python type or an automaton.
        tokenizer: The tokenizer of the model.
        max_tokens: The `max_tokens` of the sequence. The text is complete within it. None: it may be truncated.
        before: Functions of (tokens, logits) that are called first and return logits.

    Raises:
        ConstraintError: The constraint cannot be compiled.
        BudgetTooSmallError: The shortest complete output needs more than `max_tokens`.
        ProcessorReuseError: Raised during a second sequence without `reset()`.
        NoAllowedTokenError: Raised during generation: another processor excluded all allowed tokens.
    """
    return ConstrainedLogits(Processor(constraints, tokenizer, max_tokens=max_tokens), before)
