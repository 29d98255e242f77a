"""Verbatim strings that are chosen as a whole: a best-first beam search over the strings that occur in the source.

First, the model writes a string without the constraint, token by token. If this string occurs in the source, it is
chosen. Otherwise, a beam search extends strings of the source, and the complete one with the highest score is chosen.
The score is the sum of:

- the log-probabilities of its tokens under the model. The model misspells words that it does not know, so the
  probability of the right spelling means little. Therefore, the log-probability of a token is at least that under the
  mask minus `SURPRISE`. This does not apply to tokens that add only punctuation marks of ASCII: an unexpected mark
  usually belongs to the sentence around the string and not to the string, such as the "?" of "Who wants a lamp?".
- the similarity (0 to 1) of the string to the one that the model wrote, times `SIMILARITY`.
- the logarithm of one plus its length in bytes, times `LENGTH`. Without it, the shortest strings would be preferred,
  because each token makes a string less probable. Bytes after the first `LONG` do not count.

In each step, the search extends the most probable beginning of a string by one token. It extends at most `width`
beginnings of each length. It finds the same string as a beam search with `width` beams, because a longer beginning is
never more probable than a shorter one from which it was made. A step needs the logits after one beginning. So the model
runs once for each step, in the same pass as for the other rows of the batch.
"""

from __future__ import annotations

import heapq
import itertools
import math
import re
from collections import Counter
from typing import Literal, NamedTuple

import numpy as np

from guideway import masks
from guideway.errors import BudgetTooSmallError, UnsatisfiableError
from guideway.matcher import Matcher
from guideway.sampling import TokenLogprobs, log_softmax, report
from guideway.sessions.divergence import Divergence
from guideway.sessions.prefix_cache import common_length
from guideway.sessions.session import Session

__all__ = ["MAX_TOKENS", "SIMILARITY", "Quotation", "QuotationSearch", "Quotations", "similarity"]

MAX_TOKENS = 64
"""The maximum number of tokens of a string that is chosen as a whole.

Of a longer string, the first `MAX_TOKENS` tokens are chosen as a whole, and the others are drawn one by one.
"""

SURPRISE = 2.0
"""The log-probability of a token counts as at least its log-probability under the mask minus this number.

Tokens that add only punctuation marks are an exception, see the module's docstring.

This constant and the next three were chosen with texts of `tools/tiny_data`.
"""

SIMILARITY = 4.0
"""The weight of the similarity to the string that the model wrote, in the score of a verbatim string."""

LENGTH = 2.0
"""The weight of the logarithm of one plus the length in bytes, in the score of a verbatim string."""

LONG = 16
"""Bytes after this number do not count in the length that the score of a verbatim string depends on."""

MAX_COMPARED = 256
"""The similarity of strings is computed from at most this number of bytes at their beginning."""

_MAX_BONUS = SIMILARITY + LENGTH * math.log1p(LONG)

