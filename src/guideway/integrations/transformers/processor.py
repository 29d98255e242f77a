"""A logits processor for `generate` of transformers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

import torch
from transformers import LogitsProcessor

from guideway.integrations._common import Chained, Function, Processor, no_token_left
from guideway.integrations.transformers.end_tokens import with_end_tokens
from guideway.integrations.transformers.loops import Loops
from guideway.masks.torch import TorchMasks, pinned_rows
from guideway.tokenizers import Tokenizer

__all__ = ["ConstrainedLogits", "logits_processor"]


class ConstrainedLogits(Chained, LogitsProcessor):  # type: ignore[misc]  # transformers has no type annotations
    """The processor that `logits_processor` returns."""

    def __init__(self, processor: Processor, before: Sequence[Function], *, in_place: bool | None) -> None:
        super().__init__(processor, before)
        self._in_place, self._loops = in_place, Loops()
        self._apply = TorchMasks(in_place=bool(in_place))
        self._rows = 0
        self._seen: tuple[Any, int, Any] | None = None  # the ids in the last `ahead`: tensor, its version, array

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return masked scores. `input_ids`: int64 [rows, tokens]; `scores`: [rows, vocabulary]."""
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
        """Mask scores if `Processor.masked` cannot. Returns the masked scores, and the rows without an allowed token.

        `Processor.masked` cannot mask them if the rows are not those of the last call with one more token each, if the
        scores are not float32 on the CPU, or if `ahead` has started the masks.
        """
        if scores.is_cuda and not self._rows:
            self._processor.rows.room = pinned_rows
        self._rows = len(input_ids)
        ids = self._ids(input_ids)
        self.check()  # on a GPU, the result of the last call is known now: its tokens were read
        rows, held = self._processor.masks(ids)
        start = perf_counter()
        found = self._apply(scores, rows, held)
        self.timings.copy += perf_counter() - start
        return found

    def ahead(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Start to compute the next masks while the model runs. It is an item for `stopping_criteria` of `generate`.

        Returns False for each row, so generation is not stopped.
        """
        ids = _on_host(input_ids)
        self._seen = None if input_ids.is_inference() else (input_ids, input_ids._version, ids)
        self.check()
        if len(ids) == self._rows:  # beam search calls this with more rows than it continues
            self._processor.ahead(ids)
        return torch.zeros(len(ids), dtype=torch.bool, device=input_ids.device)

    def _ids(self, input_ids: Any) -> Any:
        """Return the ids as an array. Ids that `ahead` has already copied are not copied again.

        On a GPU, a second copy would wait for the model, which runs after `ahead`.
        """
        seen, self._seen = self._seen, None
        if seen is not None and seen[0] is input_ids and seen[1] == input_ids._version:
            return seen[2]
        return _on_host(input_ids)

    def reset(self) -> None:
        """Prepare for another `generate` call, with other prompts. The constraints stay compiled."""
        super().reset()
        self._apply.nothing()
        self._loops, self._rows, self._seen = Loops(), 0, None

    def check(self) -> None:
        """Raise `NoAllowedTokenError` if the last call left a row without an allowed token.

        On a GPU, the call itself does not raise the error, because it does not wait for the result.
        """
        _refuse(self._apply.nothing())


def _on_host(ids: Any) -> Any:
    """Return a tensor as an array.

    `numpy(force=True)` is avoided on the CPU, because it makes four PyTorch calls (10 us).
    """
    return ids.numpy() if ids.is_cpu else ids.numpy(force=True)


def _refuse(rows: Sequence[int]) -> None:
    if rows:
        raise no_token_left(rows[0])


def logits_processor(
    constraints: object,
    tokenizer: object,
    *,
    max_tokens: int | None = None,
    eos_ids: Iterable[int] | int | None = None,
    before: Sequence[Function] = (),
    in_place: bool | None = None,
) -> ConstrainedLogits:
    """Return a processor that constrains one call of `generate(logits_processor=[...])`.

    Greedy search, sampling, beam search, assisted decoding and batches are supported. With
    `stopping_criteria=[processor.ahead]` in addition, masks are computed while the model runs. With beam search, a
    hypothesis without an allowed token has the score -inf; do not use its text.

    Args:
        constraints: One for all prompts, or a list with one for each prompt (None: no constraint): constraints, Python
            types, automata.
        tokenizer: The tokenizer of the model.
        max_tokens: The value of `max_new_tokens`. Every output is complete within it. None: `generate` truncates an
            output that is not complete after `max_new_tokens`.
        eos_ids: The ids that end a text: `model.generation_config.eos_token_id`. None: those of the tokenizer and of
            the local generation_config.json of the folder from which it was loaded.
        before: Functions of (input_ids, scores) that are called first and return scores.
        in_place: Whether scores on a CPU are overwritten, which is cheaper than a copy. None: they are copied if
            `generate` reads them again (prompt lookup, `output_logits=True`) and for callers other than `generate`, and
            overwritten otherwise. Pass False if another processor stores the scores that it receives.

    Raises:
        ConstraintError: A constraint cannot be compiled.
        BudgetTooSmallError: The shortest complete output needs more than `max_tokens`.
        ProcessorReuseError: In `generate`: a second call without `reset()`.
        ProcessorError: In `generate`: the rows do not fit the constraints.
        NoAllowedTokenError: In `generate`: another processor excluded all allowed tokens. On a GPU it is raised at the
            next token, or by `check`, because the processor does not wait for the result.
    """
    if eos_ids is None:
        table = with_end_tokens(tokenizer)
    else:
        table = Tokenizer.of(tokenizer, eos_ids=[eos_ids] if isinstance(eos_ids, int) else eos_ids)
    return ConstrainedLogits(Processor(constraints, table, max_tokens=max_tokens), before, in_place=in_place)
