"""The one logits processor behind those of all engines: rows of tokens in, masks out.

An engine's own loop calls a processor with the tokens of its rows and their logits, in an order of its own: rows are
reordered by beams, go back when drafts are refused, go on after their end, leave and are repeated. So nothing is taken
on trust: a row stands where its tokens say. What was seen in the last call only saves walking there from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guideway import masks
from guideway.compiler import Automaton, compile
from guideway.errors import BudgetTooSmall, EngineError, InvalidToken, RejectedToken
from guideway.masks import Row
from guideway.matcher import Matcher, advance_and_fill, fill_masks
from guideway.vocabulary import Tokenizer

__all__ = ["Ids", "Processor", "ProcessorTimings", "Rows"]

Ids = NDArray[np.integer[Any]]


@dataclass
class ProcessorTimings:
    """Seconds spent in how many calls. `mask`: finding out what is legal. `apply`: writing it over the logits."""

    calls: int = 0
    mask: float = 0.0
    apply: float = 0.0


class _Seen:
    """A text that was seen, and the matcher behind its first `taken` tokens: all, unless it ended or went astray."""

    __slots__ = ("ids", "matcher", "taken")

    def __init__(self, ids: Ids, matcher: Matcher, taken: int) -> None:
        self.ids, self.matcher, self.taken = ids, matcher, taken

    @property
    def is_alive(self) -> bool:
        return self.taken == len(self.ids) or self.matcher.is_finished

    @property
    def is_walking(self) -> bool:
        """Whether the next token is to be taken."""
        return self.taken == len(self.ids) and not self.matcher.is_finished

    def common(self, ids: Ids) -> int:
        """How many of its taken tokens this text begins with."""
        length = min(self.taken, len(ids))
        different = np.flatnonzero(self.ids[:length] != ids[:length])
        return int(different[0]) if different.size else length

    def go_on(self, ids: Ids) -> None:
        """Take what is left of this text, as far as it is legal."""
        self.ids = ids
        while self.taken < len(ids) and not self.matcher.is_finished:
            try:
                self.matcher.advance(int(ids[self.taken]))
            except (RejectedToken, InvalidToken):
                return
            self.taken += 1


class Rows:
    """The masks of any rows, by their tokens alone.

    `automata[slot]`: what a row of that slot is held to; None: nothing. `max_tokens`: only tokens after which a text
    can be completed within so many, the end token too.
    """

    def __init__(self, automata: Sequence[Automaton | None], *, max_tokens: int | None = None) -> None:
        self.max_tokens = max_tokens
        starts = [None if one is None else one.matcher() for one in automata]
        self._starts = [None if one is None else _Seen(np.zeros(0, np.int64), one, 0) for one in starts]
        self._last: list[tuple[int, _Seen | None]] = []
        self._words = max((one.words for one in starts if one is not None), default=0)
        self._masks = masks.new_rows(0, 32 * self._words)
        for one in starts:
            if one is not None and max_tokens is not None and one.tokens_to_finish() > max_tokens:
                raise BudgetTooSmall(f"the shortest output needs {one.tokens_to_finish()} tokens, not {max_tokens}")

    def masks(self, texts: Sequence[Ids], slots: Sequence[int]) -> tuple[Row, list[bool]]:
        """The mask of each row, uint32 [rows, words], and which rows are held to theirs; good until the next call.

        `texts[i]`: what row i has generated, end token and padding behind it included. `slots[i]`: whose row it is.
        Rows without a constraint, and those that hold what was never legal (drafts to be refused, dead beams), are not
        held to anything. A row past its end may only end again.
        """
        seen = [self._resynchronised(slot, np.array(text)) for text, slot in zip(texts, slots, strict=True)]
        self._last = list(zip(slots, seen, strict=True))
        return self._filled()

    def next_masks(self, texts: Sequence[Ids]) -> tuple[Row, list[bool]]:
        """As `masks`, where each text is that of the last call, in the same order, and one token more."""
        seen = [one for _, one in self._last]
        if self.max_tokens is None and all(one is None or one.is_walking for one in seen):
            matchers = [None if one is None else one.matcher for one in seen]
            with suppress(RejectedToken, InvalidToken):  # nobody has moved then
                advance_and_fill(matchers, [int(text[-1]) for text in texts], self._room())
                for one, text in zip(seen, texts, strict=True):
                    if one is not None:
                        one.ids, one.taken = text, len(text)
                return self._masks, [one is not None for one in seen]
        for one, text in zip(seen, texts, strict=True):
            if one is not None:
                one.go_on(text)
        return self._filled()

    def _room(self) -> Row:
        if len(self._masks) != len(self._last):
            self._masks = masks.new_rows(len(self._last), 32 * self._words)
        return self._masks

    def _filled(self) -> tuple[Row, list[bool]]:
        rows = self._room()
        alive = [one if one is not None and one.is_alive else None for _, one in self._last]
        if self.max_tokens is None:
            fill_masks([None if one is None else one.matcher for one in alive], rows)
        else:
            for row, one in zip(rows, alive, strict=True):
                left = max(1, self.max_tokens - (0 if one is None else len(one.ids)))
                if one is not None and not one.matcher.fill_mask_within(row, left):
                    one.matcher.fill_mask(row)  # past the budget: the engine goes on after it, and cuts there itself
        return rows, [one is not None for one in alive]

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


class Processor:
    """What an engine's adapter is made of: constraints compiled, rows told apart.

    `constraints`: one for all rows, or a list with one per prompt (None: free); sources, Python types or automata.
    `tokenizer`: whatever `Tokenizer.of` takes. Made for one call of the engine: its prompts are learned from the first
    call, and rows that begin otherwise are refused.
    """

    def __init__(self, constraints: object, tokenizer: object, *, max_tokens: int | None = None) -> None:
        table = Tokenizer.of(tokenizer)
        several = isinstance(constraints, (list, tuple))
        given: Sequence[object] = constraints if isinstance(constraints, (list, tuple)) else [constraints]
        if not given:
            raise ValueError("a list of constraints has one for each prompt; this one is empty")
        self._count = len(given) if several else None
        made = [one if one is None or isinstance(one, Automaton) else compile(one, table) for one in given]
        self._rows = Rows(made, max_tokens=max_tokens)
        self._prompts: Ids | None = None
        self._ids: Ids = np.zeros((0, 0), np.int64)  # those of the last call
        self._widest = 0
        self._lock = Lock()
        self.timings = ProcessorTimings()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around each call of the engine: one at a time."""
        if not self._lock.acquire(blocking=False):
            raise EngineError("a logits processor is in use: make one for each call of the engine")
        try:
            yield
        finally:
            self._lock.release()

    def masks(self, ids: Ids) -> tuple[Row, list[bool]]:
        """See `Rows.masks`. `ids`: [rows, tokens], prompts included."""
        start = perf_counter()
        if self._prompts is None:
            self._begin(ids)
        prompts = self._prompts if self._prompts is not None else ids
        width = prompts.shape[1]
        if not width <= ids.shape[1] <= self._widest + 1:
            raise EngineError("these rows are of another call: make a logits processor for each call of the engine")
        self._widest = max(self._widest, ids.shape[1])
        last, self._ids = self._ids, self._ids[:0]  # nothing is known where this call fails
        kept = np.array(ids)
        texts = list(kept[:, width:])
        if last.shape == (len(ids), ids.shape[1] - 1) and np.array_equal(last, ids[:, :-1]):
            found = self._rows.next_masks(texts)
        else:
            found = self._rows.masks(texts, self._slots(ids[:, :width], prompts))
        self._ids = kept
        self.timings.calls += 1
        self.timings.mask += perf_counter() - start
        return found

    def _begin(self, ids: Ids) -> None:
        if self._count is not None and (not len(ids) or len(ids) % self._count):
            raise EngineError(f"{self._count} constraints do not fit {len(ids)} rows: give one, or one per prompt")
        self._prompts = np.array(ids)
        self._widest = ids.shape[1]

    def _slots(self, begin: Ids, prompts: Ids) -> list[int]:
        """Whose row each is: by its place, or where rows have left or moved, by its prompt."""
        copies = len(prompts) // (self._count or len(prompts))
        if begin.shape == prompts.shape and np.array_equal(begin, prompts):
            return [index // copies if self._count else 0 for index in range(len(prompts))]
        slots: list[int] = []
        for row in begin:
            places = np.flatnonzero((prompts == row).all(axis=1))
            found = {int(place) // copies if self._count else 0 for place in places}
            if len(found) != 1:
                why = "several prompts begin like" if found else "no prompt begins like"
                raise EngineError(f"{why} one of these rows: make a logits processor for each call of the engine")
            slots += found
        return slots
