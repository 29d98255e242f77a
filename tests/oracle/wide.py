"""Masks over a vocabulary of many thousands of tokens: all tokens at once, byte by byte, with the oracle's steps.

The text of a key or item matters only for the next one, which follows a comma. So tokens without a comma after their
first byte walk states in which that text is erased, of which there are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .entries import OpenKey
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
        commas = [n for n in ordinary if b"," in texts[n][1:]]
        self.parts = [self._by_place(sorted({*ordinary} - {*commas})), self._by_place(commas)]  # without, and with

    def _by_place(self, some: list[int]) -> tuple[Any, list[tuple[Any, Any]]]:
        """Tokens, and by position: those that have a byte there, and the byte."""
        every, at = np.array(some, np.int64), []
        for place in range(max(len(self.texts[n]) for n in some) if some else 0):
            some = [n for n in some if len(self.texts[n]) > place]
            at.append((np.array(some), np.array([self.texts[n][place] for n in some])))
        return every, at


def erased(oracle: Oracle, state: State | None) -> State | None:
    """The same without the texts of keys and items that are being read."""
    if state is None or not any(isinstance(term, OpenKey) and term.text for stack in state.stacks for term in stack):
        return state
    return oracle.state(
        frozenset(
            tuple(replace(term, text=b"") if isinstance(term, OpenKey) else term for term in stack)
            for stack in state.stacks
        )
    )


class Table:
    """Caches the steps of an oracle."""

    def __init__(self, oracle: Oracle, *, erasing: bool) -> None:
        self.oracle, self.erasing = oracle, erasing
        self.clear()

    def clear(self) -> None:
        """Forget all states."""
        self.states: list[State | None] = [None]
        self.numbers: dict[State, int] = {}
        self.steps = np.full((256, 256), UNKNOWN, np.int32)

    def number(self, state: State | None) -> int:
        """A state's row."""
        if self.erasing:
            state = erased(self.oracle, state)
        if state is None:
            return DEAD
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
            if len(self.states) > len(self.steps):
                self.steps = np.vstack([self.steps, np.full_like(self.steps, UNKNOWN)])
        return self.numbers[state]

    def walk(self, state: State, size: int, every: Any, at: list[tuple[Any, Any]]) -> Flags:
        """Returns those of the tokens that are accepted in a state."""
        if len(self.states) > MOST_STATES:
            self.clear()
        current = np.zeros(size, np.int32)
        current[every] = self.number(state)
        for tokens, given in at:
            here = current[tokens]
            alive = here != DEAD
            if not alive.any():
                break
            some, rows, columns = tokens[alive], here[alive], given[alive]
            after = self.steps[rows, columns]
            unknown = after == UNKNOWN
            if unknown.any():
                for pair in np.unique(rows[unknown] * 256 + columns[unknown]).tolist():
                    row, column = divmod(pair, 256)
                    found = self.states[row]
                    assert found is not None
                    number = self.number(self.oracle.step(found, column))
                    self.steps[row, column] = number
                after = self.steps[rows, columns]
            current[some] = after
        return current != DEAD


class WideOracle:
    """An oracle with its steps in tables."""

    def __init__(self, oracle: Oracle, tokens: WideTokens) -> None:
        self.oracle, self.tokens = oracle, tokens
        self.tables = Table(oracle, erasing=True), Table(oracle, erasing=False)

    def mask(self, state: State | None) -> Flags:
        """A flag per token: whether the text so far and the token can be completed. None: finished."""
        legal = np.zeros(self.tokens.size, bool)
        if state is None or state.whole:
            legal[self.tokens.eos] = True
        if state is not None:
            for table, (every, at) in zip(self.tables, self.tokens.parts, strict=True):
                legal |= table.walk(state, self.tokens.size, every, at)
        return legal
