"""A logits processor for `generate` of transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from transformers import LogitsProcessor

from guideway.errors import EngineError
from guideway.masks.torch import masked
from guideway.processors import Processor, ProcessorTimings

__all__ = ["ConstrainedLogits", "logits_processor"]

Function = Callable[[Any, Any], Any]


class ConstrainedLogits(LogitsProcessor):  # type: ignore[misc]  # transformers gives no types
    """See `logits_processor`. `timings`: where the time of its calls went."""

    def __init__(self, processor: Processor, before: Sequence[Function], *, in_place: bool) -> None:
        self._processor, self._before, self._in_place = processor, tuple(before), in_place

    @property
    def timings(self) -> ProcessorTimings:
        return self._processor.timings

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """`input_ids`: int64 [rows, tokens]; `scores`: [rows, vocabulary]."""
        with self._processor.call():
            for one in self._before:
                scores = one(input_ids, scores)
            rows, held = self._processor.masks(input_ids.numpy(force=True))
            start = perf_counter()
            found, nothing = masked(scores, rows, held, in_place=self._in_place)
            self.timings.apply += perf_counter() - start
            if nothing:
                why = "another processor forbids all that is legal there"
                raise EngineError(f"row {nothing[0]} has nothing left to draw: {why}")
            return found


def logits_processor(
    constraints: object,
    tokenizer: object,
    *,
    max_tokens: int | None = None,
    before: Sequence[Function] = (),
    in_place: bool = False,
) -> ConstrainedLogits:
    """Holds one call of `generate(logits_processor=[...])` to constraints: greedy, sampling, beams, drafts, batches.

    `constraints`: one for all prompts, or a list with one per prompt (None: free): sources, Python types, automata.
    `tokenizer`: the model's. `max_tokens`: what `max_new_tokens` is, so that every output is whole by then; without it
    `generate` cuts what is longer. `before`: functions of (input_ids, scores) that run first.
    `in_place`: write over the scores instead of a copy of them, which is cheaper in large batches, and wrong with
    prompt lookup or `output_logits=True`, where transformers goes on to use what it handed in.
    Under beams, a hypothesis for which nothing legal was left has the score -inf, and its text is not to be used.
    Raises what `guideway.compile` raises, `BudgetTooSmall`; in `generate`, `EngineError` for a second call, for rows
    that do not fit the constraints, and where another processor leaves nothing.
    """
    return ConstrainedLogits(Processor(constraints, tokenizer, max_tokens=max_tokens), before, in_place=in_place)
