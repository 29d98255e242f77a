"""The generation loop: sequences that share a model, each with its own constraint, sampler and limits.

One round takes forced tokens, runs the model over the pending tokens of all sequences, and draws one token in each (or
several: `multi_step`, `speculation`). A finished sequence leaves the batch, and the next one joins.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from guideway.engines.base import splits_rows
from guideway.errors import BudgetTooSmallError, LimitExceededError, UnsatisfiableError
from guideway.generation.deferral import JOIN_WORK, Deferral, WorkDeferred, bound_work
from guideway.generation.multi_step import stride
from guideway.generation.quotation_search import Quotation, Quotations
from guideway.generation.speculation import Drafter, speculate
from guideway.generation.stop_checker import Watch
from guideway.generation.unbudgeted import SETTLED, UnbudgetedRun
from guideway.matcher import Matcher, usual_tokens
from guideway.sampling import TokenLogprobs, report
from guideway.sessions.batch_step import feed_all
from guideway.sessions.divergence import Divergence
from guideway.sessions.session import Session

__all__ = ["FinishReason", "Limits", "Row", "Timings", "decode", "rounds", "step"]

FinishReason = Literal["stop", "length"]

MOST_TAKEN_BACK = 512
"""How often tokens may be removed (because of banned strings or the token budget) without progress."""

_NONE: frozenset[int] = frozenset()
"""No ids."""

PREFILL_TOKENS = 256
"""The maximum number of tokens of long prompts that run in one round while another row generates."""


@dataclass(frozen=True)
class Timings:
    """Where the time was spent, in seconds. Sequences that run together share the time of the model.

    Attributes:
        prompt: The passes of the model before the first draw, over the prompt and the forced tokens after it.
        model: The other passes of the model.
        mask: The constraint.
        sample: Drawing tokens.
    """

    prompt: float
    model: float
    mask: float
    sample: float


@dataclass(frozen=True)
class Limits:
    """When a row ends, and which text it must not contain.

    Attributes:
        max_tokens: The maximum number of tokens, EOS included.
        min_tokens: Nothing ends the text before this number of tokens, except a constraint that allows nothing else.
        stop: Strings that end the text. The text ends before them.
        stop_token_ids: Ids that end the text, in addition to EOS.
        stopping_criteria: Called with the text after each draw that does not end it; True ends the text.
        bad_words: Strings that the text never contains.
        complete: Under a constraint, take only tokens after which the text can be completed within `max_tokens`.
        logprobs: Record a `TokenLogprobs` of every token, with this number of alternatives; None: record none.
        halt_on_divergence: End the row before the first token that the token budget changes.
        verbatim_num_beams: The number of beginnings of each length of a verbatim string that are extended; 1: it is
            drawn token by token.
    """

    max_tokens: int
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    stopping_criteria: Callable[[str], bool] | None = None
    bad_words: tuple[str, ...] = ()
    complete: bool = True
    logprobs: int | None = None
    halt_on_divergence: bool = False
    verbatim_num_beams: int = 1


class Row:
    """One sequence in generation: a session after its prompt, and its limits.

    Args:
        session: The session.
        limits: The limits.
        begun: The number of tokens at the end of the session that already belong to the output, when a text is resumed.
        steps: The known log-probabilities of these tokens; there may be fewer than `begun`.
        healed: The text at the start of the output's tokens that is not output (token healing).
        free_after: Whether the constraint applies only to `healed`, and free text follows.
        earlier: The first token that a token budget changed before the row was resumed; None: there is none.

    Attributes:
        forced: The number of tokens that had no alternative and were not drawn.
        finish_reason: "length" if `max_tokens` or `Limits.halt_on_divergence` ended the text, "stop" at any other end.
            None: the row continues, or `error` ended it.
        error: The error that ended the row, or None.
        steps: The argument `steps`, and the log-probabilities of new tokens if `Limits.logprobs` is not None.
        lowest: The lowest position to which the row was rewound since the last call of `taker`; `sys.maxsize` if it was
            not.
        drafter: Proposes tokens (speculative decoding); None: nothing does.
        drafted: The number of proposed tokens.
        accepted: The number of proposed tokens that were taken.
        streams: Whether the time until the first token matters to the caller.
        awaits_logits: Whether `take_forced` was called at this position, and the row waits because tokens are pending.
        begun: As the argument.
        earlier: As the argument; None, too, if the row was rewound to or before this token.

    Raises:
        BudgetTooSmallError: The shortest text of the constraint needs more than `max_tokens`. This is not raised if the
            check takes more than `JOIN_WORK`; `take_forced` then repeats it.
        UnsatisfiableError: The resumed text contains a banned string.
    """

    def __init__(
        self,
        session: Session,
        limits: Limits,
        *,
        begun: int = 0,
        steps: Sequence[TokenLogprobs] = (),
        healed: str = "",
        free_after: bool = False,
        earlier: Divergence | None = None,
    ) -> None:
        self.session = session
        self.limits = limits
        self.finish_reason: FinishReason | None = None
        self.error: BaseException | None = None
        self.steps: list[TokenLogprobs] = list(steps)
        self.earlier = earlier
        # These two are used only with banned strings: the divergence, and the comparison run without the budget, which
        # begins when the budget changes a token.
        self._changed: Divergence | None = None
        self._free_run: UnbudgetedRun | None = None
        self._unseen = begun - len(steps)  # the number of tokens at the start without log-probabilities
        self._ends = frozenset(session.tokenizer.eos_ids) | limits.stop_token_ids
        self.begun = begun
        self._start = len(session) - begun
        self._forced: set[int] = set()  # positions in the session
        self._forbidden: dict[int, set[int]] = {}  # excluded ids by position in the session
        self._refused: tuple[int, list[int]] = (0, [])  # a position, and ids forced there that do not fit the budget
        searches = limits.verbatim_num_beams > 1 and not limits.bad_words and session.sampler.bare
        self._is_in_call = False  # whether `_take_held` runs; `settle` then calls `keep_prefix`
        self._quotations = Quotations(limits.verbatim_num_beams) if searches and session.matcher is not None else None
        self._taken_back, self._furthest = 0, 0  # calls of `_take_back` since the row was longest, and its length then
        self._prompt_seconds: float | None = None
        self._mask_before, self._sample_before = session.mask_seconds, session.sample_seconds
        banned = tuple(text.encode() for text in limits.bad_words)
        stop = tuple(text.encode() for text in limits.stop)
        self.watch = Watch(session.tokenizer.vocabulary, stop, banned, healed, limits.min_tokens)
        self._free_after = self.watch.skipped if free_after else 0
        matcher = session.matcher
        self.is_checked = not (limits.complete and matcher is not None)
        before = bound_work(JOIN_WORK)
        try:
            self._check_budget()
        except WorkDeferred:
            pass  # `take_forced` repeats the check
        finally:
            bound_work(before)
        if begun and self._watched(self.tokens, matcher) is not None:
            raise UnsatisfiableError(f"the output of the state contains a banned string of {limits.bad_words}")
        if self.watch.cut is not None:
            self.finish_reason = "stop"
        self._unwatched = not limits.bad_words and limits.stopping_criteria is None and limits.logprobs is None
        self.lowest = sys.maxsize
        self.drafter: Drafter | None = None
        self.drafted = self.accepted = 0
        self.streams = True
        self.awaits_logits = False
        # Whether nothing but the end of the text must be checked after a token, if there is no matcher and no mask.
        self._is_free = self._unwatched and not limits.min_tokens and self._quotations is None and not self._free_after
        self._may_halt = limits.halt_on_divergence and not limits.bad_words

    def count_forced(self, other: Row) -> None:
        """Count tokens as forced that were forced in another row with the same beginning."""
        self._forced |= {place for place in other._forced if place < len(self.session)}

    @property
    def tokens(self) -> list[int]:
        """The generated ids, EOS included."""
        return self.session.tokens[self._start :]

    @property
    def left(self) -> int:
        """The number of tokens that the row may still take."""
        return self.limits.max_tokens - (len(self.session) - self._start)

    @property
    def divergence(self) -> Divergence | None:
        """The first position of the output at which the token budget changed the token; None: there is none.

        Its `token_id` is the token that the budget replaced. With banned strings, it is provisional until the row is
        over.

        If the row was resumed and has `earlier`, this is `earlier`. Exception: with `halt_on_divergence`, it is the
        first token changed since the row was resumed, before which the row ends, and `earlier` only if there is none.
        """
        if self.earlier is not None and not self.limits.halt_on_divergence:
            return self.earlier
        found = self._changed if self.limits.bad_words and self.is_over else self.session.divergence
        return found if found is not None and found.position >= self._start else self.earlier

    @property
    def forced(self) -> int:
        return len(self._forced)

    @property
    def is_over(self) -> bool:
        return self.finish_reason is not None or self.error is not None

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

    def take_forced(self) -> None:
        """Take tokens while there is no alternative, without running the model.

        If log-probabilities are requested, no token is taken here: the model must run over each, and `draw` takes it.
        Raises `BudgetTooSmallError` if the constraint needs more than `max_tokens`.
        """
        if not self.is_checked:
            self._check_budget()
        searches = self._quotations is not None
        if (searches and self._is_at_quotation()) or self.limits.logprobs is not None:
            return
        session = self.session
        while session.matcher is not None and not self.is_over:
            ids = self._forced_bytes(session.matcher) or self._only()
            if not ids:
                break
            self._take(ids, forced=True)
            if searches and self._is_at_quotation():
                break

    def _is_at_quotation(self) -> bool:
        """Return whether the next tokens are those of a verbatim string that is chosen as a whole.

        False if a token is excluded at this position. A session with a batch tolerance draws each token instead, so
        that the string does not depend on the other rows of the batch.
        """
        session, chosen = self.session, self._quotations
        if chosen is None or session.tolerance or len(session) in self._forbidden:
            return False
        return chosen.is_next(session.matcher)

    @property
    def running(self) -> Session:
        """The session that the model must run: the row's session, or the session of a search for a verbatim string."""
        chosen = self._quotations
        return self.session if chosen is None or chosen.session is None else chosen.session

    def close(self) -> None:
        """Release the KV caches of a row that has ended."""
        self.running.close()
        self.session.close()

    def _check_budget(self) -> None:
        """Raise `BudgetTooSmallError` if the shortest text needs more tokens than are left.

        After a call that raised nothing, further calls do not check.
        """
        matcher = self.session.matcher
        if not self.is_checked and matcher is not None and (needed := matcher.min_tokens_to_complete()) > self.left:
            raise BudgetTooSmallError(f"the shortest output needs {needed} tokens, and {self.left} are allowed")
        self.is_checked = True

    @property
    def has_drawn(self) -> bool:
        """Whether the model has run for this row, so that a token could be drawn."""
        return self._prompt_seconds is not None

    def draw(self) -> None:
        """Draw one token and take it, or do one step of the search for a verbatim string.

        Call `take_forced` and the forward pass of `running` (`feed_all`) first.
        """
        session = self.session
        if self._prompt_seconds is None:
            self._prompt_seconds = session.model_seconds
        if self._is_free and session.matcher is None and session.mask is None:
            token_id, start = session.draw(), len(session)
            session.take([token_id])
            self._took([token_id], start, None)
            return
        limits, gave_up = self.limits, False
        if self._quotations is not None and self._is_at_quotation():
            gave_up = not self._choose(self._quotations)
            if not gave_up:
                return
        if session.matcher is not None:  # `take_forced` found no forced token, unless log-probabilities are requested
            look = limits.logprobs is not None or gave_up
        else:
            look = bool(self._forbidden or limits.min_tokens or session.mask is not None)
        only = self._only() if look else []
        if self._may_halt and self._halts():
            return
        attempt = len(self._forbidden.get(len(session), ())) if self._forbidden else 0
        if only:
            token_id = only[0]
        else:
            token_id = session.draw(attempt=attempt, unbudgeted=self._unbudgeted() if self._refused[1] else None)
        if self._may_halt and self._halts():
            return
        if limits.bad_words and self._free_run is None and (changed := session.divergence) is not None:
            index = len(session) - self._refused[0]
            self._part([changed.token_id] if self._unbudgeted() is None else self._refused[1][index:])
        if limits.logprobs is not None:
            logits, mask = session.shared_logits(), session.mask
            self.steps.append(report(logits, mask, token_id, forced=bool(only), count=limits.logprobs))
        self._take([token_id], forced=bool(only))
        ask = limits.stopping_criteria if len(session) - self._start > limits.min_tokens else None
        if ask is not None and not self.is_over and ask(self.watch.data.decode("utf-8", "ignore")):
            self.finish_reason = "stop"

    def _choose(self, quotations: Quotations) -> bool:
        """Do one step of the search for a verbatim string, and take the string if it is found.

        Returns:
            False if no string was found that fits, so that a token must be drawn; else True.
        """
        limits = self.limits
        found = quotations.advance(
            self.session,
            self.left,
            complete=limits.complete,
            compare=self._compares and self.session.divergence is None,
            min_position=self._start + limits.min_tokens,
            logprobs=limits.logprobs,
        )
        if found is not None and not found.steps:
            quotations.draw_rest()
            return False
        if found is not None:
            self._take_quotation(found)
        return True

    def _take_quotation(self, found: Quotation) -> None:
        """Take the tokens of a verbatim string; with `halt_on_divergence`, only those before its divergence."""
        session, start, steps = self.session, len(self.session), found.steps
        if found.divergence is not None and self.limits.halt_on_divergence:
            steps = steps[: found.divergence.position - start]
        found.session.rewind(len(found.steps) - len(steps))
        session.become(found.session)
        session.divergence = session.divergence or found.divergence
        self._forced.update(start + place for place, step in enumerate(steps) if step.forced)
        self.steps += [step.logprobs for step in steps if step.logprobs is not None]
        if steps:
            self._took_uninterrupted([step.token_id for step in steps], start, session.matcher)
        self._halts()

    @property
    def strides(self) -> bool:
        """Whether several tokens may be drawn in one engine call: nothing has to inspect the row after each token."""
        if (
            not self._unwatched
            or self._is_at_quotation()
            or self._forbidden
            or not self.session.is_waiting
            or self.session.kv_hook is not None
        ):
            return False
        return len(self.session) - self._start >= self.limits.min_tokens

    def taker(self) -> Callable[[Any], list[int] | None]:
        """Return the function that draws and takes a token in a call of `stride` or `speculate`.

        The function gets the logits of the row, and returns the ids that the model must run next. None: the row must
        not draw again in this call, because it has ended, has an error, was rewound, or is at a verbatim string that is
        chosen as a whole.
        """
        self.lowest = sys.maxsize
        self._free = self.session.matcher is None and self.watch.is_idle and not self._free_after
        return self._free_taker() if self._free else self._take_held

    def _free_taker(self) -> Callable[[Any], list[int] | None]:
        """The `taker` of free text without stop strings and banned strings.

        It only checks whether the text ends; `settle` updates the row.
        """
        session, ends, most = self.session, self._ends, len(self.session) + self.left
        tokens = session._tokens  # a local name: this runs for every token of free text
        bare = None if session.tolerance else session.sampler.quick

        def take(logits: Any) -> list[int] | None:
            nonlocal bare
            token_id = None
            try:
                if bare is not None:
                    try:
                        token_id = bare(logits, None)
                    except TypeError:  # logits on a device, or an unsupported type or layout
                        bare = None
                if token_id is None:
                    token_id = session.draw_from(logits, None)
            except Exception as error:
                self.error = error
                return None
            tokens.append(token_id)
            return None if token_id in ends or len(tokens) >= most else [token_id]

        return take

    def _take_held(self, logits: Any) -> list[int] | None:
        """The `taker` of all other rows: takes a token, and the forced tokens after it."""
        session = self.session
        ran = len(session)
        self._is_in_call = True
        try:
            if session.matcher is None:
                self._take([session.draw_from(logits, None)], forced=False)
            else:
                token_id = session.draw_masked(logits, unbudgeted=self._unbudgeted() if self._refused[1] else None)
                if not self._may_halt or not self._halts():
                    self._take([token_id], forced=False)
            if session.matcher is not None and not self.is_over:
                self.take_forced()
            is_held = (
                self.is_over or bool(self._forbidden) or (self._quotations is not None and self._is_at_quotation())
            )
        except Exception as error:
            self.error, is_held = error, True
        finally:
            self._is_in_call = False
        return None if is_held else session._tokens[ran:]

    def settle(self, start: int, seconds: float) -> None:
        """Update the row at the end of a call of `stride` or `speculate` that began at position `start`.

        `seconds`: the time that the model spent on this row until the first draw of the call.
        """
        is_first = self._prompt_seconds is None
        if is_first:
            self._prompt_seconds = seconds
        if self._free and (ids := self.session.tokens[start:]):
            self._took(ids, start, None)
        if (not self._free) if self.is_over else is_first:  # if `_free` and the row is over, `_took` did it
            self.session.keep_prefix()

    def _only(self) -> list[int]:
        """Fill the mask. Returns the only legal token as a list; an empty list if several are legal.

        While no token is legal, the row is rewound. The list is also empty if this ends the row.
        """
        session, limits = self.session, self.limits
        while True:
            place = len(session)
            without = self._forbidden.get(place, _NONE) if self._forbidden else _NONE
            taken = place - self._start
            budget = limits.max_tokens - taken if limits.complete else None
            avoid = self._ends if taken < limits.min_tokens else _NONE
            try:
                one = session.only_legal(budget, without=without, avoid=avoid, compare=self._compares)
            except UnsatisfiableError:
                self._take_back(1, by_budget=self.session.budget_excludes_all)
            except BudgetTooSmallError:  # the completion is longer than estimated (array items that must be different)
                matcher = self.session.matcher
                missing = (_needed(matcher) if matcher is not None else 0) - self.left
                if place == self._start:
                    raise
                self._take_back(min(max(missing, 0) + 1, place - self._start), by_budget=True)
            else:
                return [] if one is None else [one]
            if self._halts():
                return []

    @property
    def _compares(self) -> bool:
        """Whether draws are compared with draws without the budget: no token that the budget changed is known yet."""
        return self._free_run is None and (self.earlier is None or self.limits.halt_on_divergence)

    def _halts(self) -> bool:
        """End the row if the budget has changed a token and `halt_on_divergence` is set.

        Returns whether the row is over.

        A row with banned strings ends in `_settle_difference`.
        """
        limits = self.limits
        if limits.halt_on_divergence and not limits.bad_words and self.session.divergence is not None:
            self.finish_reason = "length"
        return self.is_over

    def _part(self, ids: Sequence[int]) -> None:
        """Start the comparison run without the budget: from here, the budget changes the tokens.

        `ids`: the first tokens of that run; empty: it draws them.
        """
        limits = replace(
            self.limits,
            max_tokens=self.session.room + len(self.session) - self._start,
            complete=False,
            halt_on_divergence=False,
            logprobs=None if self.limits.logprobs is None else 0,
        )
        session = self.session.fork()
        session.divergence = None
        other = Row(session, limits, begun=len(session) - self._start, healed=self.watch.healed)
        other._forbidden = {at: set(excluded) for at, excluded in self._forbidden.items()}
        other._taken_back, other._furthest = self._taken_back, self._furthest
        self._free_run = UnbudgetedRun(other, ids)

    def _settle_difference(self) -> None:
        """Compare the text with the run without the budget, if the row is over or `halt_on_divergence` is set.

        With `halt_on_divergence`, the row ends before the first difference as soon as this is final (see `SETTLED`).
        """
        if self._free_run is None or not (self.is_over or self.limits.halt_on_divergence):
            return
        self._changed = self._free_run.difference(self.tokens, self._start)
        self.watch.hidden_from = None
        if self._changed is None or not self.limits.halt_on_divergence:
            return
        index = self._changed.position - self._start
        if self.is_over or self.watch.settled > index + SETTLED:
            self._remove(len(self.session) - self._changed.position)
            self.finish_reason = "length"
        else:
            self.watch.hidden_from = index

    def _unbudgeted(self) -> int | None:
        """Return the token that would be forced here without the budget; None: there is none, or it is not needed."""
        if self._free_run is not None:
            return None
        place, ids = self._refused
        index = len(self.session) - place
        return ids[index] if 0 <= index < len(ids) else None

    def _forced_bytes(self, matcher: Matcher) -> list[int]:
        """Return tokens for the forced bytes.

        The list is empty if no tokens are forced, if they leave too little of the budget, or if a token is excluded
        here.
        """
        if self._forbidden and len(self.session) in self._forbidden:
            return []
        longest = matcher.forced_tokens()
        if not longest:
            return []
        left = self.left
        ids = usual_tokens(matcher, self.session.tokenizer, self.session._tokens, left, longest=longest)
        fits = len(ids) < left
        if fits and self.limits.complete:
            self.session.feed(ids)
            try:
                fits = _needed(matcher) <= self.left
            finally:
                self.session.rewind(len(ids))
        if fits:
            return ids
        if self.limits.complete and self._unbudgeted() is None:
            self._refused = len(self.session), ids
        return []

    def take(self, ids: Sequence[int]) -> None:
        """Take ids that were drawn elsewhere."""
        self._take(ids, forced=False)

    def _take(self, ids: Sequence[int], *, forced: bool) -> None:
        session = self.session
        start, matcher = len(session), session.matcher
        if forced:
            session.feed(ids)
            self._forced.update(range(start, len(session)))
        else:
            session.take(ids)
        self._took_uninterrupted(ids, start, matcher)

    def _took_uninterrupted(self, ids: Sequence[int], start: int, matcher: Matcher | None) -> None:
        left = bound_work(None)  # no limit: an interruption here would leave the row incomplete
        try:
            self._took(ids, start, matcher)
            if self._free_run is not None:
                self._settle_difference()
        finally:
            bound_work(left)

    def _took(self, ids: Sequence[int], start: int, matcher: Matcher | None) -> None:
        """Process the tokens `ids` that the session took at position `start`.

        A banned string and the tokens after it are removed. Otherwise, `finish_reason` is set if the row ends.
        `matcher` is the session's matcher; None: it has no constraint.
        """
        session = self.session
        reached = len(session)
        self.awaits_logits = False
        if self._quotations is not None:
            self._quotations.follow(session.matcher)
        found = self._watched(ids, matcher)
        if found is not None:
            place, begun = found
            session.rewind(reached - start - place - 1)
            self._take_back(start - self._start + place + 1 - begun)
            self._halts()
            return
        if reached > self._furthest:
            self._taken_back, self._furthest = 0, reached
        if (ids[-1] in self._ends and self._is_end(ids[-1], matcher)) or self.watch.cut is not None:
            self.finish_reason = "stop"
        elif reached - self._start >= self.limits.max_tokens:
            self.finish_reason = "length"
        if self.finish_reason is not None and not self._is_in_call:
            session.keep_prefix()  # the next prompt of a conversation often begins with this prompt and text
        if self._free_after and self.watch.size >= self._free_after:
            session.constrain(None)
            self._free_after = 0

    def _is_end(self, token_id: int, matcher: Matcher | None) -> bool:
        """Return whether one of `_ends`, which was taken, ends the row."""
        if token_id in self.limits.stop_token_ids:
            return True
        return matcher is None or matcher.is_finished or matcher.is_accepting

    def _watched(self, ids: Sequence[int], matcher: Matcher | None) -> tuple[int, int] | None:
        """Add the text of these ids to `watch`, up to the first id that completes a banned string.

        Returns the index of that id in `ids`, and the index of the output's token in which the string begins. None: no
        banned string is complete. A special id that the constraint requires has its name as text. An end token that the
        constraint does not require has no text.
        """
        if matcher is None and self.watch.is_idle:
            self.watch.extend(ids)
            return None
        last, push = len(ids) - 1, self.watch.push
        for place, token_id in enumerate(ids):
            named = matcher is not None and not (place == last and matcher.is_finished)
            begun = push(token_id, named=named)
            if begun is not None:
                return place, begun
        return None

    def _take_back(self, count: int, *, by_budget: bool = False) -> None:
        """Remove the last `count` tokens, and exclude the first of them at its position.

        `by_budget`: whether the tokens would stay without the token budget. Without banned strings, the exclusion is a
        divergence if this is True, or if the budget had changed one of the removed tokens. With banned strings, the
        comparison run begins.

        Raises:
            UnsatisfiableError: One of the tokens was already streamed, or no token is left that could be removed.
            LimitExceededError: Tokens were removed too often without progress.
        """
        place = len(self.session) - count
        kept = place - self._start
        self._taken_back += 1
        if kept < self.watch.shown_tokens:
            raise UnsatisfiableError(self._exhausted())
        if self._taken_back > MOST_TAKEN_BACK:
            raise LimitExceededError(
                f"gave up after {MOST_TAKEN_BACK} backtracking attempts: bad_words or max_tokens is too restrictive"
            )
        if by_budget and self.limits.bad_words and self._free_run is None:
            self._part([])
        before = self.session.divergence
        token_id = self._remove(count)
        if not self.limits.bad_words and self.session.divergence is None and (by_budget or before is not None):
            same = before is not None and before.position == place
            self.session.divergence = before if same else Divergence(place, token_id)
        if self.earlier is not None and self.earlier.position >= place:
            self.earlier = None
        if place < self._refused[0]:
            self._refused = (0, [])
        self._forbidden = {at: ids for at, ids in self._forbidden.items() if at <= place}
        self._forbidden.setdefault(place, set()).add(token_id)

    def _exhausted(self) -> str:
        """Return the message of the error if no text is left to try."""
        limits = self.limits
        within = f" within max_tokens={limits.max_tokens}" if limits.complete else ""
        without = f" without a banned string of {limits.bad_words}" if limits.bad_words else ""
        subject = "no continuation of the streamed text" if self.watch.shown_tokens else "no text"
        return f"{subject} fits{within}{without}"

    def _remove(self, count: int) -> int:
        """Remove the last `count` tokens. Returns the first of them."""
        token_id = self.session.rewind(count)[0]
        place = len(self.session)
        self.awaits_logits = False
        self.lowest = min(self.lowest, place)
        self.watch.pop(count)
        self._forced = {at for at in self._forced if at < place}
        del self.steps[max(0, place - self._start - self._unseen) :]
        return token_id


