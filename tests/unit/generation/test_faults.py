"""Errors during generation have a type, reach only their caller, and leave the engine usable."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import guideway as gw
from guideway.generation import Model, complete
from guideway.sampling import ORDER
from guideway.testing import ConstantModel, ToyEngine
from guideway.tokenizers import Tokenizer, Vocabulary
from tests.helpers.toy_models import toy_model

VOCABULARY = Vocabulary([b"", b"a", b"b", b" ", b"x", b""], eos_ids=[0], special_ids=[0, 5])


@pytest.fixture(scope="module")
def model() -> Model:
    return toy_model(VOCABULARY, 1)


def test_empty_prompt_fails_only_its_caller(model: Model) -> None:
    async def both() -> list[Any]:
        calls = [gw.agenerate(model, "ab", max_tokens=4), gw.agenerate(model, "")]
        return await asyncio.gather(*calls, return_exceptions=True)

    good, bad = asyncio.run(both())
    assert good == gw.generate(model, "ab", max_tokens=4)
    assert isinstance(bad, gw.errors.EmptySequenceError)
    with pytest.raises(gw.errors.EmptySequenceError, match="the prompt is empty"):
        gw.generate(model, ["ab", ""])


def test_one_thread_runs_the_engine() -> None:
    class Watched(ToyEngine):
        inside, overlaps = 0, 0

        def forward(self, rows: Any, caches: Any) -> Any:
            self.inside += 1
            self.overlaps += self.inside > 1
            threading.Event().wait(0.0005)
            made = super().forward(rows, caches)
            self.inside -= 1
            return made

    engine = Watched(len(VOCABULARY), seed=1)
    model = Model(engine, Tokenizer.of(VOCABULARY))

    def one(number: int) -> None:
        found = complete(model, "ab", max_tokens=4, return_kv_cache=True, seed=number)
        gw.resume(model, found.state, max_tokens=2, return_kv_cache=True)
        gw.search.beam_search(model, "ab", gw.Regex("[ab]{2}"), width=2, return_kv_cache=True, max_tokens=5)
        gw.search.smc(model, "ab", gw.Regex("[ab]{2}"), particles=2, max_tokens=6, return_kv_cache=True)
        stream = gw.stream(model, "ab", max_tokens=4, return_kv_cache=True)
        next(stream, None)
        _ = stream.states  # with their keys and values, which may run

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(one, range(6)))
    assert engine.overlaps == 0


def test_a_special_token_is_not_healed_away(model: Model) -> None:
    session = model.session()
    session.feed([1, 2, 5])
    plain = gw.resume(model, gw.types.GenerationState((1, 2, 5), ()), max_tokens=3)

    class Ending(Tokenizer):
        __slots__ = ()

        def encode(self, text: str, *, special: bool = False) -> list[int]:
            return [*super().encode(text, special=special), *([5] if text else [])]

    ending = Model(model.engine, Ending(model.tokenizer._backend))
    found = complete(ending, "ab", token_healing=True, max_tokens=3)
    assert found.state.prompt == (1, 2, 5)
    assert found.tokens == plain.tokens


def test_resumed_states_are_validated(model: Model) -> None:
    state = complete(model, "ab", max_tokens=2).state
    cut = gw.resume(model, state.edited(model, "axb xa xb"), stop="x")
    assert (cut.text, cut.stopped_by) == ("a", "x")
    with pytest.raises(gw.errors.UnsatisfiableError, match="contains a banned string"):
        gw.resume(model, state.edited(model, "a x b"), bad_words="x")
    with pytest.raises(gw.errors.InvalidTextError, match="cannot be encoded"):
        state.edited(model, "\ud800")


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_logits_that_are_no_numbers_are_refused_by_all(wrong: float) -> None:
    model = ConstantModel(VOCABULARY, [0.0, wrong, 0.0, 0.0, 0.0, 0.0])
    source = gw.Regex("[ab]{2}")
    for call in (
        lambda: gw.search.beam_search(model, "a", source),
        lambda: gw.score(model, "a", ["a", "b"]),
        lambda: gw.search.smc(model, "a", source),
        lambda: gw.search.smc(model, "a", source, proposal="rejection"),
    ):
        with pytest.raises(gw.errors.InvalidLogitsError, match="the logit of token 1"):
            call()


def test_smc_without_surviving_particles_raises() -> None:
    model = ConstantModel(VOCABULARY, [0.0, -math.inf, 0.0, 0.0, 0.0, 0.0])
    for proposal in ("mask", "rejection"):
        with pytest.raises(gw.errors.BudgetTooSmallError, match="no particle completed its text"):
            gw.search.smc(model, "b", gw.Regex("a{1,3}"), proposal=proposal, max_tokens=9)  # type: ignore[arg-type]  # of two
    plain = ConstantModel(VOCABULARY)
    for odd in (math.nan, math.inf):
        with pytest.raises(ValueError, match="a potential must be"):
            gw.search.smc(plain, "b", gw.Regex("a"), potential=lambda text, ended, odd=odd: odd)
    assert gw.search.smc(plain, "b", gw.Regex("a"), temperature=1e-40, particles=3).generations


def test_scores_refuse_what_they_cannot_tell_apart(model: Model) -> None:
    class Lower(Tokenizer):
        __slots__ = ()

        def encode(self, text: str, *, special: bool = False) -> list[int]:
            return super().encode(text.lower().replace("y", ""), special=special)

    lower = Model(model.engine, Lower(model.tokenizer._backend))
    with pytest.raises(ValueError, match="option 'y' has no tokens"):
        gw.score(lower, "a", ["y", "b"])
    with pytest.raises(ValueError, match="has the same tokens as another"):
        gw.score(lower, "a", ["B", "b"], end=True)
    for size in (0, -1):
        with pytest.raises(ValueError, match="batch_size"):
            gw.score(model, "a", ["a", "b"], batch_size=size)


def test_a_stage_of_ones_own_cannot_change_the_session(model: Model) -> None:
    seen: list[Sequence[int]] = []

    def grabbing(tokens: Sequence[int], logits: NDArray[np.float64]) -> NDArray[np.float64]:
        seen.append(tokens)
        return logits

    found = complete(model, "ab", sampler=gw.Sampler(order=(grabbing, *ORDER)), max_tokens=3)
    assert all(isinstance(tokens, tuple) for tokens in seen)
    assert found.state.prompt == (1, 2)


def test_values_of_the_wrong_kind_are_refused_at_once(model: Model) -> None:
    for name in ("stop", "bad_words"):
        with pytest.raises(ValueError, match=f"{name} must be"):
            gw.generate(model, "a", **{name: "\ud800"})  # type: ignore[call-overload]  # one option at a time
    with pytest.raises(TypeError, match=r"sampler must be a guideway\.Sampler"):
        gw.generate(model, "a", sampler="x")  # type: ignore[call-overload]  # the mistake under test
    assert gw.generate(model, "a", sampler=gw.Sampler(1.0, top_k=2.0), max_tokens=2) is not None  # type: ignore[arg-type]  # taken as 2
    with pytest.raises(ValueError, match="dry: allowed_length"):
        gw.sampling.Dry(window=2.5)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(ValueError, match="logit_bias"):
        gw.Sampler(logit_bias={10**30: 5.0})
    with pytest.raises(TypeError):
        gw.Sampler(logit_bias={1.7: 5.0})  # type: ignore[dict-item]  # the mistake under test
