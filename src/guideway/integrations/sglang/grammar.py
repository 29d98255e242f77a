"""`GuidewayGrammar`: the state of one request, with the interface that SGLang's scheduler and sampler call."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject, GrammarRow

from guideway.integrations._common import Follower, fill
from guideway.integrations.sglang import masking

__all__ = ["GuidewayGrammar"]


class GuidewayGrammar(BaseGrammarObject):  # type: ignore[misc]  # SGLang's types are not read here
    """The state of one request. Masks are int32 [rows, ceil(vocabulary / 32)]; a set bit allows the token."""

    def __init__(self, follower: Follower) -> None:
        super().__init__()
        self.follower = follower

    def accept_token(self, token: int) -> None:
        """Advance by a sampled token.

        Raises `ValueError` for an illegal token, which ends the request with an error.
        """
        self.current_token = token
        if not self.finished and not self.follower.advance([token]):
            raise ValueError(str(self.follower.error)) from self.follower.error

    def rollback(self, k: int) -> None:
        """Undo the last `k` tokens."""
        self.follower.rollback(k)

    def is_terminated(self) -> bool:
        """Return whether an end token was taken."""
        return self.follower.is_finished

    def copy(self) -> GuidewayGrammar:
        """Return a copy with the same state, for the next request with the same constraint."""
        return GuidewayGrammar(self.follower.copy())

    def try_jump_forward(self, tokenizer: Any) -> None:
        """Return None, so that forced text is sampled token by token, and not inserted with another tokenization."""
        return

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Return masks with all bits set, on the CPU; `move_vocab_mask` moves them."""
        return masking.allocate(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the mask of the next token to row `idx`. An error is stored, not raised: see `Follower`."""
        self.follower.fill(vocab_mask.numpy().view(np.uint32)[idx])

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Write the masks of many requests, in one call of the kernel if all of them use this backend."""
        if any(not isinstance(entry.grammar, GuidewayGrammar) for entry in entries):
            # Some objects are in a wrapper of SGLang, see `plugin._make`.
            BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)
        elif entries:
            made = np.empty((len(entries), vocab_mask.shape[1]), np.uint32)
            fill([entry.grammar.follower for entry in entries], made)
            vocab_mask.numpy().view(np.uint32)[[entry.row for entry in entries]] = made

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Set all bits, so that all tokens are allowed."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """Copy masks to the device of the logits, with `non_blocking`."""
        return masking.move(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set the logits of tokens that are not allowed to -inf, in place. `logits`: shape [rows, vocabulary]."""
        masking.apply(logits, vocab_mask)