_MARKS = re.compile(  # a token that adds only white space and punctuation marks to the string, and at least one mark
    rb'\s*[^\w\s"\\\x80-\xff][^\w"\\\x80-\xff]*(?:".*)?', re.DOTALL
)
_INSIDE = re.compile(rb'(?:[^"\\]|\\.?)*', re.DOTALL)


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
        steps: Its tokens, including the token that ends it, or its first `longest` tokens (see `QuotationSearch`).
            Empty: no string was found that fits the token budget.
        session: A fork of the row's session, after these tokens; without meaning if there are none.
        divergence: The first token that would be different without the token budget; None: there is none, or it is not
            known.
    """

    steps: tuple[_Step, ...]
    session: Session
    divergence: Divergence | None = None


class QuotationSearch:
    """The search for one verbatim string.

    Args:
        session: A session whose matcher is before or inside a verbatim string, and whose logits are computed. The
            search changes only a fork of it.
        width: The maximum number of beginnings of each length that are extended.
        budget: The maximum number of tokens up to the end of the text; None: no limit.
        longest: The maximum number of tokens. A string that is not complete after them is treated as if it were.
        min_position: EOS is excluded before this number of the session's tokens, unless nothing else is legal.
        compare: Whether masks are also computed without the budget, so that `is_narrowed` is exact.
        logprobs: As in `Limits`.

    Attributes:
        session: A fork of the session. Run its model before each call of `advance`.
        is_narrowed: Whether the search has found that the budget removed tokens that the constraint allows.
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
        self._base = session
        self._start, self._width, self._budget, self._longest = len(session), width, budget, longest
        self._min_position, self._compare, self._logprobs = min_position, compare, logprobs
        self._written: list[_Step] = []  # the model's tokens, up to the first that the constraint forbids
        self._phase: Literal["write", "write on", "compete"] = "write"
        self._free: list[int] = []  # all tokens of the string that the model writes
        self._own = b""  # the content of the string that the model writes without the constraint, as JSON bytes
        self._beginnings: list[tuple[float, int, tuple[_Step, ...]]] = []  # a heap: the most probable one first
        self._numbers = itertools.count()
        self._taken: Counter[int] = Counter()  # how many beginnings of each length were extended
        self._here: tuple[float, tuple[_Step, ...]] | None = None  # the beginning to extend; `session` contains it
        self._best: tuple[float, tuple[_Step, ...]] | None = None  # the best string so far, with its score

    def advance(self) -> Quotation | None:
        """Do one step of the search. The model must run for `session` before each call.

        Returns:
            The chosen string. Its `steps` are empty if no string was found that fits the budget. None: the search is
            not finished.

        Raises:
            WorkDeferred: The step exceeds the work limit of the thread (`bound_work`). The call can be repeated.
        """
        if self._phase == "write":
            return self._write()
        if self._phase == "write on":
            if not self._write_on():
                return None
            self.session, self._here, self._phase = self._base.fork(), (0.0, ()), "compete"
        return self._compete()

    def _write(self) -> Quotation | None:
        """Draw the next token without the constraint, and take it if the constraint allows it.

        If the constraint does not allow it, the phase "write on" begins. Returns the string when it has ended or has
        `longest` tokens, an empty one if no token fits the budget, and else None.
        """
        session = self.session
        try:
            only = self._fill_mask(len(self._written))
            token_id = session.draw_from(session.shared_logits(), None)
        except (BudgetTooSmallError, UnsatisfiableError):
            return Quotation((), session)
        if session.mask is not None and not session.mask[token_id >> 5] >> np.uint32(token_id & 31) & 1:
            free = session.fork()
            free.constrain(None)
            free.take([token_id])
            self._free, self.session = [*(step.token_id for step in self._written), token_id], free
            self._phase = "write on"
            return None
        step = self._step(token_id, only)
        session.take([token_id])
        self._written.append(step)
        if self._has_ended() or len(self._written) >= self._longest:
            return Quotation(tuple(self._written), session)
        return None

    def _write_on(self) -> bool:
        """Draw and take the next token of the model's string without the constraint.

        Returns True, and draws nothing, if the string has ended.
        """
        session, free = self.session, self._free
        text = session.tokenizer.vocabulary.bytes_of(free)
        self._own = _content(text)
        if len(self._own) < len(text) or free[-1] in session.tokenizer.eos_ids or len(free) >= self._longest:
            return True
        token_id = session.draw_from(session.shared_logits(), None)
        session.take([token_id])
        free.append(token_id)
        return False

    def _compete(self) -> Quotation | None:
        """Extend the beginning that `session` contains, and move `session` to the next beginning.

        Returns the string with the best score when no beginning is left that can lead to a better one, else None. The
        string is empty if the search found none.
        """
        if self._here is not None:
            self._extend(*self._here)
            self._here = None
        while self._beginnings and not self._is_decided():
            cost, _, steps = self._beginnings[0]
            is_over = True
            if self._taken[len(steps)] < self._width:
                is_over = self._move([step.token_id for step in steps]) or len(steps) >= self._longest
                self._taken[len(steps)] += 1
                if is_over:
                    score = self._bonus(steps) - cost
                    if self._best is None or score > self._best[0]:
                        self._best = score, steps
                else:
                    self._here = cost, steps
            heapq.heappop(self._beginnings)
            if not is_over:
                return None
        steps = () if self._best is None else self._best[1]
        self._move([step.token_id for step in steps])
        return Quotation(steps, self.session)

    def _is_decided(self) -> bool:
        """Return whether no remaining beginning can lead to a better score than the best one so far."""
        return self._best is not None and _MAX_BONUS - self._beginnings[0][0] <= self._best[0]

    def _fill_mask(self, taken: int) -> bool:
        """Compute the mask of `session`. Returns whether exactly one token is legal.

        `taken`: the number of tokens of the string so far. Raises `BudgetTooSmallError` and `UnsatisfiableError`.
        """
        session = self.session
        avoid = session.tokenizer.eos_ids if len(session) < self._min_position else ()
        left = None if self._budget is None else self._budget - taken
        try:
            only = session.only_legal(left, avoid=avoid, compare=self._compare)
        except (BudgetTooSmallError, UnsatisfiableError):
            self.is_narrowed = self.is_narrowed or left is not None
            raise
        self.is_narrowed = self.is_narrowed or session.budget_narrows
        return only is not None

    def _step(self, token_id: int, only: bool) -> _Step:
        session, count = self.session, self._logprobs
        if count is None:
            return _Step(token_id, only, None)
        return _Step(token_id, only, report(session.shared_logits(), session.mask, token_id, forced=only, count=count))

    def _extend(self, cost: float, steps: tuple[_Step, ...]) -> None:
        """Add the most probable extensions of a beginning by one token.

        `cost`: the negative log-probability of the beginning.
        """
        session = self.session
        try:
            only = self._fill_mask(len(steps))
        except (BudgetTooSmallError, UnsatisfiableError):
            return
        logprobs = log_softmax(session.shared_logits())
        allowed = np.arange(logprobs.size) if session.mask is None else masks.ids(session.mask, logprobs.size)
        legal = logprobs[allowed]
        inside = float(np.logaddexp.reduce(legal))  # the log-probability of all legal tokens together
        bounded = np.maximum(legal, legal - inside - SURPRISE)
        best: list[tuple[float, int]] = []
        for at in np.argsort(-bounded, kind="stable").tolist():
            if bounded[at] == -np.inf or (len(best) == self._width and bounded[at] <= best[-1][0]):
                break
            token_id = int(allowed[at])
            is_mark = _MARKS.fullmatch(session.tokenizer.vocabulary.bytes_of([token_id])) is not None
            best.append((float(legal[at] if is_mark else bounded[at]), token_id))
            best = sorted(best, key=lambda one: -one[0])[: self._width]
        for logprob, token_id in best:
            if logprob > -np.inf:
                step = self._step(token_id, only)
                heapq.heappush(self._beginnings, (cost - logprob, next(self._numbers), (*steps, step)))

    def _move(self, ids: list[int]) -> bool:
        """Rewind and extend `session`, so that its tokens since the search began are `ids`.

        Returns whether the string has ended.
        """
        session = self.session
        there = session.tokens[self._start :]
        kept = common_length(there, ids)
        session.rewind(len(there) - kept)
        session.take(ids[kept:])
        return self._has_ended()

    def _has_ended(self) -> bool:
        matcher = self.session.matcher
        return matcher is None or matcher.is_finished or matcher.quotation != "inside"

    def _bonus(self, steps: tuple[_Step, ...]) -> float:
        """Return what the similarity and the length of a string add to its score."""
        text = _content(self.session.tokenizer.vocabulary.bytes_of([step.token_id for step in steps]))
        return SIMILARITY * similarity(text, self._own) + LENGTH * math.log1p(min(len(text), LONG))


