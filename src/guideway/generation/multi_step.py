"""Multi-step decoding for sequences that need no per-token inspection.

The engine runs several passes of the model in one call. Between the passes, tokens are drawn and constraints advanced.
The other state of the sessions is updated once, at the end of the call. The text is the same as with one pass per call.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from guideway.engines.base import decode_steps, splits_rows
from guideway.sampling import device_rows
from guideway.sessions.batch_step import equal_parts

if TYPE_CHECKING:
    from guideway.generation.scheduler import Row

__all__ = ["stride"]

STRIDE_SECONDS = 0.05
"""A call of `stride` ends after the first pass that ends at least this number of seconds after the start of the call.

Other threads that use the model wait for about this time, or for one pass. The fixed costs of a call are small compared
to this time.
"""


class _Waiting:
    """The tokens of rows that the model must run before the next draw.

    If `engines.base.splits_rows` is True for the engine, each pass runs equal numbers of tokens (`equal_parts`). A row
    with tokens left does not draw.

    Attributes:
        left: The tokens of each row that run in later passes.
    """

    def __init__(self, rows: int, *, equal: bool) -> None:
        self.left: list[list[int]] = [[]] * rows
        self._equal = equal

    def first(self, ids: list[list[int]]) -> list[list[int]]:
        """Return the tokens that run in the next pass. `ids`: all tokens of each row that wait."""
        if not self._equal:
            return ids
        parts = equal_parts(ids)
        self.left = [row[len(part) :] for row, part in zip(ids, parts, strict=True)]
        return parts


def stride(rows: Sequence[Row]) -> None:
    """Draw several tokens in each of these rows in one call of the engine.

    All rows must have the same model, and `Row.strides` must be True for each. The call ends when a row ends, is
    rewound, fails or is at a verbatim string that is chosen as a whole, when a pass other than the first fails, and at
    the time limit. A pass that failed runs again as the first pass of the next call. Raises the errors of `feed_all` if
    the first pass fails.
    """
    begun = perf_counter()
    sessions, takers = [row.session for row in rows], [row.taker() for row in rows]
    starts = [(len(session), session.model_seconds, session.mask_seconds) for session in sessions]
    drawing, first, width = 0.0, 0.0, len(sessions[0].tokenizer.vocabulary)
    pads = sessions[0].model.engine.vocab_size > width  # the logits have columns for padding ids
    alone = takers[0] if len(takers) == 1 else None

    def draw(logits: Any) -> list[list[int]] | None:
        nonlocal drawing, first
        start = perf_counter()
        first = first or start - begun
        if pads:
            logits = logits[:, :width]
        if not isinstance(logits, np.ndarray):
            logits = device_rows(logits, [session.device_draw() for session in sessions])
        if alone:
            taken = [alone(logits[0])]
        else:
            taken = [left or take(here) for left, take, here in zip(pending.left, takers, logits, strict=True)]
        more = [ids for ids in taken if ids is not None]
        over = len(more) < len(taken) or start - begun >= STRIDE_SECONDS
        drawing += perf_counter() - start
        return None if over else pending.first(more)

    model, count = sessions[0].model, len(rows)
    plans = [session._plan() for session in sessions]
    before, waiting = [cache for cache, _ in plans], [ids for _, ids in plans]
    pending = _Waiting(count, equal=count > 1 and splits_rows(model.engine))
    made = model.run(decode_steps, model.engine, pending.first(waiting), before, draw)
    running = (perf_counter() - begun - drawing) / count
    for row, cache, past, (start, seconds, masking) in zip(rows, made, before, starts, strict=True):
        session = row.session
        session._went_on(cache, cache.length - (0 if past is None else past.length), row.lowest)
        session.model_seconds += running
        session.sample_seconds += max(0.0, drawing / count - (session.mask_seconds - masking))
        row.settle(start, seconds + first / count)
