"""Generation after a KV cache or a soft prompt, and with external keys and values per step."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.engines.base import Arrays
from guideway.engines.kv_cache import RowCache
from guideway.errors import EngineError
from guideway.generation import Model
from guideway.sessions import KVCache, Session
from guideway.testing import ToyEngine

CONTEXT = "The crab was long and the lobster was longer. "
REST = "I feel "
PATTERN = gw.Regex("[a-z ]{5,20}")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with gw.load("tiny") as made:
        yield made


def ids(model: Model, text: str) -> list[int]:
    return model.tokenizer.encode(text)


def cache_of(model: Model, text: str) -> KVCache:
    session = model.session()
    session.feed(ids(model, text))
    return session.kv_cache()


def soft(model: Model, tokens: list[int]) -> Arrays:
    _, (cache,) = model.engine.forward([tokens], [None])
    return model.engine.export(cache)


CALLS: dict[str, Callable[..., Any]] = {
    "generate": lambda model, prompt, **more: gw.generate(model, prompt, PATTERN, **more),
    "free text": lambda model, prompt, **more: gw.generate(model, prompt, max_tokens=12, **more),
    "several": lambda model, prompt, **more: gw.generate(model, prompt, PATTERN, n=3, seed=4, **more),
    "stream": lambda model, prompt, **more: "".join(gw.stream(model, prompt, PATTERN, **more)),
    "request": lambda model, prompt, **more: gw.generate(
        model, [gw.GenerationRequest(prompt, PATTERN, **more), gw.GenerationRequest("x", PATTERN)]
    )[0],
    "beam_search": lambda model, prompt, **more: [
        one.text for one in gw.search.beam_search(model, prompt, gw.Regex("[a-z]{2,3}"), width=2, **more)
    ],
    "smc": lambda model, prompt, **more: gw.search.smc(
        model, prompt, gw.Regex("[a-z]{2,3}"), particles=4, max_tokens=9, **more
    ).probabilities(),
    "resume": lambda model, prompt, **more: (
        gw.resume(
            model,
            gw.complete(model, prompt, gw.Regex("[a-z ]{0,80}x"), max_tokens=9, allow_truncation=True, **more).state,
            **more,
        ).text
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_prompt_after_a_cache_is_the_whole_prompt(model: Model, call: str) -> None:
    expected = CALLS[call](model, [*model.bos_ids, *ids(model, CONTEXT), *ids(model, REST)])
    before = model.engine.counts.tokens
    model.prefixes.clear()
    kv_cache = cache_of(model, CONTEXT)
    found = CALLS[call](model, ids(model, REST), kv_cache=kv_cache)
    assert found == (pytest.approx(expected, rel=1e-3) if call == "smc" else expected)
    assert model.engine.counts.tokens > before


@pytest.mark.parametrize("call", [name for name in CALLS if name != "smc"])
def test_a_soft_prompt_is_used(model: Model, call: str) -> None:
    arrays = soft(model, [9, 10, 11, 12])
    prompt = model.soft_prompt(arrays)
    found = CALLS[call](model, REST, kv_cache=prompt)
    again = CALLS[call](model, REST, kv_cache=prompt, kv_hook=lambda session: arrays)
    unchanged = CALLS[call](model, REST, kv_cache=prompt, kv_hook=lambda session: None)
    assert found == again == unchanged
    other = model.soft_prompt({name: -4 * array for name, array in arrays.items()})
    assert CALLS["several"](model, REST, kv_cache=other) != CALLS["several"](model, REST, kv_cache=prompt)


def test_external_pairs_of_each_step(model: Model) -> None:
    """The logits of each step are those of the model with the pairs of this step before the tokens."""
    engine, start = model.engine, soft(model, [9, 10, 11])
    seen: list[int] = []

    def pairs(step: int) -> Arrays:
        return {name: array * np.float32(1 + step) for name, array in start.items()}

    def retrieve(session: Session) -> Arrays | None:
        seen.append(len(session))
        return pairs(len(seen)) if len(seen) % 3 else None

    session = model.session(kv_cache=model.soft_prompt(start), kv_hook=retrieve)
    session.feed(REST)
    cache, now = None, start
    for step in range(1, 9):
        found = session.logits()
        assert len(seen) == step
        now = pairs(step) if step % 3 else now
        own = {} if cache is None else engine.export(cache)
        joined = {name: np.concatenate([now[name], own[name][:, :, 3:]], 2) if own else now[name] for name in now}
        new = session.tokens if cache is None else session.tokens[-1:]
        logits, (cache,) = engine.forward([new], [engine.restore(joined)])
        assert np.abs(logits[0][: len(found)] - found).max() < 1e-4
        session.infer()
    before = session.logits()
    calls = len(seen)
    assert np.array_equal(session.fork().logits(), before)
    assert len(seen) == calls


def test_rows_without_a_hook_are_unchanged(model: Model) -> None:
    start = soft(model, [9, 10, 11])
    alone = gw.generate(model, REST, PATTERN)
    hooked = gw.GenerationRequest(REST, PATTERN, kv_cache=model.soft_prompt(start), kv_hook=lambda session: start)
    assert gw.generate(model, [REST, hooked, REST], PATTERN)[::2] == [alone, alone]


def test_a_hook_that_fails_ends_its_row_only(model: Model) -> None:
    def broken(session: Session) -> Arrays:
        raise OSError("the index is gone")

    prompt = model.soft_prompt(soft(model, [9, 10, 11]))
    requests = [gw.GenerationRequest(REST, PATTERN, kv_cache=prompt, kv_hook=broken), REST]
    failed, text = gw.generate(model, requests, PATTERN, return_exceptions=True)
    assert isinstance(failed, OSError)
    assert text == gw.generate(model, REST, PATTERN)


def test_returned_errors_keep_no_caches(model: Model) -> None:
    def broken(session: Session) -> Arrays:
        raise OSError("the index is gone")

    def caches() -> int:
        gc.collect()
        return sum(isinstance(one, RowCache) for one in gc.get_objects())

    prompt = model.soft_prompt(soft(model, [9, 10, 11]))
    requests = [REST, gw.GenerationRequest(REST, PATTERN, kv_cache=prompt, kv_hook=broken), "I see "]
    model.prefixes.clear()
    before = caches()
    found = gw.generate(model, requests, PATTERN, return_exceptions=True)
    model.prefixes.clear()
    assert isinstance(found[1], OSError)
    assert found[1].__traceback__ is not None  # it refers to the rows of the batch
    assert caches() == before


def test_wrong_caches_and_hooks_are_clear_errors(model: Model) -> None:
    prompt = model.soft_prompt(soft(model, [9, 10, 11]))
    with pytest.raises(ValueError, match="different model"):
        gw.generate(Model(ToyEngine(len(model.vocabulary)), model.tokenizer), REST, kv_cache=prompt)
    with pytest.raises(TypeError, match="kv_cache must be a KVCache"):
        gw.generate(model, REST, kv_cache=3)  # type: ignore[arg-type]  # the wrong type is the test
    with pytest.raises(ValueError, match="kv_hook needs kv_cache="):
        gw.generate(model, REST, kv_hook=lambda session: None)
    with pytest.raises(ValueError, match="kv_hook needs kv_cache="):
        gw.generate(model, REST, kv_cache=cache_of(model, CONTEXT), kv_hook=lambda session: None)
    with pytest.raises(TypeError, match="kv_hook must be a function"):
        gw.generate(model, REST, kv_cache=prompt, kv_hook=3)  # type: ignore[arg-type]  # the wrong type is the test
    with pytest.raises(ValueError, match="3 positions of the soft prompt, got 2"):
        gw.generate(model, REST, kv_cache=prompt, kv_hook=lambda session: soft(model, [9, 10]))
    with pytest.raises(EngineError):
        gw.generate(model, REST, kv_cache=prompt, kv_hook=lambda session: {"other": np.zeros(3)})


def test_the_context_counts_the_soft_prompt(model: Model) -> None:
    with gw.load("tiny", context_size=40) as small:
        prompt = small.soft_prompt(soft(small, [9] * 20))
        found = gw.complete(small, REST, max_tokens=100, kv_cache=prompt, stop_token_ids=())
        assert found.prompt_tokens + len(found.tokens) <= 20
        session = small.session(kv_cache=prompt)
        assert session.room == 20 - len(session)
