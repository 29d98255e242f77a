"""Speculative decoding: the model checks several proposed tokens in one pass.

A drafter proposes the next tokens of a row. One pass of the model gives the logits after each of them. At each
position, a token is drawn with the same mask and random number as without speculation, so the text is the same, also if
it is sampled, unless rounding differs between the passes. If the drawn token is the proposed one, the next position
follows. The first different token is kept and ends the pass. Before the pass, the first proposed token that the
constraint does not allow is discarded with all later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, cast

from guideway.arguments import short_repr
from guideway.engines.base import VerifyingEngine
from guideway.errors import GuidewayError
from guideway.sessions import ModelBase, Session, infer_all
from guideway.sessions.prefix_cache import common_length

if TYPE_CHECKING:
    from guideway.generation.scheduler import Row

__all__ = ["AssistantDrafter", "Drafter", "PromptLookup", "check_assistant", "speculate"]

_SIZES = (3, 2)
"""The numbers of last tokens that are searched for in the earlier tokens, in this order."""
_FEW = 32
"""If a row has more pending tokens, a separate pass runs all but the last of them, without logits for each token."""


class Drafter(Protocol):
    """Proposes the next tokens of one row. `count`: the maximum number of tokens of one proposal."""

    count: int

    def propose(self, row: Row, most: int) -> list[int]:
        """Return at most `most` tokens. The list may be empty."""
        ...


class PromptLookup:
    """Proposes the tokens that followed the latest earlier occurrence of the last tokens, in the prompt or the text."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._ends: dict[tuple[int, ...], int] = {}  # sequences of tokens, and the index after their last occurrence
        self._done = 0

    def propose(self, row: Row, most: int) -> list[int]:
        tokens = row.session.tokens
        self._done = min(self._done, len(tokens) - 1)
        for end in range(self._done, len(tokens)):
            for size in _SIZES:
                if end >= size:
                    self._ends[tuple(tokens[end - size : end])] = end
        self._done = len(tokens)
        for size in _SIZES:
            last = tuple(tokens[-size:])
            end = self._ends.get(last, 0)
            if size <= end < len(tokens) and tuple(tokens[end - size : end]) == last:
                return tokens[end : end + most]
        return []


class AssistantDrafter:
    """Proposes the greedy tokens of a smaller model with the same vocabulary, under the row's constraint."""

    def __init__(self, model: ModelBase, count: int) -> None:
        self.count = count
        self._session: Session = model.session(logits_bytes=0)

    def propose(self, row: Row, most: int) -> list[int]:
        return self.propose_all([row], [most])[0]

    def begin(self, row: Row) -> Session:
        """Change the session of the small model to the tokens of the row, and return it.

        Its matcher is a copy of the row's matcher, if any. Raises `GuidewayError` if the tokens exceed the context of
        the small model.
        """
        session, tokens = self._session, row.session.tokens
        session.constrain(None)
        kept = common_length(tokens, session.tokens)
        session.rewind(len(session) - kept)
        session.check(tokens[kept:], kept)
        session.take(tokens[kept:])
        if row.session.matcher is not None:
            session.constrain(row.session.matcher.fork())
        return session

    @staticmethod
    def propose_all(rows: Sequence[Row], most: Sequence[int]) -> list[list[int]]:
        """`propose` for several rows, in passes of the small model that they share."""
        made: list[list[int]] = [[] for _ in rows]
        sessions: dict[int, Session] = {}
        for number, row in enumerate(rows):
            drafter = cast(AssistantDrafter, row.drafter)
            try:
                sessions[number] = drafter.begin(row)
            except GuidewayError:  # for example: the context of the small model is too small
                continue
        while going := [
            number
            for number, session in sessions.items()
            if len(made[number]) < most[number] and session.room > 0 and not session.is_finished
        ]:
            try:
                drawn = infer_all([sessions[number] for number in going])
            except GuidewayError:
                break
            for number, token_id in zip(going, drawn, strict=True):
                made[number].append(token_id)
        return made


