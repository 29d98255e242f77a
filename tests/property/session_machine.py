"""Random operations on a session, as a state machine for Hypothesis; `test_sessions` selects the engines."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import guideway as gw
from guideway.engines.base import StepEngine
from guideway.errors import GuidewayError
from guideway.generation import Model
from guideway.sampling import Sampler
from guideway.sessions import PrefixCache, Session
from guideway.tokenizers import Tokenizer, Vocabulary

__all__ = ["TOKENS", "Sessions"]

TOKENS = [b"", b"a", b"b", b"c", b" ", b"ab", b"cab", b" c", b"\xc3", b"\xa9", b"bca ", b""]
VOCABULARY = Vocabulary(TOKENS, eos_ids=[0], special_ids=[0, 11])
AUTOMATON = gw.compile(gw.Regex("( ?(ab|cab|b)+)*"), VOCABULARY)
TEXT = st.text("abc é", max_size=12)
IDS = st.lists(st.integers(1, len(TOKENS) - 2), max_size=8)


class Sessions(RuleBasedStateMachine):
    """A session, and forks of it, against tokens in a list and a session that was only ever fed.

    `engine`: has a context of 60 tokens. `tolerance`: the maximum difference of logits; 0 requires equal bits.
    """

    tolerance = 0.0

    def engine(self) -> StepEngine:
        raise NotImplementedError

    @initialize(logits_bytes=st.sampled_from([0, 200, 1 << 20]), hot=st.booleans(), seed=st.integers(0, 3))
    def begin(self, logits_bytes: int, hot: bool, seed: int) -> None:
        engine, tokenizer = self.engine(), Tokenizer.of(VOCABULARY)
        self.model, self.plain = Model(engine, tokenizer), Model(engine, tokenizer, prefix_bytes=0)
        self.model.prefixes = PrefixCache(budget_bytes=100_000, supports_rollback=engine.supports_rollback, shortest=2)
        self.options = {"seed": seed, "sampler": Sampler(1.3 if hot else 0.0)}
        self.session = self.model.session(logits_bytes=logits_bytes, checkpoint_bytes=300, **self.options)
        self.tokens: list[int] = []
        self.start: int | None = None  # where the constraint began
        self.others: list[tuple[Session, list[int], int | None]] = []
        self.ran: list[list[int]] = [[]]  # the tokens of earlier sessions, as prefixes for others

    def fresh(self) -> Session:
        """A session that was only ever fed."""
        session = self.plain.session(**self.options)
        session.row = self.session.row
        session.feed(self.tokens[: self.start])
        if self.start is not None:
            session.constrain(AUTOMATON.matcher())
            session.feed(self.tokens[self.start :])
        return session

    @rule(ids=IDS)
    def feed(self, ids: list[int]) -> None:
        try:
            assert self.session.feed(ids) == ids
        except GuidewayError as error:
            self.refused(error, ids)
        else:
            self.tokens += ids

    def refused(self, error: GuidewayError, ids: list[int]) -> None:
        assert len(self.tokens) + len(ids) > 60 or self.start is not None, error

    @rule(text=TEXT)
    def set_text(self, text: str) -> None:
        ids = self.model.tokenizer.encode(text)
        pairs = zip([*ids, -1], [*self.tokens, -2], strict=False)
        kept = next(i for i, (a, b) in enumerate(pairs) if a != b)
        if self.start is not None and kept < self.start:
            with pytest.raises(ValueError, match="release=True"):
                self.session.set_text(text)
        try:
            change = self.session.set_text(text, release=True)
        except GuidewayError:
            assert self.start is not None
            return
        assert change == (kept, self.tokens[kept:], ids[kept:])
        self.tokens = ids
        self.start = self.start if self.start is not None and self.start <= kept else None
        assert self.session.text == text or not text.isprintable()

    @precondition(lambda self: self.tokens and len(self.tokens) < 60)
    @rule(count=st.integers(1, 5))
    def infer(self, count: int) -> None:
        for _ in range(min(count, 60 - len(self.tokens))):
            if self.session.matcher is not None and self.session.matcher.is_finished:
                return
            expected = self.fresh().infer()
            assert self.session.infer() == expected
            self.tokens.append(expected)

    @rule(share=st.floats(0, 1))
    def rewind(self, share: float) -> None:
        count = round(share * len(self.tokens))
        kept = len(self.tokens) - count
        if self.start is not None and kept < self.start:
            with pytest.raises(ValueError, match="release=True"):
                self.session.rewind(count)
        assert self.session.rewind(count, release=True) == self.tokens[kept:]
        del self.tokens[kept:]
        if self.start is not None and kept < self.start:
            self.start = None

    @precondition(lambda self: self.start is None)
    @rule()
    def constrain(self) -> None:
        self.session.constrain(AUTOMATON.matcher())
        self.start = len(self.tokens)

    @rule(which=st.integers(0, 99), share=st.floats(0, 1), ids=IDS)
    def begin_like_another(self, which: int, share: float, ids: list[int]) -> None:
        before = self.ran[which % len(self.ran)]
        self.tokens, self.start = [*before[: round(share * len(before))], *ids][:50], None
        self.session = self.model.session(**self.options)
        self.session.feed(self.tokens)
        if self.tokens:
            assert np.allclose(self.session.logits(), self.fresh().logits(), rtol=0, atol=self.tolerance)

    @precondition(lambda self: len(self.others) < 3)
    @rule(constrained=st.booleans(), more=st.booleans())
    def fork(self, constrained: bool, more: bool) -> None:
        if constrained and self.start is None:
            self.session.constrain(AUTOMATON.matcher())
            self.start = len(self.tokens)
        self.others.append((self.session.fork(), list(self.tokens), self.start))
        finished = self.session.matcher is not None and self.session.matcher.is_finished
        if more and self.tokens and len(self.tokens) < 60 and not finished:
            self.tokens.append(self.session.infer())

    @precondition(lambda self: self.others)
    @rule()
    def change_places(self) -> None:
        other = self.others.pop(0)
        self.others.append((self.session, self.tokens, self.start))
        self.session, self.tokens, self.start = other

    @rule()
    def save_and_load(self) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "session"
            self.session.save(path)
            self.session = self.model.load_session(path, constraint=None if self.start is None else AUTOMATON)

    @precondition(lambda self: self.tokens and self.start is None)
    @rule()
    def through_kv(self) -> None:
        self.session = self.model.session(kv_cache=self.session.kv_cache(), **self.options)

    @rule(count=st.integers(61, 70))
    def too_much(self, count: int) -> None:
        for act in (lambda: self.session.feed([1] * count), lambda: self.session.rewind(count)):
            try:
                act()
            except GuidewayError:
                continue
            raise AssertionError("taken")

    @invariant()
    def tokens_are_those(self) -> None:
        assert self.session.tokens == self.tokens
        for session, tokens, start in [(self.session, self.tokens, self.start), *self.others]:
            position = None if session.matcher is None else session.matcher.position
            assert position == (None if start is None else len(tokens) - start)
        if self.tokens and self.ran[-1] != self.tokens:
            self.ran.append(list(self.tokens))

    @precondition(lambda self: self.tokens)
    @rule()
    def logits_are_those(self) -> None:
        fresh = self.fresh()
        assert np.allclose(self.session.logits(), fresh.logits(), rtol=0, atol=self.tolerance)
        assert self.session.text == fresh.text
        shares = zip(self.session.top_k(3), fresh.top_k(3), strict=True)
        assert all(abs(found[1] - share[1]) <= self.tolerance for found, share in shares)
