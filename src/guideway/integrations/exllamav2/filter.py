"""A filter for ExLlamaV2's generators."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from exllamav2.generator.filters import ExLlamaV2Filter

from guideway.compiler import Automaton, compile
from guideway.constraints import of
from guideway.constraints.base import Literal
from guideway.errors import NoAllowedTokenError, UnsupportedError
from guideway.integrations._common import Follower
from guideway.masks import ids, new_rows
from guideway.masks.torch import TorchMasks
from guideway.tokenizers import Tokenizer

__all__ = ["ConstraintFilter"]


class ConstraintFilter(ExLlamaV2Filter):  # type: ignore[misc]  # ExLlamaV2 gives no types
    """Holds one generation to a constraint: `filters=[...]` of the normal, streaming and dynamic generators.

    `constraint`: a source, Python type or automaton. `prefer_eos`: end as soon as the text may end; the generators'
    own `filter_prefer_eos` does the same where `as_mask` is False, for ExLlamaV2 (0.3.2) does not look at it once it
    applies masks. `as_mask`: write the mask over the logits, and not a list of tokens for each step.

    Nothing raises in the middle, where it would end all that the generator does: the text ends, `error` says why, and
    `check()` raises it. Raises what `guideway.compile` raises.
    """

    def __init__(
        self, model: Any, tokenizer: Any, constraint: object, *, prefer_eos: bool = False, as_mask: bool = True
    ) -> None:
        super().__init__(model, tokenizer)
        self._table = Tokenizer.of(tokenizer)
        self._constraint, self._prefer_eos, self._as_mask = constraint, prefer_eos, as_mask
        self._apply = TorchMasks(in_place=True)
        self.begin("")

    def clone(self, c: Any = None) -> Any:
        """Another filter that stands where this one does."""
        made = ConstraintFilter.__new__(ConstraintFilter) if c is None else c
        super().clone(made)
        for name in ("_table", "_constraint", "_prefer_eos", "_as_mask", "_apply"):
            setattr(made, name, getattr(self, name))
        made._follower, made._row, made.background_result = self._follower.copy(), np.array(self._row), None
        return made

    @property
    def error(self) -> Exception | None:
        """Why the text ended early, if it did."""
        return self._follower.error

    def check(self) -> None:
        """Raise `error`."""
        if self.error is not None:
            raise self.error

    def begin(self, prefix_str: Any) -> None:
        """A new text. `prefix_str`: what token healing takes back of the prompt, to be written once more."""
        prefix = "".join(prefix_str or "")
        if prefix and isinstance(self._constraint, Automaton):
            raise UnsupportedError("token healing needs the constraint itself, not what it was compiled to")
        asked = Literal(prefix) + of(self._constraint) if prefix else self._constraint
        automaton = asked if isinstance(asked, Automaton) else compile(asked, self._table)
        self._follower = Follower(automaton, self._table.eos_ids)
        self._row = new_rows(1, 32 * self._follower.matcher.words)[0]

    def feed(self, token: Any) -> None:
        """Take a token that was drawn, an int or a tensor of one."""
        self._follower.advance([int(token)])

    def next(self) -> tuple[list[int], set[int]]:
        """The legal tokens in order, and those that end the text."""
        self.prepare_logit_mask()
        return ids(self._row, 32 * len(self._row)).tolist(), set(self._follower.end_ids)

    def use_background_worker(self) -> bool:
        """Masks are made while the model runs."""
        return True

    def can_mask_logits(self) -> bool:
        """Whether the mask goes over the logits."""
        return self._as_mask

    def prepare_logit_mask(self) -> bool:
        """Find out what is legal; True as ExLlamaV2 wants it."""
        if self._prefer_eos and self._follower.error is None and self._follower.matcher.is_accepting:
            self._follower.fill_end(self._row)
        else:
            self._follower.fill(self._row)
        return True

    def mask_logits(self, logits: torch.Tensor) -> torch.Tensor:
        """`logits`: [vocabulary], on the CPU; written over."""
        made, nothing = self._apply(logits[None], self._row[None], [True])
        if nothing:
            self._follower.fail(
                NoAllowedTokenError("nothing is left to draw: something else forbids all that is legal")
            )
            made[0, list(self._follower.end_ids)] = 0.0
        return made[0]
