"""Checks that every engine must pass with the small models."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import guideway as gw
from guideway.engines.base import SHORTEST_PREFIX, StepEngine
from guideway.errors import EngineError, SnapshotError
from guideway.generation import Model
from guideway.sampling import Sampler
from guideway.sessions import Session, infer_all
from guideway.testing import FailingEngine, ToyEngine, step_engine_contract
from guideway.tokenizers import Tokenizer

TEXT = "the crab and the scrabble of crabs"
PATTERN = gw.Regex(r'\{"name": "[a-z]{3,9}", "age": [1-9][0-9]?, "tags": \["[a-z]+"(, "[a-z]+"){0,3}\]\}')


def model_of(engine: StepEngine, folder: Path, name: str = "tiny random") -> Model:
    return Model(engine, Tokenizer.of(folder), name=name)


def check_engine(model: Model, path: Path, *, tolerance: float = 1e-4, exact: bool = True) -> None:
    """The contract, and what sessions promise. `exact`: the same steps give the same bits."""
    step_engine_contract(model.engine, [7, 3, 9, 100, 41, 200, 5, 3], tolerance=tolerance)
    for temperature in (0.0, 1.0):
        back_and_again(model, temperature, tolerance, exact)
    edits(model, tolerance)
    forks_and_files(model, path, tolerance)
    faults(model, path, tolerance)
    shared_prefixes(model, tolerance)


def fed(model: Model, ids: list[int]) -> Session:
    session = model.session()
    session.feed(ids)
    return session


def back_and_again(model: Model, temperature: float, tolerance: float, exact: bool) -> None:
    """Infer 200, rewind 200, infer 200 again."""
    session = model.session(seed=1, sampler=Sampler(temperature))
    session.feed(TEXT)
    before, best = session.logits(), session.top_k(5)
    produced = [session.infer() for _ in range(200)]
    after = session.logits()
    assert np.allclose(after, fed(model, session.tokens).logits(), atol=tolerance)
    assert session.rewind(200) == produced
    assert np.array_equal(session.logits(), before)
    assert session.top_k(5) == best
    assert [session.infer() for _ in range(200)] == produced
    found = session.logits()
    assert np.array_equal(found, after) if exact else np.allclose(found, after, atol=tolerance)


def edits(model: Model, tolerance: float) -> None:
    """Words of several tokens in the middle of a text; nothing in front runs again where the engine can go back."""
    model.prefixes.budget_bytes = 0  # it would find what was run before
    session = model.session()
    session.feed(TEXT)
    session.logits()
    for text in (TEXT.replace("crabs", "lobsters"), TEXT.replace(" crab", " zebra crossing"), TEXT[:5], TEXT, ""):
        ran = session.counts.run
        change = session.set_text(text)
        assert session.text == text
        assert np.allclose(session.logits(), fed(model, session.tokens).logits(), atol=tolerance)
        if model.engine.supports_rollback:
            assert session.counts.run - ran == max(1, len(change.fed))


def forks_and_files(model: Model, path: Path, tolerance: float) -> None:
    session = model.session(seed=2, sampler=Sampler(1.0))
    session.feed(TEXT)
    session.logits()
    forks = [session.fork(row=i) for i in range(3)]
    alone = [[fork.fork().infer() for _ in range(1)] for fork in forks]
    assert [[token] for token in infer_all(forks)] == alone
    for fork in forks:
        fork.feed("ab")
        assert np.allclose(fork.logits(), fed(model, fork.tokens).logits(), atol=tolerance)
    kv = session.kv_cache()
    session.save(path)
    again, given = model.load_session(path), model.session(kv_cache=kv, seed=2, sampler=Sampler(1.0))
    expected = [session.infer() for _ in range(20)]
    assert [again.infer() for _ in range(20)] == expected
    assert [given.infer() for _ in range(20)] == expected
    stranger = Model(ToyEngine(model.engine.vocab_size), model.tokenizer)
    with pytest.raises(SnapshotError, match="different model"):
        stranger.load_session(path)


def faults(model: Model, path: Path, tolerance: float) -> None:
    """Each call to the engine fails once, before and after its work: the session is unchanged, and can continue."""
    for late, call in product((False, True), range(1, 12)):
        engine = FailingEngine(model.engine, fail_at=call, late=late)
        session = Model(engine, model.tokenizer).session(logits_bytes=0)
        acts: list[Callable[[], object]] = [
            lambda s=session: s.feed(TEXT),
            lambda s=session: s.infer(),
            lambda s=session: s.rewind(3),
            lambda s=session: s.logits(),
            lambda s=session: infer_all([s.fork(row=1), s.fork(row=2)]),
            lambda s=session: s.set_text(TEXT.replace("scrabble", "lobster")),
            lambda s=session: s.infer(),
            lambda s=session: s.save(path),
            lambda s=session: s.model.load_session(path).infer(),
            lambda s=session: s.model.session(kv_cache=s.kv_cache()).infer(),
        ]
        failed = 0
        for act in acts:
            before = session.tokens, session.text
            try:
                act()
            except (EngineError, SnapshotError):
                failed += 1
                assert (session.tokens, session.text) == before
                assert np.allclose(session.logits(), fed(model, session.tokens).logits(), atol=tolerance)
                act()
        assert np.allclose(session.logits(), fed(model, session.tokens).logits(), atol=tolerance)
        if not failed:
            assert call > 6
            break
        assert failed == 1


def shared_prefixes(model: Model, tolerance: float) -> None:
    """Sessions with a common prefix run it once, even if there are more sessions than the engine can hold."""
    shared = Model(model.engine, model.tokenizer)
    shared.prefixes.shortest = SHORTEST_PREFIX  # llama.cpp keeps only longer ones by default
    found = 0
    for index in range(70):
        session = shared.session()
        session.feed([*range(20, 90), *[index + 100, 9] * 10])
        logits = session.logits()
        found += session.counts.cached
        if index % 10 == 0:
            assert np.allclose(logits, fed(model, session.tokens).logits(), atol=tolerance)
    assert found == 69 * (len(session) - 20 if model.engine.supports_rollback else 64)
    assert shared.prefixes.statistics.entries >= 60
    shared.prefixes.clear()


def greedy(model: Model, prompt: str = TEXT) -> tuple[list[int], np.ndarray]:
    """Returns the tokens of a greedy generation under a constraint, and the logits after the prompt."""
    session = model.session()
    session.feed(prompt)
    logits = session.logits()
    found = gw.generation.complete(model, prompt, PATTERN, max_tokens=120)
    return list(found.tokens), logits