def _needed(matcher: Matcher) -> int:
    """Return the smallest number of tokens that spell the shortest completion, end token included.

    Returns `sys.maxsize` if no tokens spell it.
    """
    try:
        return matcher.min_tokens_to_complete()
    except UnsatisfiableError:
        return sys.maxsize


def rounds(waiting: Iterable[Row], width: int, *, strides: bool = False) -> Iterator[list[Row]]:
    """Generate with at most `width` rows at a time. A finished row leaves the batch, and the next one joins.

    After each round, the rows that took part are yielded, including those that ended. An error of one row ends that row
    (`Row.error`); an error of the engine is raised.

    `strides`: whether a round may take several tokens per row. The caller must not need the rows after each token.
    """
    queue, active = iter(waiting), list[Row]()
    while True:
        while len(active) < width and (row := next(queue, None)) is not None:
            active.append(row)
        if not active:
            return
        step(active, strides=strides)
        yield active
        for row in active:
            if row.is_over:
                active = [row for row in active if not row.is_over]
                break


def step(
    rows: Sequence[Row],
    *,
    strides: bool = False,
    deferral: Deferral | None = None,
    is_shared: bool = False,
    ended: Callable[[list[Row]], None] | None = None,
) -> None:
    """Run one round.

    Args:
        rows: The rows.
        strides: As in `rounds`.
        deferral: Limits the work of constraints, and parks the rows that need more; None: it is not limited here.
        is_shared: Whether other rows that already generate wait for this call.
        ended: Called before the model runs, with the rows that ended with forced tokens or an error, if there are any.
            If it closes them, the engine can use their places in the batch for other rows.
    """
    going = []
    drawn = waits = drafts = False
    for row in rows:
        session = row.session
        if session.matcher is not None and not row.awaits_logits:
            if deferral is not None and not deferral.allows(row):
                continue
            try:
                row.take_forced()
            except WorkDeferred:
                if deferral is not None:
                    deferral.park(row)
                continue
            except Exception as error:
                row.error = error
        if session.kv_hook is not None and not row.is_over:
            try:
                session.call_hook()
            except Exception as error:
                row.error = error
        if not row.is_over:
            going.append(row)
            drawn = drawn or row.has_drawn
            waits = waits or (row.streams and not row.has_drawn)
            drafts = drafts or row.drafter is not None
    if ended is not None and (over := [row for row in rows if row.is_over]):
        ended(over)
    run = speculate if drafts else stride if strides else None
    if run is not None and going and all(row.strides for row in going):
        if deferral is not None:
            deferral.pause()
        run(going)
        if deferral is not None:
            deferral.resume()
        return
    # If some rows already generate, a long prompt is divided, so that these rows do not wait for all of it.
    is_chunked = is_shared or drawn
    # The first token of a stream does not wait until the tokens before it have run in several rounds.
    is_equal = len(going) > 1 and drawn and not waits and splits_rows(going[0].session.model.engine)
    if deferral is not None:
        deferral.pause()
    feed_all([row.running for row in going], prefill_tokens=PREFILL_TOKENS if is_chunked else None, equal=is_equal)
    if deferral is not None:
        deferral.resume()
    for row in going:
        if is_chunked and not row.running.has_logits:
            row.awaits_logits = True
            continue  # its other pending tokens run in the next rounds
        row.awaits_logits = False
        if deferral is not None and row.session.matcher is not None and not deferral.allows(row):
            continue  # its logits are stored until the next round
        kept = len(row.steps)
        try:
            row.draw()
        except WorkDeferred:
            del row.steps[kept:]
            if deferral is not None:
                deferral.park(row)
        except Exception as error:
            row.error = error


def decode(rows: Sequence[Row]) -> None:
    """Generate until every row has finished. Raises the error that ended a row."""
    for moved in rounds([row for row in rows if not row.is_over], len(rows) or 1, strides=True):
        for row in moved:
            if row.error is not None:
                raise row.error
