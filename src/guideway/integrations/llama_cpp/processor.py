"""A logits processor for the loop of llama-cpp-python."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from types import TracebackType
from typing import Any

import numpy as np

from guideway import masks
from guideway.errors import ProcessorError
from guideway.integrations._common import Chained, Function, Processor, no_token_left
from guideway.tokenizers import Tokenizer

__all__ = ["ConstrainedLogits", "logits_processor"]


class ConstrainedLogits(Chained):
    """The processor that `logits_processor` returns.

    llama.cpp calls it from C, where an exception is lost and generation would continue without a mask. Therefore an
    error is stored in `error` and the text ends at once. The error is raised when the `with` block is left, and during
    generation with `stopping_criteria=processor.check`.
    """

    def __init__(self, processor: Processor, before: Sequence[Function], eos_ids: Sequence[int]) -> None:
        super().__init__(processor, before)
        self._eos_ids = list(eos_ids)
        self.error: BaseException | None = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Mask scores, and return them. `input_ids`: int [tokens]; `scores`: float32 [vocabulary]. Never raises.

        After an error, only end tokens are allowed.
        """
        try:
            if self.error is None:
                return self._masked(input_ids, scores)
        except BaseException as error:
            self.error = error
        scores[:] = -np.inf
        scores[self._eos_ids] = 0.0
        return scores

    def reset(self) -> None:
        """Prepare for another completion. The constraint stays compiled."""
        super().reset()
        self.error = None

    def check(self, *_: Any) -> bool:
        """Raise the stored error if there is one; else return False. It can be an item of `stopping_criteria`."""
        if self.error is not None:
            raise self.error
        return False

    def __enter__(self) -> ConstrainedLogits:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.check()

    def _masked(self, input_ids: Any, scores: Any) -> Any:
        scores = self._after_others(input_ids, scores)
        ids, logits = np.asarray(input_ids, np.int64)[None], scores[None]
        nothing = self._processor.masked(ids, logits, logits)
        if nothing is None:
            with self._processor:
                found = self._processor.masks(ids)
                start = perf_counter()
                nothing = masks.masked_into(logits, logits, *found)
                self.timings.copy += perf_counter() - start
        if nothing:
            raise no_token_left()
        return scores


def logits_processor(
    constraints: object, tokenizer: object, *, max_tokens: int | None = None, before: Sequence[Function] = ()
) -> ConstrainedLogits:
    """Return a processor that constrains one completion of llama-cpp-python.

        with logits_processor(constraint, llm) as processor:
            llm(prompt, logits_processor=[processor])            # or create_chat_completion

    Leaving the block raises the error that occurred inside.

    Args:
        constraints: A constraint, a Python type or an automaton.
        tokenizer: The `Llama`, or another value that `Tokenizer.of` accepts.
        max_tokens: The `max_tokens` of the completion. The text is complete within it. None: it may be truncated.
        before: Functions of (input_ids, scores) that are called first and return scores.

    Raises:
        ConstraintError: The constraint cannot be compiled.
        BudgetTooSmallError: The shortest complete output needs more than `max_tokens`.
        ProcessorError: The `Llama` has a draft model. It then does not report the position of the logits.
        ProcessorReuseError: Raised by the block: a second completion without `reset()`.
        NoAllowedTokenError: Raised by the block: another processor excluded all allowed tokens.
    """
    if getattr(tokenizer, "draft_model", None) is not None:
        raise ProcessorError(
            "a Llama with draft_model= does not report the position of each call; use a Llama without a draft model"
        )
    table = Tokenizer.of(tokenizer)
    return ConstrainedLogits(Processor(constraints, table, max_tokens=max_tokens), before, table.eos_ids)
