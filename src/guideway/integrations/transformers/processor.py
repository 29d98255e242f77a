"""A logits processor for `generate` of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch
from transformers import LogitsProcessor

from guideway.errors import NoAllowedTokenError
from guideway.integrations._common import Chained, Function, Processor
from guideway.integrations.transformers.loops import Loops
from guideway.masks.torch import TorchMasks, pinned_rows

__all__ = ["ConstrainedLogits", "logits_processor"]


class ConstrainedLogits(Chained, LogitsProcessor):  # type: ignore[misc]  # transformers gives no types
    """See `logits_processor`. `timings`: where the time of the loop went."""

    def __init__(self, processor: Processor, before: Sequence[Function], *, in_place: bool | None) -> None:
        super().__init__(processor, before)
        self._in_place, self._loops = in_place, Loops()
        self._apply = TorchMasks(in_place=bool(in_place))
        self._rows = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """`input_ids`: int64 [rows, tokens]; `scores`: [rows, vocabulary]."""
        processor = self._processor
        if self._before:
            scores = self._after_others(input_ids, scores)
        if processor.is_free:
            return scores
        if self._in_place is None:
            self._apply.in_place = self._loops.are_done()
        found = scores if self._apply.in_place else self._apply.target(scores)
        nothing = processor.masked(input_ids, scores, found)
        if nothing is None:
            with processor:
                found, nothing = self._masked(input_ids, scores)
        if nothing:
            _refuse(nothing)
        return found

    def _masked(self, input_ids: Any, scores: Any) -> tuple[Any, list[int]]:
        """Rows that are other ones now, and scores that are not float32 on the CPU."""
        if scores.is_cuda and not self._rows:
            self._processor.rows.room = pinned_rows
        self._rows = len(input_ids)
        ids = _on_host(input_ids)
        self.check()  # on a GPU the last call has surely been carried out by now: its tokens are here
        rows, held = self._processor.masks(ids)
        start = perf_counter()
        found = self._apply(scores, rows, held)
        self.timings.copy += perf_counter() - start
        return found

    def ahead(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """One of `generate`'s `stopping_criteria`: begins with the next masks while the model runs. Stops nothing."""
        ids = _on_host(input_ids)
        self.check()
        if len(ids) == self._rows:  # beams ask for more rows than they keep
            self._processor.ahead(ids)
        return torch.zeros(len(ids), dtype=torch.bool, device=input_ids.device)

    def reset(self) -> None:
        """Prepare for another `generate` call, with other prompts. The constraints stay compiled."""
        super().reset()
        self._apply.nothing()
        self._loops, self._rows = Loops(), 0

    def check(self) -> None:
        """Raise where the last call left a row with nothing to draw; off the CPU that is known only later."""
        _refuse(self._apply.nothing())


def _on_host(ids: Any) -> Any:
    """As an array; `force` alone is four calls of PyTorch, some 10 us behind a model that has filled the caches."""
    return ids.numpy() if ids.is_cpu else ids.numpy(force=True)


def _refuse(rows: Sequence[int]) -> None:
    if rows:
        why = "another processor forbids all that is legal there"
        raise NoAllowedTokenError(f"row {rows[0]} has nothing left to draw: {why}")


def logits_processor(
    constraints: object,
    tokenizer: object,
    *,
    max_tokens: int | None = None,
    before: Sequence[Function] = (),
    in_place: bool | None = None,
) -> ConstrainedLogits:
    """Holds one call of `generate(logits_processor=[...])` to constraints: greedy, sampling, beams, drafts, batches.

    `constraints`: one for all prompts, or a list with one per prompt (None: free): sources, Python types, automata.
    `tokenizer`: the model's. `max_tokens`: what `max_new_tokens` is, so that every output is whole by then; without it
    `generate` cuts what is longer. `before`: functions of (input_ids, scores) that run first.
    `in_place`: whether the scores are written over on a CPU, which is cheaper than a copy; by default where `generate`
    reads them no more: not with prompt lookup or `output_logits=True`, and not where it is not `generate` that asks.
    False where another processor keeps the scores that pass through it.
    With `stopping_criteria=[processor.ahead]` too, masks are found while the model runs.
    Under beams, a hypothesis for which nothing legal was left has the score -inf, and its text is not to be used.
    Raises what `guideway.compile` raises, `BudgetTooSmallError`; in `generate`, `ProcessorReuseError` for a second call without
    `reset()`, `ProcessorError` for rows that do not fit the constraints, and `NoAllowedTokenError` where another processor
    leaves nothing (on a GPU at the next token, or from
    `check`: the answer is not waited for).
    """
    return ConstrainedLogits(Processor(constraints, tokenizer, max_tokens=max_tokens), before, in_place=in_place)
