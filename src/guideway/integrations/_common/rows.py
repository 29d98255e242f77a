"""The masks of rows, each found by the tokens that stand in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway import masks
from guideway.compiler import Automaton
from guideway.errors import BudgetTooSmallError, InvalidTokenError, RejectedTokenError, UnsatisfiableError
from guideway.masks import Row
from guideway.matcher import LoopClock, LoopRows, Matcher

__all__ = ["Begun", "Ids", "Masks", "Rows"]

Ids = NDArray[np.integer[Any]]
Masks = tuple[Row, list[bool]]
Begun = Callable[[], Masks]
"""Masks that were begun: called once, it waits for them."""


class _Seen:
    """A text of `length` tokens, and the matcher behind the first `taken`: all, unless it ended or went astray.

    `ids`: the text, or what it began with, where it has only grown since.
    """

    __slots__ = ("ids", "length", "matcher", "taken")

    def __init__(self, ids: Ids, matcher: Matcher, taken: int) -> None:
        self.ids, self.length, self.matcher, self.taken = ids, len(ids), matcher, taken

    def common(self, ids: Ids) -> int:
        """How many of its taken tokens this text begins with."""
        length = min(self.taken, len(ids))
        different = np.flatnonzero(self.ids[:length] != ids[:length])
        return int(different[0]) if different.size else length

    def go_on(self, ids: Ids) -> None:
        """Take what is left of this text, as far as it is legal."""
        self.ids, self.length = ids, len(ids)
        while self.taken < len(ids) and not self.matcher.is_finished:
            try:
                self.matcher.advance(int(ids[self.taken]))
            except (RejectedTokenError, InvalidTokenError):
                return
            self.taken += 1


class Rows:
    """The masks of any rows, by their tokens alone.

    `automata[slot]`: what a row of that slot is held to; None: nothing. `begin` and `end` add and remove slots later.
    `max_tokens`: only tokens after which a text can be completed within so many, the end token too. `room`: what makes
    new rows of masks, as `masks.new_rows`; a GPU's adapter gives it memory from which the GPU can copy by itself.
    Raises `BudgetTooSmallError`.
    """

    def __init__(self, automata: Sequence[Automaton | None] = (), *, max_tokens: int | None = None) -> None:
        self.room: Callable[[int, int], Row] = masks.new_rows
        self._budgets: dict[int, int] = {}
        self._starts: dict[int, _Seen | None] = {}
        self._last: list[tuple[int, _Seen | None]] = []
        self._loop = LoopRows([])  # the same, as far as they have grown since
        self._texts: Callable[[], Sequence[Ids]] | None = None  # what they hold, where they have grown
        self._words = 0
        self._masks = masks.new_rows(0, 0)
        self.seconds = 0.0  # what the last masks took that were found in the background
        for slot, automaton in enumerate(automata):
            self.begin(slot, automaton, max_tokens=max_tokens)

    def begin(self, slot: int, automaton: Automaton | None, *, max_tokens: int | None = None) -> None:
        """What rows of this slot are held to from now on. Raises `BudgetTooSmallError`, `UnsatisfiableError`."""
        self.end(slot)
        if automaton is None:
            self._starts[slot] = None
            return
        matcher = automaton.matcher()
        if max_tokens is not None:
            if (needed := matcher.min_tokens_to_complete()) > max_tokens:
                raise BudgetTooSmallError(f"the shortest output needs {needed} tokens, not {max_tokens}")
            self._budgets[slot] = max_tokens
        if matcher.words > self._words:
            self._words, self._masks = matcher.words, masks.new_rows(0, 0)
        self._starts[slot] = _Seen(np.zeros(0, np.int64), matcher, 0)

    def has(self, slot: int) -> bool:
        """Whether it was begun, and has not ended."""
        return slot in self._starts

    def end(self, slot: int) -> None:
        """Forget a slot, and rows of it."""
        self._starts.pop(slot, None)
        self._budgets.pop(slot, None)
        if any(of == slot for of, _ in self._last):
            self._settle()
            self._follow([(of, one) for of, one in self._last if of != slot])

    def masks(self, texts: Sequence[Ids], slots: Sequence[int]) -> Masks:
        """The mask of each row, uint32 [rows, words], and which rows are held to theirs; good until the next call.

        `texts[i]`: what row i has generated, end token and padding behind it included. `slots[i]`: whose row it is.
        Rows without a constraint, and those that hold what was never legal (drafts to be refused, dead beams), are not
        held to anything. A row past its end may only end again.
        """
        return self.begin_masks(texts, slots, background=False)()

    def begin_masks(
        self,
        texts: Sequence[Ids],
        slots: Sequence[int],
        *,
        background: bool,
        ids: NDArray[np.int64] | None = None,
    ) -> Begun:
        """`masks`, found by a thread of the kernel meanwhile if `background`; to be called before anything else is.

        `ids`: int64 [rows, tokens], what the engine has in the rows, texts of one length at their end; `begin_grown`
        and `masked` go on from them.
        """
        self._settle()
        seen = [self._resynchronised(slot, np.array(text)) for text, slot in zip(texts, slots, strict=True)]
        self._follow(list(zip(slots, seen, strict=True)))
        if ids is not None:
            loop, start = self._loop, ids.shape[1] - len(texts[0]) if len(texts) else 0
            loop.know(ids)
            self._texts = lambda: list(loop.known[:, start:])
        return self._begin(background)

    def begin_next(self, ids: Sequence[int], texts: Callable[[], Sequence[Ids]], *, background: bool) -> Begun:
        """`begin_masks` of the rows of the last call, in the same order, after one token more each.

        `texts`: gives what they hold then; asked only where rows are not told apart so any more.
        """
        self._loop.grow(ids)
        self._texts = texts
        return self._begin(background)

    def begin_grown(self, ids: Ids, *, background: bool) -> Begun | None:
        """`begin_next`, where these are the `ids` of the last call with one token more; None: they are not."""
        return self._begin(background) if self._loop.grow_to(ids) else None

    def masked(self, ids: Any, source: Any, target: Any, clock: LoopClock) -> list[int] | None:
        """`begin_grown` and `guideway.masks.masked_into` in one call of the kernel: behind a model that has filled the
        caches, every object that is touched on the way costs a microsecond.

        Arrays of NumPy, or tensors of PyTorch: `ids` int64, `source` and `target` float32 on the CPU. None: they are
        others, have not grown so, or another call has not left the clock, and nothing has changed.
        """
        try:
            return self._loop.run_on(ids, source, target, clock)
        except BaseException:
            self._last = []  # nothing is known where this fails
            raise

    @property
    def width(self) -> int:
        """How many tokens the rows had when `begin_grown` or `masked` last knew them."""
        return self._loop.width

    def forced(self, index: int) -> list[int]:
        """The tokens that row `index` of the last call goes on with in any case, as many as fit its budget."""
        slot, one = self._last[index]
        if one is None or not self._loop.held[index] or one.matcher.is_finished:
            return []
        ids = one.matcher.forced_tokens()
        if slot not in self._budgets or not ids:
            return ids
        further = one.matcher.fork()
        for token_id in ids:
            further.advance(token_id)
        length, _ = self._loop.lengths[index]
        try:
            needed = further.min_tokens_to_complete()
        except UnsatisfiableError:
            return []
        return ids if length + len(ids) + needed <= self._budgets[slot] else []

    def draft_masks(self, index: int, token_ids: Sequence[int], parents: Sequence[int]) -> Row | None:
        """The mask behind each token of a tree of drafts on row `index` of the last call, uint32 [tokens, words].

        `parents[i]`: the draft token that token i follows, an earlier one; -1: the row as it is. Behind a token that is
        not legal nothing is. None: the row is not held to anything. Budgets are not looked at.
        """
        one = self._last[index][1]
        if one is None or not self._loop.held[index]:
            return None
        rows = masks.new_rows(len(token_ids), 32 * self._words)
        one.matcher.fill_draft_masks(token_ids, parents, rows)
        return rows

    def _follow(self, rows: list[tuple[int, _Seen | None]]) -> None:
        """These are the rows of the loop now."""
        self._last = rows
        given = [(None, 0, 0, 0) if one is None else (one.matcher, one.length, one.taken, self._budgets.get(slot, 0))
                 for slot, one in rows]  # fmt: skip
        self._loop = LoopRows(given)

    def _begin(self, background: bool) -> Begun:
        """The masks of the rows as they are now."""
        if self._masks.shape != (len(self._last), self._words):
            self._masks = self.room(len(self._last), 32 * self._words)
        loop, found = self._loop, self._masks
        if background:
            loop.begin(found)

        def finish() -> Masks:
            known, self._last = self._last, []  # nothing is known where this fails
            loop.wait() if background else loop.run(found)
            self._last = known
            self.seconds = loop.seconds
            return found, loop.held

        return finish

    def _settle(self) -> None:
        """Write down what the rows of the last call hold, where they have grown."""
        texts, self._texts = self._texts, None
        if texts is not None and self._last:
            for (_, one), text, lengths in zip(self._last, texts(), self._loop.lengths, strict=True):
                if one is not None:
                    one.ids, (one.length, one.taken) = text, lengths

    def _resynchronised(self, slot: int, text: Ids) -> _Seen | None:
        """This text, from the text of the last call that has most in common with it."""
        start = self._starts[slot]
        if start is None:
            return None
        known = [start, *(one for of, one in self._last if of == slot and one is not None)]
        common = [one.common(text) for one in known]
        best = int(np.argmax(common))
        matcher = known[best].matcher.fork()
        matcher.rollback(known[best].taken - common[best])
        found = _Seen(text, matcher, common[best])
        found.go_on(text)
        return found
