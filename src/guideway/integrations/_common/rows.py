"""`Rows`: the masks of rows. The state of each row is found by its tokens, not by its position."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway import masks
from guideway.compiler import Automaton
from guideway.errors import BudgetTooSmallError, InvalidTokenError, RejectedTokenError, UnsatisfiableError
from guideway.masks import Row
from guideway.matcher import LoopClock, LoopRows, Matcher, usual_tokens
from guideway.tokenizers import Tokenizer

__all__ = ["Begun", "Ids", "Masks", "Rows"]

Ids = NDArray[np.integer[Any]]
Masks = tuple[Row, list[bool]]
Begun = Callable[[], Masks]
"""A mask computation that has started. Calling it waits for the masks."""


class _Seen:
    """The text of a row (its tokens after the prompt) in the last call, and its matcher.

    Attributes:
        ids: The tokens of the text. If tokens were only appended since, these may be missing at the end.
        length: The number of tokens of the text.
        matcher: The matcher after the first `taken` tokens.
        taken: The number of tokens that the matcher took. It is less than `length` if the text has ended or has an
            illegal token.
    """

    __slots__ = ("ids", "length", "matcher", "taken")

    def __init__(self, ids: Ids, matcher: Matcher, taken: int) -> None:
        self.ids, self.length, self.matcher, self.taken = ids, len(ids), matcher, taken

    def common(self, ids: Ids) -> int:
        """Return the length of the common prefix of the tokens that the matcher took and of `ids`."""
        length = min(self.taken, len(ids))
        different = np.flatnonzero(self.ids[:length] != ids[:length])
        return int(different[0]) if different.size else length

    def go_on(self, ids: Ids) -> None:
        """Set the text to `ids`, and take its tokens after the first `taken` ones while they are legal."""
        self.ids, self.length = ids, len(ids)
        while self.taken < len(ids) and not self.matcher.is_finished:
            try:
                self.matcher.advance(int(ids[self.taken]))
            except (RejectedTokenError, InvalidTokenError):
                return
            self.taken += 1


class Rows:
    """Computes the masks of rows, whose states are found by their tokens alone. A row belongs to a slot.

    Args:
        automata: The automaton of each slot; None: no constraint. `begin` and `end` add and remove slots later.
        max_tokens: Only tokens are allowed after which a text can be completed within this number of tokens, the end
            token included; None: no limit.

    Attributes:
        room: A function that allocates masks, by default `masks.new_rows`. An adapter for GPUs can set one that returns
            pinned memory.
        seconds: The time that a thread of the kernel needed for the last masks.

    Raises:
        BudgetTooSmallError: The shortest complete text needs more than `max_tokens`.
    """

    def __init__(self, automata: Sequence[Automaton | None] = (), *, max_tokens: int | None = None) -> None:
        self.room: Callable[[int, int], Row] = masks.new_rows
        self._budgets: dict[int, int] = {}
        self._starts: dict[int, _Seen | None] = {}
        self._last: list[tuple[int, _Seen | None]] = []
        self._loop = LoopRows([])  # the kernel's state of these rows, as long as tokens are only appended
        self._texts: Callable[[], Sequence[Ids]] | None = None  # returns the texts after tokens were appended
        self._words = 0
        self._masks = masks.new_rows(0, 0)
        self.seconds = 0.0  # see the class
        for slot, automaton in enumerate(automata):
            self.begin(slot, automaton, max_tokens=max_tokens)

    def begin(self, slot: int, automaton: Automaton | None, *, max_tokens: int | None = None) -> None:
        """Set the automaton of a slot; None: no constraint. Earlier rows of the slot are removed.

        Raises:
            BudgetTooSmallError: The shortest complete text needs more than `max_tokens`.
            UnsatisfiableError: `max_tokens` is given, and no text can be completed.
        """
        self.end(slot)
        if automaton is None:
            self._starts[slot] = None
            return
        matcher = automaton.matcher()
        if max_tokens is not None:
            if (needed := matcher.min_tokens_to_complete()) > max_tokens:
                raise BudgetTooSmallError(f"the shortest output needs {needed} tokens, got max_tokens={max_tokens}")
            self._budgets[slot] = max_tokens
        if matcher.words > self._words:
            self._words, self._masks = matcher.words, masks.new_rows(0, 0)
        self._starts[slot] = _Seen(np.zeros(0, np.int64), matcher, 0)

    def has(self, slot: int) -> bool:
        """Return whether `begin` was called for the slot, and `end` was not called since."""
        return slot in self._starts

    def end(self, slot: int) -> None:
        """Remove a slot and its rows."""
        self._starts.pop(slot, None)
        self._budgets.pop(slot, None)
        if any(of == slot for of, _ in self._last):
            self._settle()
            self._follow([(of, one) for of, one in self._last if of != slot])

    def masks(self, texts: Sequence[Ids], slots: Sequence[int]) -> Masks:
        """Return the mask of each row, uint32 [rows, words], and a list that tells which rows are to be masked.

        Rows without a constraint are not to be masked, and neither are rows with an illegal token (draft tokens that
        will be rejected, beams without a legal token). After its end token, a row can only end again. The masks are
        valid until the next call.

        Args:
            texts: The generated tokens of each row, its end token and the padding after it included.
            slots: The slot of each row.
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
        """Start to compute what `masks` returns.

        The result must be called before any other method; it waits for the masks.

        Args:
            texts: As in `masks`.
            slots: As in `masks`.
            background: Whether the masks are computed in a thread of the kernel.
            ids: The rows of the engine, int64 [rows, tokens], if `begin_grown` or `masked` is called next. Each text is
                the end of its row, and all rows have the same length. None: neither of these methods is called next.
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
        """Start to compute the masks of the rows of the last call, after one more token was appended to each.

        Args:
            ids: The appended token of each row, in the order of the last call.
            texts: Returns the texts of the rows. It is called only if a later call has other rows.
            background: Whether the masks are computed in a thread of the kernel.
        """
        self._loop.grow(ids)
        self._texts = texts
        return self._begin(background)

    def begin_grown(self, ids: Ids, *, background: bool) -> Begun | None:
        """Do the same as `begin_next` if `ids` are the last rows with one more token each; else return None."""
        return self._begin(background) if self._loop.grow_to(ids) else None

    def masked(self, ids: Any, source: Any, target: Any, clock: LoopClock) -> list[int] | None:
        """Do the work of `begin_grown` and `guideway.masks.masked_into` in one call of the kernel.

        One call is faster: after the model has filled the CPU caches, access to each Python object costs about a
        microsecond.

        Args:
            ids: The rows, int64. An array or a tensor on the CPU, as are the next two arguments.
            source: The logits, float32.
            target: The memory for the masked logits, float32; may be `source`.
            clock: Measures the times of the parts of the loop. While one call uses it, another one is refused.

        Returns:
            The masked rows in which no token has a logit above -inf. None: the types are not supported, the rows are
            not those of the last call with one more token each, or another call is using the clock. No row has changed
            then.
        """
        try:
            return self._loop.run_on(ids, source, target, clock)
        except BaseException:
            self._last = []  # the states of the rows are not known after a failure
            raise

    @property
    def width(self) -> int:
        """The number of tokens of each row in the last `ids` of `begin_masks`, `begin_grown` or `masked`.

        Calls of `begin_grown` and `masked` that returned None do not count.
        """
        return self._loop.width

    def forced(self, index: int, tokenizer: Tokenizer | None = None, after: Sequence[int] = ()) -> list[int]:
        """Return the forced next tokens of row `index` of the last call.

        [] if there are none, if the row has no mask or has ended, or if the text could not be completed within the
        token budget of the row after these tokens.

        `tokenizer`: encodes the forced text after the ids `after`, as in the generation loop. None: the longest token
        at each position is taken.
        """
        slot, one = self._last[index]
        if one is None or not self._loop.held[index] or one.matcher.is_finished:
            return []
        length, _ = self._loop.lengths[index]
        most = self._budgets.get(slot, sys.maxsize) - length
        ids = one.matcher.forced_tokens() if tokenizer is None else usual_tokens(one.matcher, tokenizer, after, most)
        if slot not in self._budgets or not ids:
            return ids
        further = one.matcher.fork()
        for token_id in ids:
            further.advance(token_id)
        try:
            needed = further.min_tokens_to_complete()
        except UnsatisfiableError:
            return []
        return ids if length + len(ids) + needed <= self._budgets[slot] else []

    def _follow(self, rows: list[tuple[int, _Seen | None]]) -> None:
        """Set the rows of `_loop`: pairs of a slot and the state of a row (None: no constraint)."""
        self._last = rows
        given = [(None, 0, 0, 0) if one is None else (one.matcher, one.length, one.taken, self._budgets.get(slot, 0))
                 for slot, one in rows]  # fmt: skip
        self._loop = LoopRows(given)

    def _begin(self, background: bool) -> Begun:
        """Start to compute the masks of the rows of `_loop`."""
        if self._masks.shape != (len(self._last), self._words):
            self._masks = self.room(len(self._last), 32 * self._words)
        loop, found = self._loop, self._masks
        if background:
            loop.begin(found)

        def finish() -> Masks:
            known, self._last = self._last, []  # if the next line fails, the states are not known
            loop.wait() if background else loop.run(found)
            self._last = known
            self.seconds = loop.seconds
            return found, loop.held

        return finish

    def _settle(self) -> None:
        """Update the stored texts of the rows of the last call, if tokens were appended to them since."""
        texts, self._texts = self._texts, None
        if texts is not None and self._last:
            for (_, one), text, lengths in zip(self._last, texts(), self._loop.lengths, strict=True):
                if one is not None:
                    one.ids, (one.length, one.taken) = text, lengths

    def _resynchronised(self, slot: int, text: Ids) -> _Seen | None:
        """Return the state of a text; None: no constraint.

        It is derived from the text of the last call in the same slot that has the longest common prefix with `text`.
        """
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
