"""Masks over a vocabulary of many thousands: all tokens at once, a byte at a time, by the oracle's own steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .machine import Oracle, State

Flags = np.ndarray[Any, np.dtype[np.bool_]]

DEAD, UNKNOWN = 0, -1
MOST_STATES = 60_000  # of one table; a kilobyte each


class WideTokens:
    """Token bytes by position, so that a step of the oracle is looked up for all tokens that it concerns."""

    def __init__(self, texts: Sequence[bytes], eos: Sequence[int], special: Sequence[int]) -> None:
        silent = {*eos, *special}
        self.size, self.eos = len(texts), sorted(eos)
        self.texts = texts
        ordinary = [n for n, text in enumerate(texts) if text and n not in silent]
        self.ordinary = np.array(ordinary)
        longest = max(len(texts[n]) for n in ordinary)
        self.at: list[tuple[Any, Any]] = []  # by position: tokens that have a byte there, and the byte
        for place in range(longest):
            some = [n for n in ordinary if len(texts[n]) > place]
            self.at.append((np.array(some), np.array([texts[n][place] for n in some])))


class WideOracle:
    """An oracle whose steps are kept in a table."""

    def __init__(self, oracle: Oracle, tokens: WideTokens) -> None:
        self.oracle, self.tokens = oracle, tokens
        self._clear()

    def _clear(self) -> None:
        self.states: list[State | None] = [None]
        self.numbers: dict[State, int] = {}
        self.table = np.full((256, 256), UNKNOWN, np.int32)

    def number(self, state: State | None) -> int:
        """A state's row in the table."""
        if state is None:
            return DEAD
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
            if len(self.states) > len(self.table):
                self.table = np.vstack([self.table, np.full_like(self.table, UNKNOWN)])
        return self.numbers[state]

    def mask(self, state: State | None) -> Flags:
        """A flag per token: whether the text so far and the token can be completed. None: finished."""
        legal = np.zeros(self.tokens.size, bool)
        if state is None or state.whole:
            legal[self.tokens.eos] = True
        if state is None:
            return legal
        if len(self.states) > MOST_STATES:
            self._clear()
        current = np.zeros(self.tokens.size, np.int32)
        current[self.tokens.ordinary] = self.number(state)
        for tokens, given in self.tokens.at:
            here = current[tokens]
            alive = here != DEAD
            if not alive.any():
                break
            some, rows, columns = tokens[alive], here[alive], given[alive]
            after = self.table[rows, columns]
            unknown = after == UNKNOWN
            if unknown.any():
                for pair in np.unique(rows[unknown] * 256 + columns[unknown]).tolist():
                    row, column = divmod(pair, 256)
                    found = self.states[row]
                    assert found is not None
                    number = self.number(self.oracle.step(found, column))
                    self.table[row, column] = number
                after = self.table[rows, columns]
            current[some] = after
        return legal | (current != DEAD)
