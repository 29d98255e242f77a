"""The logits processor for vLLM's V2 model runner.

This runner numbers its requests (`req_idx`), and its logits have a row for each draft token.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext, LogitsProcessor, LogitsProcRequestState

from guideway.integrations._common import Follower, fill
from guideway.integrations.vllm.masking import mask
from guideway.integrations.vllm.requested import follower_of, requested_in_extra_args, tokenizer_of_engine
from guideway.tokenizers import Tokenizer

__all__ = ["RunnerV2"]


class RunnerV2(LogitsProcessor):  # type: ignore[misc]  # vLLM's types are not read here
    """The implementation of `LogitsProcessor` for the V2 runner. Each step waits until the last tokens are sampled."""

    def __init__(self, vllm_config: Any, req_states: LogitsProcRequestState) -> None:
        self._tokenizer: Tokenizer = tokenizer_of_engine(vllm_config)
        self._states = req_states
        self._slots: dict[int, Follower] = {}

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise `ValueError` for an unknown constraint name.

        The constraint itself is validated by `checks.validated`.
        """
        requested_in_extra_args(sampling_params)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Start the request with the number `req_idx`. Returns whether the request has a constraint."""
        self._slots.pop(req_idx, None)
        follower = follower_of(sampling_params, self._tokenizer)
        if follower is not None:
            self._slots[req_idx] = follower
        return follower is not None

    def apply(self, logits: torch.Tensor, ctx: LogitsContext) -> torch.Tensor:
        """Advance the requests by their new tokens, then mask logits, float32 [rows, vocabulary], in place.

        The row of a draft token gets the mask for the position after that token. The row of a draft token that is not
        allowed, and the later rows of its request, are not masked.
        """
        if not any(int(slot) in self._slots for slot in ctx.idx_mapping_np):
            return logits
        slots, tokens, places = (
            one.tolist() for one in (ctx.expanded_idx_mapping.cpu(), ctx.input_ids.cpu(), ctx.pos.cpu())
        )
        held: list[tuple[int, Follower]] = []
        astray: set[int] = set()
        for row, (slot, token, place) in enumerate(zip(slots, tokens, places, strict=True)):
            if slot in self._slots and slot not in astray:
                follower = self._slots[slot]
                if self._go_on(slot, follower, token, place, is_draft=bool(held) and slots[row - 1] == slot):
                    held.append((row, follower.copy()))
                else:
                    astray.add(slot)
        rows = np.empty((len(held), -(-logits.shape[1] // 32)), np.uint32)
        followers = [follower for _, follower in held]
        fill(followers, rows)
        mask(logits, [row for row, _ in held], rows, followers)
        for row, copied in held:  # the error of a copy is that of its request
            self._slots[slots[row]].error = self._slots[slots[row]].error or copied.error
        return logits

    def _go_on(self, slot: int, follower: Follower, token: int, place: int, *, is_draft: bool) -> bool:
        """Bring the follower to the state after `token`, which is at position `place` of the sequence.

        Returns False, and does not take the token, for a draft token that is not allowed; otherwise True. At a token of
        the prompt, the follower returns to its first state.
        """
        start = int(self._states.prompt_len.np[slot])
        before = place - start  # number of output tokens before this one
        if before < 0:
            follower.reset()
            return True
        if before <= follower.position and follower.error is None:
            follower.rollback(follower.position - before)
        elif before > follower.position and not follower.is_finished and follower.error is None:
            missed = self._states.all_token_ids.gpu[slot, start + follower.position : start + before]
            follower.advance(missed.tolist())  # a preempted request continues
        if is_draft and not follower.validate([token]):
            return False
        follower.advance([token])
        return True
