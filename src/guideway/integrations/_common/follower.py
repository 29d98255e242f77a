"""`Follower`: the matcher of one sequence of an engine that reports its tokens. `fill`: the masks of several followers.

The backends and filters of different engines do the same under different names: they take tokens, undo tokens, and
request masks. An exception during a step would end the engine and all its requests. Therefore a `Follower` stores its
error: after an error the sequence can only end, and the adapter reports the error as the engine expects it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import perf_counter, thread_time

import numpy as np

from guideway.compiler import Automaton
from guideway.errors import BudgetTooSmallError, GuidewayError, LimitExceededError
from guideway.masks import Row
from guideway.matcher import fill_masks

__all__ = ["Follower", "fill"]

MASK_SECONDS = 3.0
"""The time limit of one mask, about 100 times the time of the slowest mask of real schemas.

A slow mask delays all other sequences of the engine. A sequence whose mask exceeds the limit ends, so the delay happens
once and not at every token.
"""

_log = logging.getLogger("guideway")


class Follower:
    """The matcher of the tokens of one sequence, with stop tokens and a stored error. Use it in one thread at a time.

    Raises:
        BudgetTooSmallError: The shortest text needs more than `max_tokens` tokens.

    Attributes:
        matcher: The matcher.
        end_ids: The end tokens that the mask allows after an error.
        stop_token_ids: Tokens that end the text, in addition to the vocabulary's end tokens. They are legal where the
            text may end.
        max_tokens: Only tokens are allowed after which the text can be completed within this number of tokens; None:
            no limit.
        name: The name of the sequence, for the log.
        error: The error that ended the text; None: no error.
        is_watched: Whether the next mask is computed separately and its time is checked, because the masks of the last
            batch were slow.
    """

    __slots__ = ("_ended", "end_ids", "error", "is_watched", "matcher", "max_tokens", "name", "stop_token_ids")

    def __init__(
        self,
        automaton: Automaton,
        end_ids: Iterable[int],
        *,
        stop_token_ids: Iterable[int] = (),
        name: str = "a sequence",
        max_tokens: int | None = None,
    ) -> None:
        self.matcher = automaton.matcher()
        self.max_tokens = max_tokens
        if max_tokens is not None and (needed := self.matcher.min_tokens_to_complete()) > max_tokens:
            raise BudgetTooSmallError(f"the shortest output needs {needed} tokens; max_tokens is {max_tokens}")
        self.end_ids = tuple(end_ids)
        self.stop_token_ids = tuple(sorted(set(stop_token_ids) - set(self.end_ids)))
        self.name = name
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first token, and remove the error."""
        self.matcher.rollback(self.matcher.position)
        self._ended = self.is_watched = False
        self.error: Exception | None = None

    def copy(self) -> Follower:
        """Return a copy with the same state."""
        made = Follower.__new__(Follower)
        for name in Follower.__slots__:
            setattr(made, name, getattr(self, name))
        made.matcher = self.matcher.fork()
        return made

    @property
    def is_finished(self) -> bool:
        """Whether an end token or a stop token was taken."""
        return self._ended or self.matcher.is_finished

    @property
    def position(self) -> int:
        """The number of tokens that were taken, the end token included."""
        return self.matcher.position + self._ended

    def advance(self, tokens: Iterable[int]) -> bool:
        """Take tokens up to the end of the text; tokens after the end are ignored.

        Returns whether there is no error: at an illegal token, `error` is set. After an error, no token is taken.
        """
        for token in tokens:
            if self.error is not None:
                return False
            if self.is_finished:
                return True
            if token in self.stop_token_ids and self.matcher.is_accepting:
                self._ended = True
                continue
            try:
                self.matcher.advance(token)
            except (GuidewayError, ValueError) as error:
                self.fail(error)
        return self.error is None

    def validate(self, tokens: Sequence[int]) -> list[int]:
        """Return the longest prefix of these tokens that can be taken; [] after the end or an error.

        No token is taken. A new error is stored, not raised.
        """
        if self.error is not None or self.is_finished:
            return []
        try:
            count = self.matcher.validate(tokens)
            if count < len(tokens) and tokens[count] in self.stop_token_ids:
                after = self.matcher.fork()
                for token in tokens[:count]:
                    after.advance(token)
                count += after.is_accepting and not after.is_finished
        except GuidewayError as error:
            self.fail(error)
            return []
        return list(tokens[:count])

    def rollback(self, count: int) -> None:
        """Undo the last `count` tokens, and remove the error; with `count` 0, do nothing.

        Raises `ValueError` if fewer tokens were taken.
        """
        if count:
            self.matcher.rollback(count - self._ended)
            self._ended, self.error = False, None

    def fill(self, row: Row) -> None:
        """Write the mask of the next token to `row`, uint32 words with a bit for each logit.

        If the text cannot be completed within `max_tokens` any more, the mask is that without `max_tokens`. After an
        error, the mask is that of `fill_end`. A new error is stored, not raised.
        """
        if self.error is None:
            try:
                self.fill_or_raise(row)
            except GuidewayError as error:
                self.fail(error)
        if self.error is not None:
            self.fill_end(row)

    def fill_or_raise(self, row: Row) -> None:
        """Do the same as `fill`, but raise an error instead of storing it. There must be no stored error.

        Raises:
            GuidewayError: The mask cannot be computed.
            LimitExceededError: It took longer than `MASK_SECONDS`.
        """
        start, width = thread_time(), self.matcher.words
        whole = row[:width] if width <= len(row) else np.zeros(width, np.uint32)
        left = 0 if self.max_tokens is None else self.max_tokens - self.position
        if left <= 0 or not self.matcher.fill_mask_within(whole, left):
            self.matcher.fill_mask(whole)
        row[:width], row[width:] = whole[: len(row)], 0
        self.finish_row(row)
        self.is_watched = False
        if (took := thread_time() - start) > MASK_SECONDS:
            raise LimitExceededError(f"one mask took {took:.1f} s")

    def fill_end(self, row: Row) -> None:
        """Write a mask that allows only the end tokens; without end tokens, only the stop tokens."""
        row[:] = 0
        _allow(row, self.end_ids or self.stop_token_ids)

    def finish_row(self, row: Row) -> None:
        """Set the bits of the stop tokens, if the text may end. Their bits are not set by the matcher."""
        if self.stop_token_ids and (self.matcher.is_accepting or self.is_finished):
            _allow(row, self.stop_token_ids)

    def fail(self, error: Exception) -> None:
        """Store an error, and log it."""
        self.error = error
        _log.error("%s ends early: %s: %s", self.name, type(error).__name__, error)


def _allow(row: Row, tokens: Iterable[int]) -> None:
    for token in tokens:
        if token >> 5 < len(row):
            row[token >> 5] |= 1 << (token & 31)


def fill(followers: Sequence[Follower], rows: Row) -> None:
    """Write the masks of a batch: row i of `rows`, uint32 [n, words], is the mask of follower i.

    All masks are computed in one call of the kernel, which releases the GIL. If that is not possible or fails, the
    masks are computed one by one.
    """
    if all(
        one.matcher.words == rows.shape[1] and one.error is None and one.max_tokens is None and not one.is_watched
        for one in followers
    ):
        start = perf_counter()
        with suppress(GuidewayError):
            fill_masks([one.matcher for one in followers], rows)
            for row, one in zip(rows, followers, strict=True):
                one.finish_row(row)
                one.is_watched = perf_counter() - start > MASK_SECONDS
            return
    for row, one in zip(rows, followers, strict=True):
        one.fill(row)
