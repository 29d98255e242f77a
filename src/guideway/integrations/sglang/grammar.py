"""One request's grammar, as SGLang's scheduler and sampler want it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject, GrammarRow

from guideway.integrations._common import Follower, fill
from guideway.integrations.sglang import masking

__all__ = ["GuidewayGrammar"]


class GuidewayGrammar(BaseGrammarObject):  # type: ignore[misc]  # SGLang's types are not read here
    """One request's place in its constraint. Masks are int32 [rows, ceil(vocabulary / 32)], a set bit is legal."""

    def __init__(self, follower: Follower) -> None:
        super().__init__()
        self.follower = follower

    def accept_token(self, token: int) -> None:
        """Take a token that was drawn. Raises ValueError, which ends the request with an error."""
        self.current_token = token
        if not self.finished and not self.follower.advance([token]):
            raise ValueError(str(self.follower.error)) from self.follower.error

    def rollback(self, k: int) -> None:
        """Give the last `k` tokens back."""
        self.follower.rollback(k)

    def is_terminated(self) -> bool:
        """Whether an end token was taken."""
        return self.follower.is_finished

    def copy(self) -> GuidewayGrammar:
        """Another one that stands where this one does: for the next request with the same constraint."""
        return GuidewayGrammar(self.follower.copy())

    def try_jump_forward(self, tokenizer: Any) -> None:
        """None: what is forced is drawn token by token, as the model would spell it."""
        return

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Every bit set, on the CPU; `move_vocab_mask` moves it."""
        return masking.allocate(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Row `idx` becomes the mask of the next token. Never raises: see `Follower`."""
        self.follower.fill(vocab_mask.numpy().view(np.uint32)[idx])

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """The rows of many requests, in one call into the kernel where all of them are ours."""
        if any(not isinstance(entry.grammar, GuidewayGrammar) for entry in entries):
            BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)  # behind reasoning
        elif entries:
            made = np.empty((len(entries), vocab_mask.shape[1]), np.uint32)
            fill([entry.grammar.follower for entry in entries], made)
            vocab_mask.numpy().view(np.uint32)[[entry.row for entry in entries]] = made

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Every bit set."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """To where the logits are, without waiting for it."""
        return masking.move(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """`logits`: [rows, vocabulary]; illegal ones become -inf, in place."""
        masking.apply(logits, vocab_mask)
