"""One sequence of an engine that hands in its tokens, and many of them as a batch.

Engines' backends and filters differ in names only: they take tokens, give some back, and want masks. None of them may
be met by an exception in the middle of a step, for it would end the engine and all that it does. So an error is kept:
the sequence may only end from there on, and the engine is told in its own way.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import perf_counter, thread_time

import numpy as np

from guideway.compiler import Automaton
from guideway.errors import GuidewayError, LimitExceededError
from guideway.masks import Row
from guideway.matcher import fill_masks

__all__ = ["Follower", "fill"]

MASK_SECONDS = 3.0
"""A sequence ends where one mask took its thread longer: some hundred times what the dearest of real schemas takes. The
engine has waited that long already, and with it all its other sequences; it does so once and not at every token.
"""

_log = logging.getLogger("guideway")


class Follower:
    """A matcher behind the tokens of one sequence.

    `stop_token_ids`: tokens that end the text beside the vocabulary's own end tokens, legal where it may end. `error`: what
    went wrong, None as long as nothing did. `is_watched`: its masks are made by themselves, for it, or another one of
    the batch, took long. One thread at a time, as for a matcher.
    """

    __slots__ = ("_ended", "end_ids", "error", "is_watched", "matcher", "name", "stop_token_ids")

    def __init__(
        self,
        automaton: Automaton,
        end_ids: Iterable[int],
        *,
        stop_token_ids: Iterable[int] = (),
        name: str = "a sequence",
    ) -> None:
        self.matcher = automaton.matcher()
        self.end_ids = tuple(end_ids)
        self.stop_token_ids = tuple(sorted(set(stop_token_ids) - set(self.end_ids)))
        self.name = name
        self.reset()

    def reset(self) -> None:
        """Back to where no token was taken."""
        self.matcher.rollback(self.matcher.position)
        self._ended = self.is_watched = False
        self.error: Exception | None = None

    def copy(self) -> Follower:
        """Another one that stands where this one does."""
        made = Follower.__new__(Follower)
        for name in Follower.__slots__:
            setattr(made, name, getattr(self, name))
        made.matcher = self.matcher.fork()
        return made

    @property
    def is_finished(self) -> bool:
        """Whether an end was taken."""
        return self._ended or self.matcher.is_finished

    @property
    def position(self) -> int:
        """How many tokens were taken."""
        return self.matcher.position + self._ended

    def advance(self, tokens: Iterable[int]) -> bool:
        """Take tokens up to the end of the text. False: one was not legal; those before it are taken, `error` says."""
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
        """The first of these tokens that could be taken. Nothing changes."""
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
        """Give the last `count` tokens back, and with them what went wrong there. ValueError if there are fewer."""
        if count:
            self.matcher.rollback(count - self._ended)
            self._ended, self.error = False, None

    def fill(self, row: Row) -> None:
        """Write the mask of the next token, uint32 words as wide as the logits; after an error the end alone."""
        try:
            if self.error is None:
                start, width = thread_time(), self.matcher.words
                whole = row[:width] if width <= len(row) else np.zeros(width, np.uint32)
                self.matcher.fill_mask(whole)
                row[:width], row[width:] = whole[: len(row)], 0
                self.finish_row(row)
                self.is_watched = False
                if (took := thread_time() - start) > MASK_SECONDS:
                    self.fail(LimitExceededError(f"one mask took {took:.1f} s"))
        except GuidewayError as error:
            self.fail(error)
        if self.error is not None:
            self.fill_end(row)

    def fill_end(self, row: Row) -> None:
        """Write the mask of the end alone."""
        row[:] = 0
        _allow(row, self.end_ids or self.stop_token_ids)

    def finish_row(self, row: Row) -> None:
        """What the vocabulary does not know: tokens of its own that end the text."""
        if self.stop_token_ids and (self.matcher.is_accepting or self.is_finished):
            _allow(row, self.stop_token_ids)

    def fail(self, error: Exception) -> None:
        """Keep what went wrong, and say so in the log."""
        self.error = error
        _log.error("%s ends early: %s: %s", self.name, type(error).__name__, error)


def _allow(row: Row, tokens: Iterable[int]) -> None:
    for token in tokens:
        if token >> 5 < len(row):
            row[token >> 5] |= 1 << (token & 31)


def fill(followers: Sequence[Follower], rows: Row) -> None:
    """The masks of a batch: row i of `rows`, uint32 [n, words], becomes that of follower i.

    One call into the kernel with the GIL released; where a row goes wrong there, row by row.
    """
    if all(one.matcher.words == rows.shape[1] and one.error is None and not one.is_watched for one in followers):
        start = perf_counter()
        with suppress(GuidewayError):
            fill_masks([one.matcher for one in followers], rows)
            for row, one in zip(rows, followers, strict=True):
                one.finish_row(row)
                one.is_watched = perf_counter() - start > MASK_SECONDS
            return
    for row, one in zip(rows, followers, strict=True):
        one.fill(row)
