"""A logits processor for loops over the `Generator` of onnxruntime-genai."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from guideway import masks
from guideway.errors import ProcessorError
from guideway.integrations._common import Chained, Function, Ids, Masks, Processor, no_token_left
from guideway.tokenizers import Tokenizer

__all__ = ["ConstrainedLogits", "logits_processor"]


class ConstrainedLogits(Chained):
    """The processor that `logits_processor` returns.

    `forced`: the number of forced tokens that `step` has appended since the last `reset`. `rewind_to` does not reduce
    this number.
    """

    def __init__(self, processor: Processor, before: Sequence[Function], count: int, tokenizer: Tokenizer) -> None:
        super().__init__(processor, before)
        self._count, self._tokenizer, self._eos_ids = count, tokenizer, frozenset(tokenizer.eos_ids)
        self.forced = 0

    def reset(self) -> None:
        """Prepare for another `Generator`. The constraints stay compiled."""
        super().reset()
        self.forced = 0

    def __call__(self, generator: Any) -> None:
        """Mask the logits for the next `generate_next_token`. The mask is computed while the model runs."""
        ids = self._ids(generator)
        self._processor.ahead(ids)
        logits = np.asarray(generator.get_logits())
        with self._processor:
            self._write(generator, ids, logits, self._processor.masks(ids))

    def step(self, generator: Any) -> None:
        """Add the next tokens under the constraint: forced tokens in one pass, or else one drawn token.

        With several rows, one token is drawn for each row, because onnxruntime-genai 0.18 cannot append tokens to a
        batch.
        """
        if self._count > 1:
            self(generator)
            generator.generate_next_token()
            return
        ids = self._ids(generator)
        with self._processor:
            found = self._processor.masks(ids)
            forced = self._forced(found, ids[0].tolist())
            if not forced:
                self._write(generator, ids, np.asarray(generator.get_logits()), found)
                generator.generate_next_token()
                return
            back = max(0, ids.shape[1] - 2)  # the model has not run the last token yet: the last two are fed again
            generator.rewind_to(back)
            generator.append_tokens(np.array([[*ids[0, back:].tolist(), *forced]], np.int32))
            self._processor.fed(len(forced))
            self.forced += len(forced)

    def _forced(self, found: Masks, after: list[int]) -> list[int]:
        rows, held = found
        only = masks.only(rows[0]) if held[0] else None
        return self._processor.rows.forced(0, self._tokenizer, after) or (
            [] if only is None or only in self._eos_ids else [only]
        )

    def _ids(self, generator: Any) -> Ids:
        return np.stack([generator.get_sequence(row) for row in range(self._count)])

    def _write(self, generator: Any, ids: Ids, logits: Any, found: Masks) -> None:
        scores = logits.reshape(-1, logits.shape[-1])
        if len(scores) != self._count:
            raise ProcessorError(
                f"expected logits of {self._count} rows, got {len(scores)}; pass rows= (beam search is not supported)"
            )
        scores = np.ascontiguousarray(self._after_others(ids, scores))
        start = perf_counter()
        nothing = masks.masked_into(scores, scores, *found)
        if nothing:
            raise no_token_left(nothing[0])
        generator.set_logits(scores.reshape(logits.shape))
        self.timings.copy += perf_counter() - start


def logits_processor(
    constraints: object,
    tokenizer: object,
    *,
    max_tokens: int | None = None,
    before: Sequence[Function] = (),
    rows: int | None = None,
) -> ConstrainedLogits:
    """Return a processor that constrains one `Generator`, in a loop of the user:

        while not generator.is_done():
            processor.step(generator)  # or: processor(generator); generator.generate_next_token()

    `rewind_to` is supported.

    Args:
        constraints: One for all rows, or a list with one for each row (None: no constraint): constraints, Python types,
            automata.
        tokenizer: A value that `Tokenizer.of` accepts, such as the folder of the model.
        max_tokens: The maximum number of tokens of the output, end token included. Every output is complete within it.
            None: no limit.
        before: Functions of (ids, logits) that are called first and return logits.
        rows: The `batch_size` of the generator; None: the number of constraints.

    Raises:
        ConstraintError: A constraint cannot be compiled.
        BudgetTooSmallError: The shortest complete output needs more than `max_tokens`.
        ProcessorError: Raised in the loop: the generator has other prompts, or uses beam search.
        NoAllowedTokenError: Raised in the loop: another processor excluded all allowed tokens.
    """
    table = Tokenizer.of(tokenizer)
    count = rows or (len(constraints) if isinstance(constraints, (list, tuple)) else 1)
    return ConstrainedLogits(Processor(constraints, table, max_tokens=max_tokens), before, count, table)
