"""Several tokens of free sessions as one call to the engine.

Between the passes there are only the draws: what a session and its row keep besides is made once, at the end. The
tokens are those that single steps would give.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from guideway.engines.base import Cache, Draw, StepEngine, on_cpu

if TYPE_CHECKING:
    from guideway.sessions.session import Session

__all__ = ["stride"]

STRIDE_SECONDS = 0.05
"""Other threads that want the model wait so long, or for one pass; what comes once a stride is nothing beside it."""


def stride(sessions: Sequence[Session], ends: Collection[int], most: int) -> float:
    """Draw up to `most` tokens in each of these sessions, of one model: free ones that wait (`Session.is_waiting`).

    It ends behind the first token that is in `ends`; where a draw or a later pass fails, which then fails again in a
    step of its own; and when its time is over. Gives the seconds of the first pass, for each of the sessions. Raises as
    `feed_all`.
    """
    begun = perf_counter()
    bare, other = [_bare(session) for session in sessions], [None] * len(sessions)
    drawing, first, left, width = 0.0, 0.0, most, len(sessions[0].tokenizer.vocabulary)

    def draw(logits: Any) -> list[int] | None:
        nonlocal drawing, first, left
        start = perf_counter()
        first = first or start - begun
        left -= 1
        logits = logits[:, :width]  # the model pads; ids beyond have no text
        over = not left or start - begun > STRIDE_SECONDS
        drawn: list[int] = []
        known = bare if isinstance(logits, np.ndarray) and logits.dtype == np.float32 else other
        for session, quick, here in zip(sessions, known, logits, strict=True):
            try:
                token_id = None if quick is None else quick(here, None)
                if token_id is None:
                    token_id = session.draw_from(here, None)
            except Exception:  # a step of its own, from these logits, says what it is
                session._ring.put(len(session), np.array(on_cpu(here)))
                over = True
                continue
            session.take((token_id,))
            drawn.append(token_id)
            over = over or token_id in ends
        drawing += perf_counter() - start
        return None if over else drawn

    model = sessions[0].model
    plans = [session._plan() for session in sessions]
    before, waiting = [cache for cache, _ in plans], [ids for _, ids in plans]
    made = model.run(_go_on, model.engine, waiting, before, draw)
    running = perf_counter() - begun - drawing
    for session, cache, past in zip(sessions, made, before, strict=True):
        session._received(cache.length - (0 if past is None else past.length), cache)
        session.model_seconds += running / len(sessions)
        session.sample_seconds += drawing / len(sessions)
    return first / len(sessions)


def _go_on(
    engine: StepEngine, rows: Sequence[Sequence[int]], caches: Sequence[Cache | None], draw: Draw
) -> Sequence[Cache]:
    """`go_on` of an engine, see `Draw`; the same by its `forward` for one that has none."""
    own = getattr(engine, "go_on", None)
    if own is not None:
        found: Sequence[Cache] = own(rows, caches, draw)
        return found
    logits, made = engine.forward(rows, caches)
    while (ids := draw(logits)) is not None:
        try:
            logits, made = engine.forward([[token_id] for token_id in ids], made)
        except Exception:  # it comes again where these tokens run next, and is told of there
            break
    return made


def _bare(session: Session) -> Callable[[Any, None], int | None] | None:
    """What draws the most probable token and gives None where it cannot, for a sampler that wants nothing else."""
    sampler = session.sampler
    return sampler.kernel.draw if sampler.bare and sampler.kernel is not None else None
