"""`ConstraintFilter`: a filter for the generator of ExLlamaV3."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from exllamav3.generator.filter import Filter

from guideway.compiler import Automaton, compile
from guideway.errors import InvalidTextError
from guideway.integrations._common import Follower
from guideway.tokenizers import Tokenizer

__all__ = ["ConstraintFilter"]


class ConstraintFilter(Filter):  # type: ignore[misc]  # ExLlamaV3 has no type annotations
    """Constrains one request (a job of ExLlamaV3). Pass it in `filters=[...]` to `Job` or `Generator.generate`.

    No error is raised during generation, because that would stop all jobs of the generator. Instead the text ends,
    `error` has the exception, and `check()` raises it.

    Args:
        tokenizer: The tokenizer of ExLlamaV3.
        constraint: A constraint, a Python type or an automaton.
        trigger_token: The constraint applies to the text after this token, and starts again after each further such
            token. None: it applies from the start.
        prefix_str: A beginning of the constrained text that the model does not generate; None: there is none.
        eos_after_completed: Whether the job ends when the text is complete and cannot continue. False: generation
            continues without the filter.
        max_tokens: The maximum number of tokens of the constrained text, without the prefix. The text is complete
            within it. None: the generator may truncate the text.

    Raises:
        ConstraintError: The constraint cannot be compiled.
        BudgetTooSmallError: The shortest complete text needs more than `max_tokens`.
        InvalidTextError: No text that fits the constraint begins with the prefix.
    """

    def __init__(
        self,
        tokenizer: Any,
        constraint: object,
        *,
        trigger_token: int | None = None,
        prefix_str: str | None = None,
        eos_after_completed: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__(tokenizer, trigger_token, prefix_str, eos_after_completed)
        self._table = Tokenizer.of(tokenizer)
        automaton = constraint if isinstance(constraint, Automaton) else compile(constraint, self._table)
        self._prefix = self._table.encode(prefix_str) if prefix_str else []
        most = None if max_tokens is None else max_tokens + len(self._prefix)
        self._follower = Follower(automaton, self._table.eos_ids, max_tokens=most)
        self._bits = np.zeros((1, self._follower.matcher.words), np.uint32)
        self._mask = torch.from_numpy(self._bits.view(np.int32))
        self.reset()
        if self.error is not None:
            raise InvalidTextError(f"no text that matches the constraint begins with {prefix_str!r}") from self.error

    @property
    def error(self) -> Exception | None:
        """The error that ended the text; None if there is none."""
        return self._follower.error

    def check(self) -> None:
        """Raise `error` if there is one."""
        if self.error is not None:
            raise self.error

    def reset(self) -> None:
        """Return to the state after the prefix."""
        self._ended = self._filled = False
        self._follower.reset()
        self._follower.advance(self._prefix)

    def accept_token(self, token: int) -> None:
        """Advance by a sampled token. An illegal token sets `error`."""
        self._filled = False
        self._ended = self._follower.error is not None and token in self._follower.end_ids
        self._follower.advance([token])

    def rollback_tokens(self, num_tokens: int) -> bool:
        """Undo tokens.

        Returns False if that is not possible; ExLlamaV3 then resets the filter and feeds all tokens again.
        """
        self._filled = False
        if self.error is not None or num_tokens > self._follower.position - len(self._prefix):
            return False  # after an error, fewer tokens were taken than steps were run
        self._follower.rollback(num_tokens)
        return True

    def get_next_logit_mask(self) -> torch.Tensor:
        """Return the mask, int32 [1, words].

        Token i has bit i % 32 of word i // 32. It is valid until the next call.
        """
        if not self._filled:
            self._follower.fill(self._bits[0])
            self._filled = True
        return self._mask

    def is_completed(self) -> bool:
        """Return whether an end token was taken, or only end tokens are allowed next."""
        follower = self._follower
        if follower.is_finished or self._ended:
            return True
        if follower.error is not None or not follower.matcher.is_accepting:
            return False
        self.get_next_logit_mask()
        end = np.zeros_like(self._bits[0])
        follower.fill_end(end)
        return bool((self._bits[0] == end).all())