def _content(text: bytes) -> bytes:
    """Return the bytes before the quotation mark that ends a JSON string; all bytes if there is none."""
    found = _INSIDE.match(text)
    return text if found is None else found[0]


def similarity(one: bytes, other: bytes) -> float:
    """Return the length of the longest common subsequence, divided by the length of the longer text.

    Only the first `MAX_COMPARED` bytes of each text are compared.
    """
    one, other = one[:MAX_COMPARED], other[:MAX_COMPARED]
    places: dict[int, int] = {}  # for each byte, the positions at which it occurs in `one`, as bits
    for place, byte in enumerate(one):
        places[byte] = places.get(byte, 0) | 1 << place
    every = row = (1 << len(one)) - 1  # bit-parallel algorithm: a bit is 0 where the subsequence becomes longer
    for byte in other:
        both = row & places.get(byte, 0)
        row = ((row + both) | (row - both)) & every
    return (len(one) - row.bit_count()) / max(1, len(one), len(other))


class Quotations:
    """The searches for the verbatim strings of a row, one after the other. `width`: as in `QuotationSearch`."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._search: QuotationSearch | None = None
        self._budgeted: Quotation | None = None  # the string found, while a second search runs without the budget
        self._is_drawn = False  # whether the rest of the present string is drawn token by token

    @property
    def session(self) -> Session | None:
        """The session of the search, which the model must run next.

        None: no search runs, so the model must run the session of the row.
        """
        return None if self._search is None else self._search.session

    def is_next(self, matcher: Matcher | None) -> bool:
        """Return whether the next tokens are those of a string that is chosen as a whole.

        This is so if a search runs, or if the matcher is before or inside a verbatim string that is not drawn token by
        token. `matcher`: the matcher of the row.
        """
        if self._search is not None:
            return True
        return not self._is_drawn and matcher is not None and not matcher.is_finished and matcher.quotation is not None

    def follow(self, matcher: Matcher | None) -> None:
        """Check whether a string that is drawn token by token has ended, after the row has taken tokens.

        `matcher`: the matcher of the row.
        """
        if self._is_drawn:
            self._is_drawn = matcher is not None and not matcher.is_finished and matcher.quotation == "inside"

    def draw_rest(self) -> None:
        """End the search without a result. The rest of the string is then drawn token by token."""
        self._search, self._budgeted, self._is_drawn = None, None, True

    def advance(
        self, session: Session, left: int, *, complete: bool, compare: bool, min_position: int, logprobs: int | None
    ) -> Quotation | None:
        """Do one step of the search.

        Before the call, the model must run for the session of the search, or for the row's session if no search runs.
        With `compare`, the search records whether the budget removed tokens. If it did and a string was found, a second
        search without the budget follows. `Quotation.divergence` is the first difference of the two strings.

        Args:
            session: The session of the row.
            left: The number of tokens that the row may take.
            complete: Whether the text must be complete within these tokens.
            compare: Whether to find the divergence.
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
        if compare and self._budgeted is None and found.steps and self._search.is_narrowed:
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
    """Return the first token of `free`, a string chosen without the token budget, that differs from `budgeted`.

    None: `budgeted` begins with all tokens of `free`. `start`: the position in the session at which both begin.
    """
    ids, wanted = ([step.token_id for step in one.steps] for one in (budgeted, free))
    at = common_length(ids, wanted)
    return Divergence(start + at, wanted[at]) if at < len(wanted) else None
