"""The structured-output backend of vLLM: `backend="guideway"`."""

from __future__ import annotations

import importlib.metadata
import logging
from typing import Any

import numpy as np
import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from guideway.integrations._common import Follower, StepBudget
from guideway.integrations.vllm.requested import automaton_of, tokenizer_of
from guideway.masks import Row

__all__ = ["GuidewayBackend", "GuidewayGrammar"]

_LOG = logging.getLogger("vllm.guideway")
"""vLLM shows the records of loggers whose names begin with "vllm."."""


class GuidewayBackend(StructuredOutputBackend):  # type: ignore[misc]  # vLLM's types are not read here
    """The backend of one engine. vLLM calls `compile_grammar` in threads; the kernel then releases the GIL."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        self._tokenizer = tokenizer_of(tokenizer)
        self._bits = Bits()
        self._budget = StepBudget()
        version = importlib.metadata.version("guideway")
        _LOG.info("guideway %s enforces the structured outputs of this engine (%d tokens)", version, vocab_size)

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> GuidewayGrammar:
        """Return the `GuidewayGrammar` of one request.

        If an error is raised, vLLM logs it with the id of the request, and ends only this request, with an error.

        Raises:
            GuidewayError: The constraint cannot be compiled, or its first mask cannot be computed.
        """
        automaton = automaton_of((request_type.name.lower(), grammar_spec), self._tokenizer)
        ends, stops = self._tokenizer.eos_ids, stop_token_ids or ()
        # vLLM passes the id of the request with its first tokens
        follower = Follower(automaton, ends, stop_token_ids=stops, name="a request without output")
        # The first mask is often the slowest. It is computed here, in a thread, so that the first step can read it from
        # the cache.
        follower.fill_or_raise(np.zeros(follower.matcher.words, np.uint32))
        return GuidewayGrammar(follower, self._bits, self._budget)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Return masks with all bits set: int32, shape [max_num_seqs, ceil(vocabulary / 32)]."""
        return torch.full((max_num_seqs, -(-self.vocab_size // 32)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Do nothing: the backend has no resources except memory."""


class Bits:
    """Makes array views of bitmasks. The last view is cached, because vLLM passes the same tensor for each row."""

    def __init__(self) -> None:
        self._last: tuple[torch.Tensor | None, Row] = (None, np.zeros((0, 0), np.uint32))

    def rows(self, bitmask: torch.Tensor) -> Row:
        """Return a view of a bitmask: uint32, shape [sequences, words]."""
        known, rows = self._last
        if known is not bitmask:
            rows = bitmask.numpy().view(np.uint32)
            self._last = bitmask, rows
        return rows


class GuidewayGrammar(StructuredOutputGrammar):  # type: ignore[misc]  # vLLM's types are not read here
    """The state of one request. An error during a step is stored, not raised: see `Follower`."""

    def __init__(self, follower: Follower, bits: Bits, budget: StepBudget) -> None:
        self.follower, self._bits, self._budget = follower, bits, budget

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance by tokens. Returns False if one was rejected, which ends the request with an error."""
        self.follower.name = f"request {request_id}"
        return self._budget.run(self.follower, lambda: self.follower.advance(tokens), False)

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Return the longest prefix of draft tokens that is allowed."""
        return self._budget.run(self.follower, lambda: self.follower.validate(tokens), [])

    def rollback(self, num_tokens: int) -> None:
        """Undo the last tokens. vLLM calls it after it has filled the masks of draft tokens."""
        self.follower.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the mask of the next token to row `batch_index`."""
        row = self._bits.rows(bitmask)[batch_index]
        self._budget.row(batch_index)
        self._budget.run(self.follower, lambda: self.follower.fill(row), None)
        if self.follower.error is not None:
            self.follower.fill_end(row)

    def is_terminated(self) -> bool:
        """Return whether an end token or a stop token was taken."""
        return self.follower.is_finished

    def reset(self) -> None:
        """Return to the state before the first token."""
        self.follower.reset()
