"""Hypothesis calls a matcher in any order with legal and illegal tokens; the oracle predicts the results."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

import guideway as gw
from guideway.errors import InvalidTokenError, RejectedTokenError
from tests.oracle import regular
from tests.oracle.matcher import Tokens

from . import patterns, schemas, vocabularies
from .checks import Lockstep, Tally
from .worlds import SPELLING


class Calls(RuleBasedStateMachine):
    """Some matchers of one automaton, each with its twin."""

    pairs: Bundle[Lockstep] = Bundle("pairs")

    @initialize(target=pairs, seed=st.integers(0, 10_000), kind=st.sampled_from(["letters", "bytes", "schema"]))
    def start(self, seed: int, kind: str) -> Lockstep:
        regular.forget()
        rng = random.Random(seed)
        source: Any
        if kind == "schema":
            self.tokens = Tokens((*dict.fromkeys(SPELLING), b'{"', b'": ', b", ", b"</s>"), frozenset())
            self.tokens = Tokens(self.tokens.texts, frozenset({len(self.tokens.texts) - 1}))
            case, _ = schemas.draw(seed, 1)
            oracle = case.oracle()
            if not case.world().satisfiable("#"):
                case = schemas.Case({"type": "array", "items": {"type": "boolean"}})
                oracle = case.oracle()
            source, spellable = gw.JsonSchema(case.schema), False
        else:
            letters, tables = {
                "letters": (patterns.LETTERS, vocabularies.LETTERS),
                "bytes": (patterns.WIDE, vocabularies.BYTES),
            }[kind]
            pattern = patterns.drawn(rng, rng.randrange(2, 8), letters)
            self.tokens, oracle = rng.choice(tables), pattern.oracle()
            source, spellable = gw.Regex(pattern.text), kind == "letters" and pattern.spellable
        try:
            matcher = gw.compile(source, vocabularies.kernel(self.tokens)).matcher()
        except gw.errors.UnsupportedError:
            return self.start(seed + 1, kind)
        return Lockstep(repr(source), matcher, oracle, self.tokens, rng, Tally(), 1000 if spellable else 0)

    @rule(pair=pairs, choice=st.integers(0, 1000))
    def advance(self, pair: Lockstep, choice: int) -> None:
        legal = sorted(pair.slow.mask())
        if legal and pair.slow.state is not None:
            pair.advance(legal[choice % len(legal)])

    @rule(pair=pairs, token=st.integers(-3, 60) | st.sampled_from([-(2**31), 2**31 - 1, 2**31, 2**40]))
    def advance_blindly(self, pair: Lockstep, token: int) -> None:
        if token in pair.slow.mask() and pair.slow.state is not None:
            pair.advance(token)
            return
        try:
            pair.matcher.advance(token)
        except RejectedTokenError:
            assert 0 <= token < len(self.tokens.texts)
        except (InvalidTokenError, OverflowError, TypeError):
            assert not 0 <= token < len(self.tokens.texts)
        else:
            pair.fail(f"advance({token})", "taken", "an error")

    @rule(pair=pairs, count=st.integers(0, 12))
    def rollback(self, pair: Lockstep, count: int) -> None:
        if count <= len(pair.taken):
            if count:
                pair.rollback(count)
            return
        try:
            pair.matcher.rollback(count)
        except ValueError:
            return
        pair.fail(f"rollback({count}) after {len(pair.taken)} tokens", "done", "ValueError")

    @rule(target=pairs, pair=pairs)
    def fork(self, pair: Lockstep) -> Lockstep:
        return pair.fork()

    @rule(pair=pairs, tokens=st.lists(st.integers(0, 12), max_size=6))
    def validate(self, pair: Lockstep, tokens: list[int]) -> None:
        tokens = [token % len(self.tokens.texts) for token in tokens]
        pair.same(f"validate({tokens})", pair.matcher.validate(tokens), pair.slow.validate(tokens))

    @rule(pair=pairs)
    def look(self, pair: Lockstep) -> None:
        pair.here()

    @rule(pair=pairs)
    def mask(self, pair: Lockstep) -> None:
        pair.mask()

    @rule(pair=pairs)
    def within(self, pair: Lockstep) -> None:
        if pair.budgets and pair.slow.state is not None:
            pair.budget()


Calls.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestCalls = Calls.TestCase
