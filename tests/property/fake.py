"""The oracle with the interface of Matcher, with optional faults that the checks must detect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from guideway.errors import InvalidTokenError, RejectedTokenError
from tests.oracle.machine import Oracle, State
from tests.oracle.matcher import SlowMatcher, Tokens

FLAWS = (
    "drops a bit",
    "adds a bit",
    "leaves dirt in the row",
    "forgets eos",
    "takes anything",
    "moves when it rejects",
    "rolls back too little",
    "shares its forks",
    "validates too much",
    "promises too little",
    "leads into a dead end",
    "forces too much",
    "completes wrongly",
    "hides that it accepts",
)


class FakeMatcher:
    """Answers like a Matcher."""

    def __init__(self, oracle: Oracle, tokens: Tokens, flaw: str = "") -> None:
        self.slow, self.tokens, self.flaw = SlowMatcher(oracle, tokens), tokens, flaw

    def _write(self, row: np.ndarray[Any, np.dtype[np.uint32]], ids: frozenset[int]) -> None:
        if self.flaw != "leaves dirt in the row":
            row[:] = 0
        for token in ids:
            row[token // 32] |= np.uint32(1 << token % 32)

    def fill_mask(self, row: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
        ids = self.slow.mask()
        if self.flaw == "drops a bit" and self.slow.position == 1:
            ids -= {max(ids, default=0)}
        if self.flaw == "adds a bit" and self.slow.position == 1:
            ids |= {min(set(range(len(self.tokens.texts))) - ids, default=0)}
        if self.flaw == "forgets eos" and self.slow.state is not None:
            ids -= self.tokens.eos
        self._write(row, ids)

    def fill_mask_within(self, row: np.ndarray[Any, np.dtype[np.uint32]], tokens_left: int) -> bool:
        ids = frozenset(t for t in self.slow.mask() if self._after(t) <= tokens_left - 1)
        if self.flaw == "leads into a dead end" and ids:
            ids = self.slow.mask()
        self._write(row, ids)
        return bool(ids)

    def _after(self, token: int) -> int:
        if token in self.tokens.eos:
            return 0
        cost = self.slow.cost(self.slow.oracle.read(self.slow.state, self.tokens.texts[token]))
        return 1000 if cost is None else cost

    def advance(self, token: int) -> None:
        if not 0 <= token < len(self.tokens.texts):
            raise InvalidTokenError(str(token))
        if not self.slow.advance(token):
            if self.flaw == "moves when it rejects":
                self.slow.path.append(self.slow.state)
            if self.flaw != "takes anything":
                raise RejectedTokenError(str(token))

    def rollback(self, count: int) -> None:
        self.slow.rollback(count - (self.flaw == "rolls back too little" and count > 1))

    def fork(self) -> FakeMatcher:
        if self.flaw == "shares its forks":
            return self
        other = FakeMatcher(self.slow.oracle, self.tokens, self.flaw)
        other.slow = self.slow.fork()
        return other

    def validate(self, tokens: Sequence[int]) -> int:
        count = self.slow.validate(tokens)
        return min(len(tokens), count + 1) if self.flaw == "validates too much" else count

    def forced_bytes(self) -> bytes:
        return self.slow.forced(1000) + (b"a" if self.flaw == "forces too much" else b"")

    def forced_tokens(self) -> list[int]:
        return []

    def min_tokens_to_complete(self) -> int:
        cost = self.slow.cost(self.slow.state)
        assert cost is not None
        return cost - (self.flaw == "promises too little")

    def completion(self) -> bytes:
        """By bytes, breadth first."""
        state = self.slow.state
        queue: list[tuple[State | None, bytes]] = [(state, b"")]
        bytes_used = sorted({byte for text in self.tokens.texts for byte in text})
        for here, text in queue:
            if here is not None and here.whole:
                return text + (b"?" if self.flaw == "completes wrongly" else b"")
            queue += [(self.slow.oracle.read(here, bytes([b])), text + bytes([b])) for b in bytes_used if here]
        raise AssertionError("no completion")

    @property
    def is_accepting(self) -> bool:
        state = self.slow.state
        return state is not None and state.whole and self.flaw != "hides that it accepts"

    @property
    def is_finished(self) -> bool:
        return self.slow.state is None

    @property
    def position(self) -> int:
        return self.slow.position