def check_assistant(model: ModelBase, assistant: object) -> None:
    """Raise `TypeError` or `ValueError` for an assistant that cannot propose tokens of a model."""
    if not isinstance(assistant, ModelBase):
        raise TypeError(f"assistant_model must be a guideway.Model, got {short_repr(assistant)}")
    if assistant.vocabulary != model.vocabulary:
        raise ValueError(
            f"assistant_model must have the vocabulary of {model.name}, got another one ({assistant.name})"
        )


def _drafts(rows: Sequence[Row]) -> list[list[int]]:
    """Return the proposed tokens of each row, up to the first one that its constraint does not allow."""
    most = [0 if row.drafter is None else max(0, min(row.drafter.count, row.left - 1)) for row in rows]
    drafts: list[list[int]] = [[] for _ in rows]
    groups: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        if isinstance(row.drafter, AssistantDrafter) and most[number]:
            groups.setdefault(id(row.drafter._session.model), []).append(number)
        elif row.drafter is not None and most[number]:
            drafts[number] = row.drafter.propose(row, most[number])
    for members in groups.values():
        found = AssistantDrafter.propose_all([rows[i] for i in members], [most[i] for i in members])
        for number, draft in zip(members, found, strict=True):
            drafts[number] = draft
    for number, (row, draft) in enumerate(zip(rows, drafts, strict=True)):
        if draft and row.session.matcher is not None:
            drafts[number] = draft[: row.session.matcher.validate(draft)]
    return drafts


def speculate(rows: Sequence[Row]) -> None:
    """Run one pass over the pending and the proposed tokens of rows, and take the tokens that are drawn from it.

    `Row.strides` must be True for each row. Raises the errors of `feed_all`.
    """
    begun = perf_counter()
    model = rows[0].session.model
    engine = cast(VerifyingEngine, model.engine)
    drafts = _drafts(rows)
    takers = [row.taker() for row in rows]
    starts = [(len(row.session), row.session.model_seconds, row.session.mask_seconds) for row in rows]
    _run_prompts(rows)
    plans = [row.session._plan() for row in rows]
    feeds = [[*ids, *draft] for (_, ids), draft in zip(plans, drafts, strict=True)]
    logits, made = model.run(engine.forward_all, feeds, [cache for cache, _ in plans])
    first = perf_counter() - begun
    width, drawing = len(model.vocabulary), perf_counter()
    for row, take, (_, ids), draft, found, cache in zip(rows, takers, plans, drafts, logits, made, strict=True):
        begin, agreed = len(row.session), 0
        while True:
            new = take(found[len(ids) - 1 + agreed][:width])
            same = 0 if new is None else common_length(new, draft[agreed:])
            agreed += same
            if new is None or same < len(new):
                break
        row.drafted += len(draft)
        row.accepted += agreed
        row.session._went_on(cache, len(ids) + len(draft), min(row.lowest, begin + agreed))
    drawing = perf_counter() - drawing
    for row, (start, seconds, masking) in zip(rows, starts, strict=True):
        row.session.model_seconds += first / len(rows)
        row.session.sample_seconds += max(0.0, drawing / len(rows) - (row.session.mask_seconds - masking))
        row.settle(start, seconds + first / len(rows))


def _run_prompts(rows: Sequence[Row]) -> None:
    """For each row with more than `_FEW` pending tokens, run these tokens except the last one."""
    model = rows[0].session.model
    plans = [(row.session, *row.session._plan()) for row in rows]
    work = [(session, cache, ids[:-1]) for session, cache, ids in plans if len(ids) > _FEW]
    if not work:
        return
    _, made = model.run(model.engine.forward, [ids for _, _, ids in work], [cache for _, cache, _ in work])
    for (session, _, ids), after in zip(work, made, strict=True):
        session._received(len(ids), after)
