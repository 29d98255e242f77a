"""Compares a matcher with the oracle in every observable property.

`Lockstep.walk` visits a tree of token sequences with advance and rollback; `here` compares all answers in one state. A
disagreement raises `Mismatch` with the constraint, the consumed tokens and both answers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from guideway.errors import InvalidTokenError, RejectedTokenError, UnsatisfiableError
from tests.helpers.byte_tokens import legal
from tests.oracle.machine import Oracle
from tests.oracle.matcher import SlowMatcher, Tokens

FAR = 1000  # more tokens than any budget that is tried
NEVER = 2**31  # a count of tokens that no vocabulary fulfils


class Mismatch(AssertionError):
    """The matcher and the oracle disagree."""


@dataclass
class Tally:
    """How much was compared."""

    worlds: int = 0
    states: int = 0
    bits: int = 0
    budgets: int = 0
    held_back: int = 0  # tokens that a budget would have allowed but fill_mask_within left out

    def __str__(self) -> str:
        return (
            f"{self.worlds} worlds, {self.states} states, {self.bits} bits, {self.budgets} budgets "
            f"({self.held_back} tokens held back)"
        )


@dataclass
class Lockstep:
    """A matcher, its twin, and what to compare."""

    name: str
    matcher: Any
    oracle: Oracle
    tokens: Tokens
    rng: random.Random
    tally: Tally
    budgets: int = 1000  # at how many states to try budgets; 0 where the tokens cannot spell every completion
    searched: bool = True  # budgets against the oracle's own search, which is for worlds of few states
    slow: SlowMatcher = field(init=False)
    taken: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.slow = SlowMatcher(self.oracle, self.tokens)
        self.words = np.zeros((len(self.tokens.texts) + 31) // 32, dtype=np.uint32)

    # Answers, in one form.

    def fail(self, what: str, got: object, expected: object) -> None:
        """Reports the difference, with all values that are necessary to reproduce it."""
        texts = [self.tokens.texts[t] for t in self.taken]
        raise Mismatch(
            f"{what}: got {got!r}, expected {expected!r}\n  constraint {self.name}\n  tokens {self.taken} = {texts}\n"
            f"  vocabulary {list(self.tokens.texts)[:40]} eos {sorted(self.tokens.eos)}"
        )

    def same(self, what: str, got: object, expected: object) -> None:
        """Compare two answers."""
        if got != expected:
            self.fail(what, got, expected)

    def read(self, matcher: Any | None = None) -> frozenset[int]:
        """Returns the matcher's mask as token ids. The previous content of the row must have no effect."""
        self.words.fill(0xFFFFFFFF)
        (matcher or self.matcher).fill_mask(self.words)
        return self.ids()

    def ids(self) -> frozenset[int]:
        """The ids whose bits are set in the row, bits past the vocabulary included."""
        return frozenset(legal(self.words))

    # Results in one state.

    def mask(self) -> frozenset[int]:
        """Compare the mask: bit set exactly when the text and the token can be completed."""
        got, expected = self.read(), self.slow.mask()
        if got != expected:
            extra, missing = sorted(got - expected), sorted(expected - got)
            texts = self.tokens.texts
            some = [(t, texts[t] if t < len(texts) else "past the end") for t in (extra + missing)[:20]]
            self.fail(f"mask: too many {extra[:20]}, missing {missing[:20]} {some}", "a mask", "another")
        self.tally.states += 1
        self.tally.bits += len(self.tokens.texts)
        return expected

    def here(self) -> None:
        """Runs all checks that do not change the state."""
        state = self.slow.state
        self.mask()
        self.same("position", self.matcher.position, self.slow.position)
        self.same("is_finished", self.matcher.is_finished, state is None)
        if state is None:
            return
        self.same("is_accepting", self.matcher.is_accepting, state.whole)
        self.same("forced_bytes", self.matcher.forced_bytes(), self.slow.forced(FAR))
        tokens = list(self.matcher.forced_tokens())
        spelled = b"".join(self.tokens.texts[t] for t in tokens)
        if not self.slow.forced(FAR).startswith(spelled):
            self.fail("forced_tokens", spelled, self.slow.forced(FAR))
        end = self.oracle.read(state, self.matcher.completion())
        if end is None or not end.whole:
            self.fail("completion", self.matcher.completion(), "a text that completes")

    def guesses(self) -> None:
        """`validate` on random tokens, legal ones mostly, invalid ids sometimes."""
        before, size = self.slow.mask(), len(self.tokens.texts)
        trial, guess = self.slow.fork(), []
        for _ in range(self.rng.randrange(6)):
            legal = sorted(trial.mask())
            likely = legal and self.rng.random() < 0.8
            token = self.rng.choice(legal) if likely else self.rng.randrange(size)
            guess.append(token)
            trial.advance(token)
        self.same(f"validate({guess})", self.matcher.validate(guess), self.slow.validate(guess))
        self.same("mask after validate", self.read(), before)

    def reject(self) -> None:
        """Tokens that are not legal are refused, and nothing changes."""
        legal = self.slow.mask()
        for token in range(len(self.tokens.texts)):
            if token not in legal:
                try:
                    self.matcher.advance(token)
                except RejectedTokenError:
                    continue
                self.fail(f"advance({token})", "taken", "RejectedTokenError")
        for token in (len(self.tokens.texts), -1, 2**31 - 1):
            try:
                self.matcher.advance(token)
            except InvalidTokenError:
                continue
            self.fail(f"advance({token})", "taken", "InvalidTokenError")
        self.same("mask after rejected tokens", self.read(), legal)
        self.same("position after rejected tokens", self.matcher.position, self.slow.position)

    # Moving.

    def advance(self, token: int) -> None:
        """Advances both sides by a legal token."""
        try:
            self.matcher.advance(token)
        except RejectedTokenError as error:
            self.fail(f"advance({token})", error, "taken: its bit was set")
        if not self.slow.advance(token):
            self.fail(f"advance({token})", "taken", "rejected")
        self.taken.append(token)

    def rollback(self, count: int = 1) -> None:
        """Give tokens back on both sides."""
        self.matcher.rollback(count)
        self.slow.rollback(count)
        del self.taken[len(self.taken) - count :]

    def fork(self) -> Lockstep:
        """Another pair at the same state."""
        other = Lockstep(
            self.name, self.matcher.fork(), self.oracle, self.tokens, self.rng, self.tally, self.budgets, self.searched
        )
        other.slow, other.taken = self.slow.fork(), list(self.taken)
        return other

    def walk(self, depth: int, nodes: int) -> None:
        """Visits the tree of token sequences to a depth; rarely visits a state twice."""
        seen: set[object] = set()
        left = [nodes]
        self._visit(depth, seen, left)
        self.same("position after the walk", self.matcher.position, 0)

    def _visit(self, depth: int, seen: set[object], left: list[int]) -> None:
        self.mask()
        key = (self.slow.state, depth)
        known = key in seen
        if left[0] <= 0 or (known and self.rng.random() < 0.9):
            return
        left[0] -= 1
        seen.add(key)
        if not known:
            self.here()
            self.reject()
            self.guesses()
        if self.rng.random() < 0.1:
            self.forked()
        if self.budgets > 0 and not known and self.slow.state is not None:
            self.budgets -= 1
            self.budget()
        if depth == 0:
            return
        order = sorted(self.slow.mask() if self.slow.state is not None else ())
        self.rng.shuffle(order)
        for token in order:
            self.advance(token)
            self._visit(depth - 1, seen, left)
            self.rollback()
            self.mask()

    def forked(self) -> None:
        """A fork advances and its origin is unchanged, and vice versa."""
        other = self.fork()
        steps = self.rng.randrange(1, 4)
        for _ in range(steps):
            legal = sorted(other.slow.mask()) if other.slow.state is not None else []
            if not legal:
                break
            other.advance(self.rng.choice(legal))
            other.mask()
        self.mask()
        if other.taken:
            other.rollback(self.rng.randrange(1, len(other.taken) + 1))
            other.mask()
        self.mask()

    # Budgets.

    def budget(self) -> None:
        """The fewest tokens, and masks that leave room to finish."""
        promised = least = self.promised()
        if self.searched:
            cost = self.slow.cost(self.slow.state)
            least = NEVER if cost is None else cost
        if promised < least:
            self.fail("min_tokens_to_complete is too low", promised, least)
        if promised >= NEVER:  # the vocabulary cannot spell the shortest completion
            self.within(FAR, promised)
            return
        for tokens in sorted({0, 1, least, promised - 1, promised, promised + 1, promised + self.rng.randrange(6)}):
            self.within(tokens, promised)
        self.finish(promised + self.rng.randrange(3))

    def promised(self) -> int:
        """`min_tokens_to_complete`; `NEVER` where the vocabulary cannot spell the shortest completion."""
        try:
            return int(self.matcher.min_tokens_to_complete())
        except UnsatisfiableError:
            return NEVER

    def within(self, tokens: int, promised: int) -> frozenset[int]:
        """`fill_mask_within` allows only tokens that can be completed, and at least one token if it returns True."""
        fits = self.matcher.fill_mask_within(self.words, tokens)
        got = self.ids()
        feasible = self.slow.mask()
        if self.searched:
            feasible = frozenset(t for t in feasible if self.cost_after(t) <= tokens - 1)
        if got - feasible:
            self.fail(f"fill_mask_within({tokens}) cannot be completed", sorted(got - feasible), "none of them")
        self.same(f"fill_mask_within({tokens}) says whether anything fits", fits, bool(got))
        if tokens >= promised and not got:
            self.fail(f"fill_mask_within({tokens}) with min_tokens_to_complete {promised}", "empty", sorted(feasible))
        self.tally.budgets += 1
        self.tally.held_back += len(feasible - got) * self.searched
        return got

    def cost_after(self, token: int) -> int:
        """The fewest tokens after this one."""
        if token in self.tokens.eos:
            return 0
        cost = self.slow.cost(self.oracle.read(self.slow.state, self.tokens.texts[token]))
        return NEVER if cost is None else cost

    def finish(self, tokens: int) -> None:
        """A random walk within a budget finishes."""
        start = len(self.taken)
        while self.slow.state is not None:
            legal = self.within(tokens, self.promised())
            if not legal:
                self.fail(f"dead end with {tokens} tokens left", "an empty mask", sorted(self.slow.mask()))
            self.advance(self.rng.choice(sorted(legal)))
            tokens -= 1
        self.mask()
        self.rollback(len(self.taken) - start)
