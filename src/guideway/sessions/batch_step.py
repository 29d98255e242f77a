"""One step of several sessions: run their pending tokens together, and draw a token in each."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from guideway.engines.base import Cache
from guideway.errors import EngineError
from guideway.sampling import on_cpu

if TYPE_CHECKING:
    from guideway.sessions.session import Session

__all__ = ["EQUAL_TOKENS", "catch_up", "equal_parts", "feed_all", "infer_all"]

Work = tuple["Session", "Cache | None", list[int]]
"""A session, the cache to continue from, and the ids to run."""

CHECKPOINT_EVERY = 64
"""The maximum number of tokens of a session in one forward pass, if the engine cannot truncate caches.

A cache is stored after each forward pass, so that the session can rewind to it.
"""

FEW_TOKENS = 32
"""`prefill_tokens` applies only to sessions with more pending tokens than this."""

EQUAL_TOKENS = 8
"""The maximum number of pending tokens of a sequence that `equal_parts` divides. Sequences with more run all."""


def equal_parts(ids: list[list[int]]) -> list[list[int]]:
    """Return the tokens that each sequence runs in the next forward pass: equal numbers of them where few are pending.

    Of each sequence with at most `EQUAL_TOKENS` pending tokens, the same number runs: the smallest number that is
    pending in one of them. So an engine with `engines.base.splits_rows` runs these sequences in one call of the model,
    and need not join their caches again for the next call.

    Args:
        ids: All pending tokens of each sequence.
    """
    few = [len(row) for row in ids if len(row) <= EQUAL_TOKENS]
    if not few or (count := min(few)) == max(few):
        return ids
    return [row[:count] if len(row) <= EQUAL_TOKENS else row for row in ids]


def feed_all(sessions: Sequence[Session], *, prefill_tokens: int | None = None, equal: bool = False) -> None:
    """Run the model over the pending tokens of several sessions together.

    Args:
        sessions: Sessions of one model.
        prefill_tokens: The maximum number of tokens that run, in all, in those sessions that have more than
            `FEW_TOKENS` pending tokens (chunked prefill). Further tokens remain pending, and a session with pending
            tokens has no logits (`Session.has_logits`). None: all tokens run.
        equal: Whether sessions with few pending tokens run equal numbers of them (`equal_parts`). Here, too, further
            tokens remain pending.

    Raises:
        EmptySequenceError: A session is empty.
        EngineError: The engine failed. The tokens of the sessions are unchanged.
        ValueError: The sessions belong to several models.
        Exception: The exception of a `kv_hook`.
    """
    work: list[Work] = []
    for session in sessions if len(sessions) == 1 else dict.fromkeys(sessions):
        if session.kv_hook is not None:
            session.call_hook()
        cache, ids = session._plan()
        if ids:
            work.append((session, cache, ids))
    if equal:
        parts = equal_parts([ids for _, _, ids in work])
        work = [(session, cache, part) for (session, cache, _), part in zip(work, parts, strict=True)]
    _run(work if prefill_tokens is None else _chunked(work, prefill_tokens))


def _chunked(work: list[Work], most: int) -> list[Work]:
    """Return the work with at most `most` ids, in all, of the sessions that have more than `FEW_TOKENS` ids to run."""
    found: list[Work] = []
    for session, cache, ids in work:
        taken = ids
        if len(ids) > FEW_TOKENS:
            taken = ids[:most]
            most -= len(taken)
        if taken:
            found.append((session, cache, taken))
    return found


def catch_up(session: Session) -> Cache:
    """Run pending tokens, and return the cache that covers all tokens. Raises the errors of `feed_all`."""
    feed_all([session])
    cache = session._cache  # it lacks tokens if a recurrent model was rewound and the logits are stored
    covered = cache.length - session._shift if cache is not None else 0
    if covered < len(session):
        _run([(session, cache, session.tokens[covered:])])
    if session._cache is None:
        raise EngineError("the engine returned no cache for a sequence")
    return session._cache


def _run(work: list[Work]) -> None:
    if not work:
        return
    model = work[0][0].model
    engine = model.engine
    most = None if engine.supports_rollback else CHECKPOINT_EVERY
    if any(session.model is not model for session, _, _ in work[1:]):
        raise ValueError("all sessions of a step must belong to the same model")
    while work:
        rows = [ids if most is None else ids[:most] for _, _, ids in work]
        before = [cache for _, cache, _ in work]
        start = perf_counter()
        logits, caches = model.run(engine.forward, rows, before)
        if not isinstance(logits, np.ndarray):  # copied again, since rows are stored and pinned memory is scarce
            logits = np.array(on_cpu(logits))
        seconds = (perf_counter() - start) / len(work)
        left: list[Work] = []
        for (session, _, ids), row, found, cache in zip(work, rows, logits, caches, strict=True):
            session._received(len(row), cache, found)
            session.model_seconds += seconds
            if len(row) < len(ids):
                left.append((session, cache, ids[len(row) :]))
        work = left


def infer_all(sessions: Sequence[Session], *, tokens_left: int | None = None) -> list[int]:
    """Do `Session.infer` for several sessions in one step. If it fails for one of them, no session has new tokens.

    Args:
        sessions: Different sessions of one model.
        tokens_left: As in `Session.infer`, for each session.

    Returns:
        The token of each session.

    Raises:
        GuidewayError: As in `Session.infer`.
        ValueError: A session is in the list twice, or the sessions belong to several models.
    """
    if len({id(session) for session in sessions}) < len(sessions):
        raise ValueError("duplicate session in the list; use session.fork()")
    for session in sessions:
        session.need_room(1)
    ids = [session.only_legal(tokens_left, compare=True) for session in sessions]
    ids = [
        session.kept_choice() if token_id is None else token_id for session, token_id in zip(sessions, ids, strict=True)
    ]
    feed_all([session for session, token_id in zip(sessions, ids, strict=True) if token_id is None])
    before = [session.divergence for session in sessions]
    taken: list[Session] = []
    try:
        drawn = [s.draw() if token_id is None else token_id for s, token_id in zip(sessions, ids, strict=True)]
        for session, token_id in zip(sessions, drawn, strict=True):
            session.take([token_id])
            taken.append(session)
    except BaseException:
        for session in taken:
            session.rewind(1)
        for session, divergence in zip(sessions, before, strict=True):
            session.divergence = divergence
        raise
    return drawn
