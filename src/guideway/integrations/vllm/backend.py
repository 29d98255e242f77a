"""The structured-output backend of vLLM: `backend="guideway"`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from guideway.integrations._common import Follower
from guideway.integrations.vllm.requested import automaton_of, tokenizer_of
from guideway.masks import Row

__all__ = ["GuidewayBackend", "GuidewayGrammar"]


class GuidewayBackend(StructuredOutputBackend):  # type: ignore[misc]  # vLLM's types are not read here
    """One per engine. Grammars are compiled in vLLM's own threads; the kernel lets go of the GIL while it does."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        self._tokenizer = tokenizer_of(tokenizer)
        self._bits = Bits()

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> GuidewayGrammar:
        """The grammar of one request. Raises what `guideway.compile` raises, which ends that request alone."""
        automaton = automaton_of((request_type.name.lower(), grammar_spec), self._tokenizer)
        follower = Follower(automaton, self._tokenizer.eos_ids, stop_token_ids=stop_token_ids or ())
        return GuidewayGrammar(follower, self._bits)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """int32 [max_num_seqs, ceil(vocabulary / 32)], every bit set."""
        return torch.full((max_num_seqs, -(-self.vocab_size // 32)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Nothing is held but memory."""


class Bits:
    """A bitmask's rows as an array; the last one's are kept, for vLLM hands in the same tensor row by row."""

    def __init__(self) -> None:
        self._last: tuple[torch.Tensor | None, Row] = (None, np.zeros((0, 0), np.uint32))

    def rows(self, bitmask: torch.Tensor) -> Row:
        """uint32 [sequences, words], over the tensor's own memory."""
        known, rows = self._last
        if known is not bitmask:
            rows = bitmask.numpy().view(np.uint32)
            self._last = bitmask, rows
        return rows


class GuidewayGrammar(StructuredOutputGrammar):  # type: ignore[misc]  # vLLM's types are not read here
    """One request's place in its constraint. Nothing here raises in the middle of a step: see `Follower`."""

    def __init__(self, follower: Follower, bits: Bits) -> None:
        self.follower, self._bits = follower, bits

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Whether all were taken, up to the end; False ends the request with an error."""
        self.follower.name = f"request {request_id}"
        return self.follower.advance(tokens)

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The first of these (a draft's tokens) that could be taken."""
        return self.follower.validate(tokens)

    def rollback(self, num_tokens: int) -> None:
        """Give the last tokens back: those of drafts that masks were filled behind."""
        self.follower.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Row `batch_index` becomes the mask of the next token."""
        self.follower.fill(self._bits.rows(bitmask)[batch_index])

    def is_terminated(self) -> bool:
        """Whether an end token was taken."""
        return self.follower.is_finished

    def reset(self) -> None:
        """Back to where no token was taken."""
        self.follower.reset()
