"""The loop that generates: rows that share a model, each with its own constraint, sampler and budget.

One round: take what is forced, run the model over what waits in all rows, draw one token in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from guideway.errors import BudgetTooSmall
from guideway.sessions.session import Session
from guideway.sessions.stepping import feed_all

__all__ = ["FinishReason", "Row", "Timings", "decode"]

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Timings:
    """Seconds spent. Rows that run together share the model's.

    `prompt`: the model's first pass, over the prompt and what is forced right behind it. `model`: its further passes.
    `mask`: the constraint. `sample`: drawing.
    """

    prompt: float
    model: float
    mask: float
    sample: float


class Row:
    """One sequence on its way: a session behind its prompt, and how many tokens it may still take.

    `forced`: how many tokens had no alternative and were not drawn. `finish_reason`: "stop" at EOS, "length" at
    `max_tokens`, which never happens under a constraint; None while it goes on.
    Raises `BudgetTooSmall` where the constraint needs more than `max_tokens`.
    """

    def __init__(self, session: Session, max_tokens: int) -> None:
        self.session = session
        self.left = max_tokens
        self.forced = 0
        self.finish_reason: FinishReason | None = None
        self._eos_ids = frozenset(session.tokenizer.eos_ids)
        self._start = len(session)
        self._prompt_seconds: float | None = None
        self._mask_before, self._sample_before = session.mask_seconds, session.sample_seconds
        matcher = session.matcher
        if matcher is not None and (needed := matcher.tokens_to_finish()) > max_tokens:
            raise BudgetTooSmall(f"the shortest output needs {needed} tokens, and {max_tokens} are allowed")

    @property
    def tokens(self) -> list[int]:
        """The ids that were generated so far, EOS included."""
        return self.session.tokens[self._start :]

    @property
    def timings(self) -> Timings:
        session = self.session
        prompt = session.model_seconds if self._prompt_seconds is None else self._prompt_seconds
        return Timings(
            prompt=prompt,
            model=session.model_seconds - prompt,
            mask=session.mask_seconds - self._mask_before,
            sample=session.sample_seconds - self._sample_before,
        )

    def take_forced(self) -> list[int]:
        """Take tokens as long as there is no alternative, without running the model; gives them."""
        taken: list[int] = []
        while self.session.matcher is not None and self.finish_reason is None:
            ids = self._take_forced_bytes()
            if not ids:
                one = self.session.only_legal(self.left)
                if one is None:
                    break
                ids = self.session.feed([one])
            taken += ids
            self._took(ids)
        self.forced += len(taken)
        return taken

    def draw(self) -> int:
        """Draw one token and take it; `take_forced` and the forward pass (`feed_all`) come before."""
        if self._prompt_seconds is None:
            self._prompt_seconds = self.session.model_seconds
        token_id = self.session.draw()
        self._took(self.session.feed([token_id]))
        return token_id

    def _take_forced_bytes(self) -> list[int]:
        """Take the tokens over forced bytes, unless spelling them so would leave too few to finish."""
        matcher = self.session.matcher
        if matcher is None or not (ids := matcher.forced_tokens()) or len(ids) >= self.left:
            return []
        self.session.feed(ids)
        if matcher.tokens_to_finish() > self.left - len(ids):
            self.session.rewind(len(ids))
            return []
        return ids

    def _took(self, ids: Sequence[int]) -> None:
        self.left -= len(ids)
        if ids[-1] in self._eos_ids:
            self.finish_reason = "stop"
        elif self.left <= 0:
            self.finish_reason = "length"
        if self.finish_reason is not None:
            self.session.remember()  # what is asked next often begins with this text and its answer


def decode(rows: Sequence[Row]) -> None:
    """Generate until every row has finished; rows that have leave the batch."""
    active = [row for row in rows if row.finish_reason is None]
    while active:
        for row in active:
            row.take_forced()
        active = [row for row in active if row.finish_reason is None]
        feed_all([row.session for row in active])
        for row in active:
            row.draw()
        active = [row for row in active if row.finish_reason is None]
