"""A logits processor for `generate` of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch
from transformers import LogitsProcessor

from guideway.errors import EngineError
from guideway.masks.torch import TorchMasks, pinned_rows
from guideway.processors import Chained, Function, Processor

__all__ = ["ConstrainedLogits", "logits_processor"]


class ConstrainedLogits(Chained, LogitsProcessor):  # type: ignore[misc]  # transformers gives no types
    """See `logits_processor`. `timings`: where the time of the loop went."""

    def __init__(self, processor: Processor, before: Sequence[Function], *, in_place: bool) -> None:
        super().__init__(processor, before)
        self._apply = TorchMasks(in_place=in_place)
        self._rows = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """`input_ids`: int64 [rows, tokens]; `scores`: [rows, vocabulary]."""
        with self._processor.call():
            if scores.is_cuda and not self._rows:
                self._processor.rows.room = pinned_rows
            scores, self._rows = self._after_others(input_ids, scores), len(input_ids)
            ids = input_ids.numpy(force=True)
            self.check()  # on a GPU the last call has surely been carried out by now: its tokens are here
            rows, held = self._processor.masks(ids)
            start = perf_counter()
            found, nothing = self._apply(scores, rows, held)
            self.timings.copy += perf_counter() - start
            _refuse(nothing)
            return found

    def ahead(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """One of `generate`'s `stopping_criteria`: begins with the next masks while the model runs. Stops nothing."""
        ids = input_ids.numpy(force=True)
        self.check()
        if len(ids) == self._rows:  # beams ask for more rows than they keep
            self._processor.ahead(ids)
        return torch.zeros(len(ids), dtype=torch.bool, device=input_ids.device)

    def check(self) -> None:
        """Raise where the last call left a row with nothing to draw; off the CPU that is known only later."""
        _refuse(self._apply.nothing())


def _refuse(rows: Sequence[int]) -> None:
    if rows:
        why = "another processor forbids all that is legal there"
        raise EngineError(f"row {rows[0]} has nothing left to draw: {why}")


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
    `in_place`: on a CPU, write over the scores, which is cheaper in large batches, and wrong with prompt lookup or
    `output_logits=True`, where transformers goes on to use what it handed in.
    With `stopping_criteria=[processor.ahead]` too, masks are found while the model runs.
    Under beams, a hypothesis for which nothing legal was left has the score -inf, and its text is not to be used.
    Raises what `guideway.compile` raises, `BudgetTooSmall`; in `generate`, `EngineError` for a second call, for rows
    that do not fit the constraints, and where another processor leaves nothing (on a GPU at the next token, or from
    `check`: the answer is not waited for).
    """
    return ConstrainedLogits(Processor(constraints, tokenizer, max_tokens=max_tokens), before, in_place=in_place)
