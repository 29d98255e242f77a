"""The logits processor as vLLM's V1 model runner wants it: a persistent batch, and lists that tokens are added to."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

from guideway.integrations._common import Follower, fill
from guideway.integrations.vllm.masking import mask
from guideway.integrations.vllm.requested import asked, follower_of, tokenizer_of_engine
from guideway.tokenizers import Tokenizer

__all__ = ["RunnerV1"]


class _Row:
    """A request's follower, and the list of its tokens that vLLM goes on writing."""

    def __init__(self, follower: Follower, tokens: list[int]) -> None:
        self.follower, self.tokens, self._taken = follower, tokens, 0

    def go_on(self) -> Follower:
        """Take the tokens that have come."""
        if len(self.tokens) < self._taken:  # a request that was interrupted begins again
            self.follower.reset()
            self._taken = 0
        self.follower.advance(self.tokens[self._taken :])
        self._taken = len(self.tokens)
        return self.follower


class RunnerV1(LogitsProcessor):  # type: ignore[misc]  # vLLM's types are not read here
    """See `LogitsProcessor` in this folder."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        self._tokenizer: Tokenizer = tokenizer_of_engine(vllm_config)
        self._rows: dict[int, _Row] = {}
        _show_tokens()

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """ValueError for arguments that say no constraint; what the constraint itself says is read by `plugin`."""
        asked(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """Masks change what is most probable."""
        return False

    @property
    def is_used(self) -> bool:
        """Whether any request of the batch has a constraint."""
        return bool(self._rows)

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Rows that left, came and moved."""
        process_dict_updates(self._rows, batch_update, self._new_row)

    def _new_row(self, params: Any, prompt: list[int] | None, tokens: list[int]) -> _Row | None:
        follower = follower_of(params, self._tokenizer)
        return None if follower is None else _Row(follower, tokens)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """`logits`: float32 [rows, vocabulary]; masked where they lie. Rows without a constraint are not touched."""
        if self._rows:
            followers = [row.go_on() for row in self._rows.values()]
            rows = np.empty((len(followers), -(-logits.shape[1] // 32)), np.uint32)
            fill(followers, rows)
            mask(logits, list(self._rows), rows, followers)
        return logits


@functools.cache
def _show_tokens() -> None:
    """The list of a request's tokens holds them, and not -1, when masks are made.

    With async scheduling vLLM (0.32) fills in what was drawn only where it knows that somebody reads it, and does not
    ask processors that come by an entry point. So it is told, while a constrained request is in the batch.
    """
    from vllm.v1.worker.gpu_input_batch import InputBatch

    make = InputBatch._make_sampling_metadata

    @functools.wraps(make)
    def made(batch: Any) -> Any:
        before = batch.logitsprocs_need_output_token_ids
        used = any(isinstance(one, RunnerV1) and one.is_used for one in batch.logitsprocs.all)
        batch.logitsprocs_need_output_token_ids = before or used
        try:
            return make(batch)
        finally:
            batch.logitsprocs_need_output_token_ids = before

    InputBatch._make_sampling_metadata = made
