"""The grammar backend of SGLang: `--grammar-backend guideway`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    InvalidGrammarObject,
)

from guideway.compiler import compile
from guideway.errors import GuidewayError
from guideway.serving import Follower, fill, requested
from guideway.vocabulary import Tokenizer

__all__ = ["GuidewayBackend", "GuidewayGrammar"]


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
        return torch.full((batch_size, -(-vocab_size // 32)), -1, dtype=torch.int32)

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
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """`logits`: [rows, vocabulary]; illegal ones become -inf, in place."""
        bits = (vocab_mask[:, :, None] >> torch.arange(32, device=vocab_mask.device)) & 1
        logits.masked_fill_(bits.flatten(1)[:, : logits.shape[1]] == 0, float("-inf"))


class GuidewayBackend(BaseGrammarBackend):  # type: ignore[misc]  # SGLang's types are not read here
    """One per scheduler. SGLang compiles in its own threads; the kernel lets go of the GIL while it does."""

    def __init__(self, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | int | None = None) -> None:
        super().__init__()
        ends = [eos_token_ids] if isinstance(eos_token_ids, int) else sorted(eos_token_ids or ())
        self._tokenizer = Tokenizer.of(tokenizer)
        self._stops = [one for one in ends if one < vocab_size]

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """`key_string`: a schema as text, or `$$ANY$$` for any JSON object."""
        return self._made("json_object" if key_string == "$$ANY$$" else "json", key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """`key_string`: a pattern that the whole text matches."""
        return self._made("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """`key_string`: GBNF where it has `::=`, else Lark."""
        return self._made("grammar", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """`key_string`: a structural tag as JSON, in either form."""
        return self._made("structural_tag", key_string)

    def _made(self, kind: str, spec: str) -> BaseGrammarObject:
        try:
            automaton = compile(requested(kind, spec), self._tokenizer)
        except GuidewayError as error:
            return InvalidGrammarObject(f"{type(error).__name__}: {error}")
        return GuidewayGrammar(Follower(automaton, self._tokenizer.eos_ids, stop_ids=self._stops))
