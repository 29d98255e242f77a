"""A filter for ExLlamaV3's generator."""

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


class ConstraintFilter(Filter):  # type: ignore[misc]  # ExLlamaV3 gives no types
    """Holds a job to a constraint: `filters=[...]` of `Job` and `Generator.generate`.

    `constraint`: a source, Python type or automaton. `trigger_token`: the constraint begins behind this token, and
    again whenever it comes once more. `prefix_str`: what the constrained text begins with, and the model does not
    write. `eos_after_completed`: the job ends where the text can only end; else it goes on without the filter.

    Nothing raises in the middle, where it would end all that the generator does: the text ends, `error` says why, and
    `check()` raises it. Raises what `guideway.compile` raises, `InvalidTextError` for a prefix that does not fit.
    """

    def __init__(
        self,
        tokenizer: Any,
        constraint: object,
        *,
        trigger_token: int | None = None,
        prefix_str: str | None = None,
        eos_after_completed: bool = False,
    ) -> None:
        super().__init__(tokenizer, trigger_token, prefix_str, eos_after_completed)
        self._table = Tokenizer.of(tokenizer)
        automaton = constraint if isinstance(constraint, Automaton) else compile(constraint, self._table)
        self._follower = Follower(automaton, self._table.eos_ids)
        self._bits = np.zeros((1, self._follower.matcher.words), np.uint32)
        self._mask = torch.from_numpy(self._bits.view(np.int32))
        self._prefix = self._table.encode(prefix_str) if prefix_str else []
        self.reset()
        if self.error is not None:
            raise InvalidTextError(f"no text that fits begins with {prefix_str!r}") from self.error

    @property
    def error(self) -> Exception | None:
        """Why the text ended early, if it did."""
        return self._follower.error

    def check(self) -> None:
        """Raise `error`."""
        if self.error is not None:
            raise self.error

    def reset(self) -> None:
        """Back to the beginning, behind the prefix."""
        self._ended = self._filled = False
        self._follower.reset()
        self._follower.advance(self._prefix)

    def accept_token(self, token: int) -> None:
        """Take a token that was drawn."""
        self._filled = False
        self._ended = self._follower.error is not None and token in self._follower.end_ids
        self._follower.advance([token])

    def rollback_tokens(self, num_tokens: int) -> bool:
        """Give tokens back. False: there are not so many, and ExLlamaV3 begins anew."""
        self._filled = False
        if self.error is not None or num_tokens > self._follower.position - len(self._prefix):
            return False  # an illegal token was not taken, so tokens and steps are not as many
        self._follower.rollback(num_tokens)
        return True

    def get_next_logit_mask(self) -> torch.Tensor:
        """int32 [1, words]: bit i % 32 of word i // 32 says whether token i is legal. Good until the next call."""
        if not self._filled:
            self._follower.fill(self._bits[0])
            self._filled = True
        return self._mask

    def is_completed(self) -> bool:
        """Whether an end was taken, or nothing but an end is legal."""
        follower = self._follower
        if follower.is_finished or self._ended:
            return True
        if follower.error is not None or not follower.matcher.is_accepting:
            return False
        self.get_next_logit_mask()
        end = np.zeros_like(self._bits[0])
        follower.fill_end(end)
        return bool((self._bits[0] == end).all())
