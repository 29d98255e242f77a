"""An engine that fails at each of its calls: every session keeps its state and can continue."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.errors import (
    ContextOverflowError,
    EmptySequenceError,
    EngineError,
    InvalidTokenError,
    RejectedTokenError,
    SnapshotError,
)
from guideway.generation import Model
from guideway.sampling import Sampler
from guideway.sessions import Session, feed_all, infer_all
from guideway.testing import FailingEngine, ToyEngine
from guideway.tokenizers import Tokenizer, Vocabulary

TOKENS = [b"", *(bytes([b]) for b in b"abcdefgh "), b"ab", b"cab"]
VOCABULARY = Vocabulary(TOKENS, eos_ids=[0], special_ids=[0])
Act = Callable[[Session, Path], Any]


def infer_under_a_constraint(session: Session, path: Path) -> None:
    session.constrain(gw.compile(gw.Regex("[a-h ]*"), VOCABULARY).matcher())
    session.infer()


ACTS: dict[str, Act] = {
    "infer": lambda s, p: [s.infer() for _ in range(3)],
    "logits": lambda s, p: s.logits(),
    "top_k": lambda s, p: s.top_k(2),
    "rewind, then logits": lambda s, p: (s.rewind(2), s.logits()),
    "set_text, then logits": lambda s, p: (s.set_text("abc de"), s.logits()),
    "under a constraint": infer_under_a_constraint,
    "kv_cache": lambda s, p: s.model.session(kv_cache=s.kv_cache()).infer(),
    "fork": lambda s, p: s.fork(row=3).infer(),
    "save": lambda s, p: s.save(p / "a"),
    "load": lambda s, p: (s.save(p / "b"), s.model.load_session(p / "b").logits()),
    "in a batch": lambda s, p: infer_all([s, s.fork(row=1), s.fork(row=2)]),
}


def started(engine: Any) -> Session:
    session = Model(engine, Tokenizer.of(VOCABULARY)).session(seed=5, sampler=Sampler(1.0), logits_bytes=200)
    session.feed("cab deaf")
    session.infer()
    session.feed([3] * 70)
    return session


def facts(session: Session) -> tuple[Any, ...]:
    position = None if session.matcher is None else session.matcher.position
    return session.tokens, session.text, position, session.seed, session.row


@pytest.mark.parametrize("late", [False, True], ids=["before", "after the work"])
@pytest.mark.parametrize("supports_rollback", [True, False], ids=["supports_rollback", "recurrent"])
@pytest.mark.parametrize("name", ACTS)
def test_a_fault_at_every_call_changes_nothing(name: str, supports_rollback: bool, late: bool, tmp_path: Path) -> None:
    toy = ToyEngine(len(TOKENS), supports_rollback=supports_rollback)
    calm = started(toy)
    ACTS[name](calm, tmp_path)
    failed = 0
    for call in range(1, 20):
        engine = FailingEngine(toy, late=late)
        session = started(engine)
        engine.calls, engine.fail_at = 0, call
        seen: list[tuple[Any, ...]] = []
        try:
            act_by_steps(session, name, tmp_path, seen)
        except (EngineError, SnapshotError) as error:
            message = str(error)
        else:
            break
        failed += 1
        assert "injected" in message
        assert facts(session) == seen[-1]
        engine.fail_at = None
        expected = started(toy)
        expected.set_text("")
        expected.feed(session.tokens)
        assert np.array_equal(session.logits(), expected.logits())
        assert session.top_k(3) == expected.top_k(3)
        if session.matcher is None:
            assert [session.infer() for _ in range(3)] == [expected.infer() for _ in range(3)]
    assert failed
    assert failed < 19


def act_by_steps(session: Session, name: str, path: Path, seen: list[tuple[Any, ...]]) -> None:
    """Runs the operation, and stores the state of the session before each atomic step."""
    seen.append(facts(session))
    if name == "infer":
        for _ in range(3):
            session.infer()
            seen.append(facts(session))
    elif name == "rewind, then logits":
        session.rewind(2)
        seen.append(facts(session))
        session.logits()
    elif name == "set_text, then logits":
        session.set_text("abc de")
        seen.append(facts(session))
        session.logits()
    elif name == "under a constraint":
        session.constrain(gw.compile(gw.Regex("[a-h ]*"), VOCABULARY).matcher())
        seen.append(facts(session))
        session.infer()
    else:
        ACTS[name](session, path)


def test_errors_leave_the_session_as_it_was() -> None:
    engine = ToyEngine(len(TOKENS), context_size=100)
    session = started(engine)
    session.constrain(gw.compile(gw.Regex("a*b"), VOCABULARY).matcher())
    before, logits = facts(session), session.logits()
    wrong: list[tuple[type[Exception], Callable[[], Any]]] = [
        (ContextOverflowError, lambda: session.feed([1] * 100)),
        (ContextOverflowError, lambda: session.set_text("a" * 101)),
        (InvalidTokenError, lambda: session.feed([1, 99])),
        (InvalidTokenError, lambda: session.feed("a\N{SNOWMAN}")),
        (InvalidTokenError, lambda: session.set_text("a\N{SNOWMAN}")),
        (RejectedTokenError, lambda: session.feed("aac")),
        (RejectedTokenError, lambda: session.set_text(session.text + "aac")),
        (EmptySequenceError, lambda: session.rewind(101)),
        (ValueError, lambda: session.rewind(-1)),
        (ValueError, lambda: infer_all([session, session])),
    ]
    for kind, act in wrong:
        with pytest.raises(kind):
            act()
        assert facts(session) == before
        assert np.array_equal(session.logits(), logits)


def test_failing_row_does_not_advance_others() -> None:
    model = Model(ToyEngine(len(TOKENS), context_size=10), Tokenizer.of(VOCABULARY))
    sessions = [model.session(row=i) for i in range(3)]
    for session, count in zip(sessions, (3, 10, 4), strict=True):
        session.feed([1] * count)
    with pytest.raises(ContextOverflowError):
        infer_all(sessions)
    sessions[1] = model.session()
    with pytest.raises(EmptySequenceError):
        infer_all(sessions)
    assert [len(session) for session in sessions] == [3, 0, 4]


class Overlapping(ToyEngine):
    """Counts the calls during which another one ran."""

    inside = overlaps = 0

    def forward(self, rows: Any, caches: Any) -> Any:
        self.inside += 1
        self.overlaps += self.inside > 1
        sleep(0.0002)
        try:
            return super().forward(rows, caches)
        finally:
            self.inside -= 1


def test_threads_share_a_model_and_its_engine_runs_one_call_at_a_time(tmp_path: Path) -> None:
    engine = Overlapping(len(TOKENS))
    model = Model(engine, Tokenizer.of(VOCABULARY))

    def work(number: int) -> None:
        for turn in range(10):
            session = model.session(row=number)
            session.feed("cab deaf")
            session.infer()
            session.fork().kv_cache()
            session.save(tmp_path / f"{number}-{turn}")
            model.load_session(tmp_path / f"{number}-{turn}").infer()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert engine.overlaps == 0


def test_a_closed_model_can_only_be_looked_at() -> None:
    model = Model(ToyEngine(len(TOKENS)), Tokenizer.of(VOCABULARY))
    session = model.session()
    session.feed("cab")
    session.logits()
    session.feed("d")
    model.close()
    before = facts(session)
    for act in (
        session.logits,
        session.infer,
        session.kv_cache,
        lambda: session.feed("a"),
        lambda: session.set_text("a"),
    ):
        with pytest.raises(EngineError, match="closed"):
            act()
        assert facts(session) == before
    feed_all([])
