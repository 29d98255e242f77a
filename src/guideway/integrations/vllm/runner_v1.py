"""The logits processor for vLLM's V1 model runner, which has a persistent batch and one token list per request."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

from guideway.integrations._common import Follower, fill
from guideway.integrations.vllm.masking import mask
from guideway.integrations.vllm.requested import follower_of, requested_in_extra_args, tokenizer_of_engine
from guideway.tokenizers import Tokenizer

__all__ = ["RunnerV1"]


class _Row:
    """The state of a request, and the list of its output tokens, to which vLLM appends."""

    def __init__(self, follower: Follower, tokens: list[int]) -> None:
        self.follower, self.tokens, self._taken = follower, tokens, 0

    def go_on(self) -> Follower:
        """Advance the follower by the new tokens, and return it."""
        if len(self.tokens) < self._taken:  # vLLM starts a preempted request again
            self.follower.reset()
            self._taken = 0
        self.follower.advance(self.tokens[self._taken :])
        self._taken = len(self.tokens)
        return self.follower


class RunnerV1(LogitsProcessor):  # type: ignore[misc]  # vLLM's types are not read here
    """The implementation of `LogitsProcessor` for the V1 runner."""

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        self._tokenizer: Tokenizer = tokenizer_of_engine(vllm_config)
        self._rows: dict[int, _Row] = {}
        _show_tokens()

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise `ValueError` for an unknown constraint name.

        The constraint itself is validated by `checks.validated`.
        """
        requested_in_extra_args(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """Return False, because masks can change the most probable token."""
        return False

    @property
    def is_used(self) -> bool:
        """Whether a request of the batch has a constraint."""
        return bool(self._rows)

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Update the rows after requests were removed from, added to or moved in the batch."""
        process_dict_updates(self._rows, batch_update, self._new_row)

    def _new_row(self, params: Any, prompt: list[int] | None, tokens: list[int]) -> _Row | None:
        follower = follower_of(params, self._tokenizer)
        return None if follower is None else _Row(follower, tokens)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Advance the requests by their new tokens, then mask logits, float32 [rows, vocabulary], in place.

        Returns the same tensor. Rows without a constraint are not changed.
        """
        if self._rows:
            followers = [row.go_on() for row in self._rows.values()]
            rows = np.empty((len(followers), -(-logits.shape[1] // 32)), np.uint32)
            fill(followers, rows)
            mask(logits, list(self._rows), rows, followers)
        return logits


@functools.cache
def _show_tokens() -> None:
    """Wrap a method of vLLM so that token lists contain the sampled ids, not -1, when masks are computed.

    With async scheduling, vLLM (0.32) fills in the ids only if its flag says that a processor needs them, and ignores
    processors from entry points for this flag. The wrapper sets the flag while a constrained request is in the batch.
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
