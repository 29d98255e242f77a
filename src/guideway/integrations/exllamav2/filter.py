"""`ConstraintFilter`: a filter for the generators of ExLlamaV2."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from exllamav2.generator.filters import ExLlamaV2Filter

from guideway.compiler import Automaton, compile
from guideway.constraints import of
from guideway.constraints.base import Literal
from guideway.errors import UnsupportedError
from guideway.integrations._common import Follower, no_token_left
from guideway.masks import ids, new_rows
from guideway.masks.torch import TorchMasks
from guideway.tokenizers import Tokenizer

__all__ = ["ConstraintFilter"]


class ConstraintFilter(ExLlamaV2Filter):  # type: ignore[misc]  # ExLlamaV2 has no type annotations
    """Constrains one generation. Pass it in `filters=[...]` to the base, streaming and dynamic generators.

    No error is raised during generation, because that would stop all requests (jobs) of the generator. Instead the text
    ends, `error` has the exception, and `check()` raises it.

    Args:
        model: The model.
        tokenizer: The tokenizer of ExLlamaV2.
        constraint: A constraint, a Python type or an automaton.
        prefer_eos: End as soon as the text is complete. `filter_prefer_eos` of the generators does the same if
            `as_mask` is False; ExLlamaV2 (0.3.2) ignores it if a filter masks logits.
        as_mask: Whether the filter masks the logits. False: it returns a list of allowed tokens at each step.
        max_tokens: The maximum number of tokens of the generation. The text is complete within it. None: the generator
            may truncate the text.

    Raises:
        ConstraintError: The constraint cannot be compiled.
        BudgetTooSmallError: The shortest complete text needs more than `max_tokens`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        constraint: object,
        *,
        prefer_eos: bool = False,
        as_mask: bool = True,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__(model, tokenizer)
        self._table = Tokenizer.of(tokenizer)
        self._constraint, self._prefer_eos, self._as_mask = constraint, prefer_eos, as_mask
        self._apply, self._max_tokens = TorchMasks(in_place=True), max_tokens
        self.begin("")

    def clone(self, c: Any = None) -> Any:
        """Return a copy with the same state. `c`: the object that becomes the copy; None: a new one."""
        made = ConstraintFilter.__new__(ConstraintFilter) if c is None else c
        super().clone(made)
        for name in ("_table", "_constraint", "_prefer_eos", "_as_mask", "_apply", "_max_tokens"):
            setattr(made, name, getattr(self, name))
        made._follower, made._row, made.background_result = self._follower.copy(), np.array(self._row), None
        return made

    @property
    def error(self) -> Exception | None:
        """The error that ended the text; None if there is none."""
        return self._follower.error

    def check(self) -> None:
        """Raise `error` if there is one."""
        if self.error is not None:
            raise self.error

    def begin(self, prefix_str: Any) -> None:
        """Start a new text.

        `prefix_str`: the end of the prompt, which the model writes again because of token healing. The constraint then
        applies to the text after it.

        Raises:
            UnsupportedError: There is such a text, and the constraint was given as an automaton.
        """
        prefix = "".join(prefix_str or "")
        if prefix and isinstance(self._constraint, Automaton):
            raise UnsupportedError("token healing needs the constraint, got a compiled automaton")
        wanted = Literal(prefix) + of(self._constraint) if prefix else self._constraint
        automaton = wanted if isinstance(wanted, Automaton) else compile(wanted, self._table)
        self._follower = Follower(automaton, self._table.eos_ids, max_tokens=self._max_tokens)
        self._row = new_rows(1, 32 * self._follower.matcher.words)[0]

    def feed(self, token: Any) -> None:
        """Advance by a sampled token, an int or a tensor with one item. An illegal token sets `error`."""
        self._follower.advance([int(token)])

    def next(self) -> tuple[list[int], set[int]]:
        """Return the allowed tokens in ascending order, and the set of end tokens."""
        self.prepare_logit_mask()
        return ids(self._row, 32 * len(self._row)).tolist(), set(self._follower.end_ids)

    def use_background_worker(self) -> bool:
        """Return True, so that ExLlamaV2 computes masks in a thread while the model runs."""
        return True

    def can_mask_logits(self) -> bool:
        """Return whether this filter masks logits."""
        return self._as_mask

    def prepare_logit_mask(self) -> bool:
        """Compute the mask of the next token. Always returns True, as ExLlamaV2 requires."""
        if self._prefer_eos and self._follower.error is None and self._follower.matcher.is_accepting:
            self._follower.fill_end(self._row)
        else:
            self._follower.fill(self._row)
        return True

    def mask_logits(self, logits: torch.Tensor) -> torch.Tensor:
        """Set the logits of forbidden tokens to -inf, in place, and return them.

        If all logits are then -inf, `error` is set and the logits of the end tokens become 0. `logits`: float32
        [vocabulary] on the CPU.
        """
        made, nothing = self._apply(logits[None], self._row[None], [True])
        if nothing:
            self._follower.fail(no_token_left())
            made[0, list(self._follower.end_ids)] = 0.0
        return made[0]
