"""`UnbudgetedRun`: the tokens that a row with banned strings would have without its token budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guideway.sessions.batch_step import feed_all
from guideway.sessions.divergence import Divergence
from guideway.sessions.prefix_cache import common_length

if TYPE_CHECKING:
    from guideway.generation.scheduler import Row

__all__ = ["SETTLED", "UnbudgetedRun"]

SETTLED = 16
"""A token counts as final when this many tokens follow it that no banned string can still remove.

Then, only a sequence of this many positions at which every token is excluded could remove it.
"""


class UnbudgetedRun:
    """The continuation of a row without its token budget, with the same random numbers.

    A banned string removes tokens in both runs, so the runs can differ at one position and agree there later. The
    difference between the texts is therefore known only from the continued run.

    Args:
        row: A copy of the row without the budget, at the position where the budget changed a token.
        ids: The first tokens of this run, if they were drawn before; empty: it draws them.
    """

    def __init__(self, row: Row, ids: Sequence[int]) -> None:
        self._row = row
        if ids:
            row.take(ids)

    def difference(self, tokens: Sequence[int], start: int) -> Divergence | None:
        """Return the first token of this run that differs from `tokens`; None: there is none.

        The model generates tokens of this run until the difference is final (see `SETTLED`).

        Args:
            tokens: The output of the row with the budget.
            start: The number of the session's tokens before the output.
        """
        row = self._row
        while True:
            found = row.tokens
            at = common_length(tokens, found)
            if at == len(tokens):
                return None
            if row.is_over or row.watch.settled > at + SETTLED:
                return Divergence(start + at, found[at]) if at < len(found) else None
            self._advance()

    def _advance(self) -> None:
        row = self._row
        try:
            row.take_forced()
            if not row.is_over:
                feed_all([row.session])
                row.draw()
        except Exception as error:
            row.error = error
