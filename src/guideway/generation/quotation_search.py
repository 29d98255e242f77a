"""Verbatim strings that are chosen as a whole: a best-first beam search over the strings that occur in the source.

The most probable first token may begin strings that are all improbable as a whole. So the string is chosen whose tokens are
together the most probable. The probabilities are those under the mask, with which sampling draws: a token that the text
forces has the probability 1. On texts that the bundled model was not trained on, this repairs more fields than the
probabilities of the model (45 % and 35 % of 112), because a model that copies badly gives forced tokens arbitrary values.

The search extends the most probable beginning of a string by one token at a time, and at most N beginnings of each
length. It finds the same string as a beam search with N beams, because a longer beginning is never more probable. If the
model is certain, it runs as many tokens as without a search. One pass of the model takes one token of one beginning, so a
row that searches costs the other rows of its batch no more than a row that draws.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from typing import NamedTuple

import numpy as np

from guideway import masks
from guideway.errors import BudgetTooSmallError, UnsatisfiableError
from guideway.matcher import Matcher
from guideway.sampling import TokenLogprobs, log_softmax, report
from guideway.sessions.divergence import Divergence
from guideway.sessions.prefix_cache import common_length
from guideway.sessions.session import Session

__all__ = ["MAX_TOKENS", "Quotation", "QuotationSearch", "Quotations"]

MAX_TOKENS = 64
"""The maximum number of tokens of a string that is chosen as a whole. The end of a longer one is chosen token by token."""


class _Step(NamedTuple):
    """A token of a string.

    Attributes:
        token_id: Its id.
        forced: Whether it was the only legal token.
        logprobs: Its `TokenLogprobs`, if they are requested.
    """

    token_id: int
    forced: bool
    logprobs: TokenLogprobs | None


class Quotation(NamedTuple):
    """A string that was chosen as a whole.

    Attributes:
        steps: Its tokens, with the token that ends it.
        session: A fork of the session, after these tokens.
        divergence: The first token that would be another without the token budget; None: there is none, or it is not
            known.
    """

    steps: tuple[_Step, ...]
    session: Session
    divergence: Divergence | None = None


class QuotationSearch:
    """The search for one verbatim string.

    Args:
        session: A session whose matcher is before or inside a verbatim string. Its model has run. It does not change.
        width: The maximum number of beginnings of each length that are extended.
        budget: The maximum number of tokens up to the end of the text; None: any.
        longest: The maximum number of tokens of the string.
        min_position: EOS is excluded before this number of the session's tokens, unless nothing else is legal.
        compare: Set `is_narrowed`.
        logprobs: As in `Limits`.

    Attributes:
        session: A fork of the session. Run its model before each call of `advance`.
        is_narrowed: Whether the budget removed tokens that the constraint allows.
    """

    def __init__(
        self,
        session: Session,
        width: int,
        *,
        budget: int | None = None,
        longest: int = MAX_TOKENS,
        min_position: int = 0,
        compare: bool = False,
        logprobs: int | None = None,
    ) -> None:
        self.session = session.fork()
        self.is_narrowed = False
        self._start, self._width, self._budget, self._longest = len(session), width, budget, longest
        self._min_position, self._compare, self._logprobs = min_position, compare, logprobs
        self._beginnings: list[tuple[float, int, tuple[_Step, ...]]] = []  # a heap: the most probable one first
        self._numbers = itertools.count()
        self._taken: Counter[int] = Counter()  # how many beginnings of each length were extended
        self._here: tuple[float, tuple[_Step, ...]] | None = (0.0, ())  # the beginning to extend, which the session has

    def advance(self) -> Quotation | None:
        """Extend the beginning that the session has, and move the session to the next one.

        Returns:
            The string, which has no steps if there is none within the budget; None: the search continues.

        Raises:
            WorkDeferred: As in the generation loop. The call can be repeated.
        """
        if self._here is not None:
            self._extend(*self._here)
            self._here = None
        while self._beginnings:
            cost, _, steps = self._beginnings[0]
            is_ended = False
            if self._taken[len(steps)] < self._width:
                is_ended = self._move([step.token_id for step in steps]) or len(steps) >= self._longest
                self._taken[len(steps)] += 1
                if not is_ended:
                    self._here = cost, steps
            heapq.heappop(self._beginnings)
            if is_ended:
                return Quotation(steps, self.session)
            if self._here is not None:
                return None
        return Quotation((), self.session)

    def _extend(self, cost: float, steps: tuple[_Step, ...]) -> None:
        """Add the most probable extensions of a beginning by one token. `cost`: its negative log-probability."""
        session = self.session
        avoid = session.tokenizer.eos_ids if len(session) < self._min_position else ()
        left = None if self._budget is None else self._budget - len(steps)
        try:
            only = session.only_legal(left, avoid=avoid, compare=self._compare)
        except (BudgetTooSmallError, UnsatisfiableError):
            self.is_narrowed = self.is_narrowed or left is not None
            return
        self.is_narrowed = self.is_narrowed or session.budget_narrows
        logits = session.shared_logits()
        logprobs = log_softmax(logits)
        allowed = np.arange(logprobs.size) if session.mask is None else masks.ids(session.mask, logprobs.size)
        legal = logprobs[allowed]
        legal = legal - np.logaddexp.reduce(legal)
        for at in np.argsort(-legal, kind="stable")[: self._width].tolist():
            if legal[at] == -np.inf:
                break
            token_id, shown = int(allowed[at]), None
            if self._logprobs is not None:
                shown = report(logits, session.mask, token_id, forced=only is not None, count=self._logprobs)
            step = _Step(token_id, only is not None, shown)
            heapq.heappush(self._beginnings, (cost - float(legal[at]), next(self._numbers), (*steps, step)))

    def _move(self, ids: list[int]) -> bool:
        """Rewind the session to a beginning that was extended, and feed the rest. Returns whether the string has ended."""
        session = self.session
        there = session.tokens[self._start :]
        kept = common_length(there, ids)
        session.rewind(len(there) - kept)
        session.take(ids[kept:])
        matcher = session.matcher
        return matcher is None or matcher.is_finished or matcher.quotation != "inside"


class Quotations:
    """The verbatim strings of a row, one after the other. `width`: as in `QuotationSearch`."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._search: QuotationSearch | None = None
        self._budgeted: Quotation | None = None  # found, and now compared with the string without the budget
        self._is_drawn = False  # whether the rest of the string is drawn token by token

    @property
    def session(self) -> Session | None:
        """The session that the model is to run; None: that of the row."""
        return None if self._search is None else self._search.session

    def is_next(self, matcher: Matcher | None) -> bool:
        """Whether the next tokens are those of a string that is chosen as a whole. `matcher`: that of the row."""
        if self._search is not None:
            return True
        if matcher is None or matcher.is_finished or (place := matcher.quotation) is None:
            self._is_drawn = False
            return False
        self._is_drawn = self._is_drawn and place == "inside"
        return not self._is_drawn

    def draw_rest(self) -> None:
        """Leave the rest of the string here to the sampler."""
        self._search, self._budgeted, self._is_drawn = None, None, True

    def advance(
        self, session: Session, left: int, *, complete: bool, compare: bool, min_position: int, logprobs: int | None
    ) -> Quotation | None:
        """Take one step of the search. The model of `Quotations.session` has run.

        Args:
            session: The session of the row.
            left: The number of tokens that the row may take.
            complete: Whether the text must be complete within them.
            compare: Whether to set `Quotation.divergence`.
            min_position: As in `QuotationSearch`.
            logprobs: As in `QuotationSearch`.

        Returns:
            As in `QuotationSearch.advance`.
        """
        if self._search is None:
            self._search = QuotationSearch(
                session,
                self._width,
                budget=left if complete else None,
                longest=min(MAX_TOKENS, left),
                min_position=min_position,
                compare=compare,
                logprobs=logprobs,
            )
        found = self._search.advance()
        if found is None:
            return None
        if self._budgeted is None and found.steps and self._search.is_narrowed:
            self._budgeted = found
            longest = min(MAX_TOKENS, session.room)
            self._search = QuotationSearch(session, self._width, longest=longest, min_position=min_position)
            return None
        if self._budgeted is not None:
            found = self._budgeted._replace(divergence=_difference(len(session), self._budgeted, found))
        self._search, self._budgeted = None, None
        self._is_drawn = len(found.steps) >= MAX_TOKENS
        return found


def _difference(start: int, budgeted: Quotation, free: Quotation) -> Divergence | None:
    """Return the first token of a string without the token budget that differs from the string with it."""
    ids, wanted = ([step.token_id for step in one.steps] for one in (budgeted, free))
    at = common_length(ids, wanted)
    return Divergence(start + at, wanted[at]) if at < len(wanted) else None
