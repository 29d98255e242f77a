"""What every engine that runs the tiny models must do: one list of checks for all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import guideway as gw
from guideway.engines.base import StepEngine
from guideway.errors import SnapshotError
from guideway.sampling import Sampler
from guideway.sessions import Model, Session, infer_all
from guideway.testing import ToyEngine, step_engine_contract
from guideway.vocabulary import Tokenizer

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
    session = model.session()
    session.feed(TEXT)
    session.logits()
    for text in (TEXT.replace("crabs", "lobsters"), TEXT.replace(" crab", " zebra crossing"), TEXT[:5], TEXT, ""):
        ran = session.counts.run
        change = session.set_text(text)
        assert session.text == text
        assert np.allclose(session.logits(), fed(model, session.tokens).logits(), atol=tolerance)
        if model.engine.rewinds:
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
    kv = session.kv()
    session.save(path)
    again, given = model.load_session(path), model.session(kv=kv, seed=2, sampler=Sampler(1.0))
    expected = [session.infer() for _ in range(20)]
    assert [again.infer() for _ in range(20)] == expected
    assert [given.infer() for _ in range(20)] == expected
    stranger = Model(ToyEngine(model.engine.vocab_size), model.tokenizer)
    with pytest.raises(SnapshotError, match="another model"):
        stranger.load_session(path)


def greedy(model: Model, prompt: str = TEXT) -> tuple[list[int], np.ndarray]:
    """The tokens of a greedy generation under a constraint, and the logits behind the prompt."""
    session = model.session()
    session.feed(prompt)
    logits = session.logits()
    found = gw.generation.generate_details(model, prompt, PATTERN, max_tokens=120)
    return list(found.tokens), logits
