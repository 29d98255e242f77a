"""Several tokens per engine call equal single steps, also after errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.errors import EngineError, InvalidLogitsError, KVCacheFullError
from guideway.generation import Model, complete, multi_step as strides
from guideway.generation.plan import Job
from guideway.generation.scheduler import Row, step
from guideway.sampling import Dry, Mirostat, Sampler
from guideway.sessions import Session
from guideway.sessions.batch_step import EQUAL_TOKENS
from guideway.testing import FailingEngine, ToyEngine, tiny_model
from guideway.tokenizers import Tokenizer, Vocabulary
from tests.helpers.engines import model_of
from tests.helpers.toy_models import toy_model

VOCABULARY = Vocabulary([b"", b"a", b"b", b" ", b"x", b"\xc3", b"\xa4", b""], eos_ids=[0], special_ids=[0, 7])
SEED = 5  # some rows end early, some continue
PROMPTS = ["ab", "a", "b ax", "xxxx ", "ab", "ba"]
SAMPLERS = [
    Sampler(),
    Sampler(1.0),
    Sampler(0.8, top_k=4, repetition_penalty=1.3, penalty_window=5),
    Sampler(1.0, mirostat=Mirostat(2.0)),
    Sampler(1.0, dry=Dry(0.5)),
    Sampler(1.0, xtc_probability=0.5),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"min_tokens": 9},
    {"stop_token_ids": [4]},
    {"max_tokens": 1},
    {"return_kv_cache": True},
]


class Passes(ToyEngine):
    """Counts its calls; `ill`: at these, the logits of the last row are NaN."""

    calls = 0
    ill = range(0)

    def forward(self, rows: Any, caches: Any) -> Any:
        self.calls += 1
        logits, made = super().forward(rows, caches)
        if self.calls in self.ill:
            logits = np.array(logits)
            logits[-1] = math.nan
        return logits, made


def toy(**named: Any) -> Model:
    return toy_model(VOCABULARY, SEED, Passes, **named)


def step_by_step(model: Model, prompts: Any, output: Any = None, **options: Any) -> Any:
    """The same without strides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Row, "strides", False)
        return complete(model, prompts, output, **options)


def same(one: Any, other: Any) -> None:
    assert (one.tokens, one.text, one.finish_reason) == (other.tokens, other.text, other.finish_reason)
    assert (one.prompt_tokens, one.forced, one.state.prompt) == (other.prompt_tokens, other.forced, other.state.prompt)
    assert (one.state.tokens, one.state.memory) == (other.state.tokens, other.state.memory)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_multi_step_calls_equal_single_steps(sampler: Sampler) -> None:
    for options in OPTIONS:
        model = toy()
        given = {"max_tokens": 40, "sampler": sampler, "batch_size": 4, "seed": 5, **options}
        whole = complete(model, PROMPTS, **given)
        for one, other in zip(whole, step_by_step(toy(), PROMPTS, **given), strict=True):
            same(one, other)
        again = [gw.resume(model, one.state, max_tokens=7) for one in whole]
        assert [one.tokens[: len(old.state.tokens)] for one, old in zip(again, whole, strict=True)] == [
            one.state.tokens for one in whole
        ]
    few = toy()
    assert isinstance(few.engine, Passes)
    made = complete(few, "ab", max_tokens=30, sampler=sampler, stop_token_ids=[])
    assert few.engine.calls == len(made.tokens)  # no call of the model follows the last token
    assert 0 < made.timings.prompt < made.timings.prompt + made.timings.model


def test_multi_step_calls_of_constrained_rows_equal_single_steps() -> None:
    """Rows with forced tokens, stop strings and healed prompts, and rows without these, in one batch."""
    forms = [
        gw.Regex(r"(ab|x{3}b) [ab]{2,6}xxxxb"),
        gw.Regex(r"(a|b|\\xc3\\xa4| x)*"),
        gw.Choice(["abba", "xx x", "a"]),
    ]
    for seed, temperature in product(range(6), (0.0, 1.5)):
        prompts: list[Any] = [gw.GenerationRequest(text, form) for text, form in zip(PROMPTS, forms, strict=False)]
        prompts += [gw.GenerationRequest("ab", stop="ax"), gw.GenerationRequest("b ax", token_healing=True), "xx"]
        given: dict[str, Any] = {"max_tokens": 24, "temperature": temperature, "seed": seed}
        for one, other in zip(complete(toy(), prompts, **given), step_by_step(toy(), prompts, **given), strict=True):
            same(one, other)
            assert one.value == other.value
            assert one.stopped_by == other.stopped_by


def test_a_stride_that_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row rolls back tokens that have run if a forced path becomes longer than expected."""
    asked: set[tuple[int, int]] = set()
    legal = Session.only_legal

    def refusing(self: Session, tokens_left: int | None = None, **given: Any) -> int | None:
        if (place := (self.row, len(self))) not in asked and (len(self) + self.row) % 5 == 0 and len(self) > 8:
            asked.add(place)
            raise gw.errors.BudgetTooSmallError("longer")
        return legal(self, tokens_left, **given)

    monkeypatch.setattr(Session, "only_legal", refusing)
    form, backs = gw.Regex(r"([ab]{2}x? ){7,}"), 0
    for seed in range(10):
        given: dict[str, Any] = {"max_tokens": 30, "seed": seed, "temperature": 2.0, "return_kv_cache": True}
        found, models = [], [toy(), toy()]
        for model, way in zip(models, (complete, step_by_step), strict=True):
            asked.clear()
            found.append(way(model, PROMPTS, form, **given))
            backs += len(asked)
        for one, other in zip(*found, strict=True):
            same(one, other)
            asked.clear()
            again = gw.resume(models[0], one.state, max_tokens=9)
            asked.clear()
            same(again, gw.resume(models[1], one.state, max_tokens=9))
    assert backs > 100


def test_a_stride_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [one.tokens for one in complete(toy(), PROMPTS, max_tokens=20)]
    held: list[int] = []
    model = toy()
    engine, run = model.engine, model.run
    assert isinstance(engine, Passes)

    def counted(*given: Any) -> Any:
        held.append(engine.calls)
        return run(*given)

    monkeypatch.setattr(strides, "STRIDE_SECONDS", 0.0)
    monkeypatch.setattr(model, "run", counted)
    assert [one.tokens for one in complete(model, PROMPTS, max_tokens=20)] == expected
    assert max(after - before for before, after in pairwise(held)) == 1  # one pass, and the model is free for others


@pytest.mark.parametrize("late", [False, True])
def test_a_pass_that_fails_fails_or_is_made_again(late: bool) -> None:
    expected = complete(toy(), PROMPTS[:3], max_tokens=12)
    raised = 0
    for call in range(1, 14):
        engine = FailingEngine(ToyEngine(len(VOCABULARY), seed=SEED), fail_at=call, late=late)
        model = Model(engine, Tokenizer.of(VOCABULARY))
        try:
            found = complete(model, PROMPTS[:3], max_tokens=12)
        except EngineError:
            raised += 1
            found = complete(model, PROMPTS[:3], max_tokens=12)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    assert 1 <= raised <= 3  # only a failure at the start of a stride raises; others repeat the pass


def test_repeated_failures_are_reported() -> None:
    class Broken(ToyEngine):
        calls = 0

        def forward(self, rows: Any, caches: Any) -> Any:
            self.calls += 1
            if self.calls > 4:
                raise EngineError("broken")
            return super().forward(rows, caches)

    model = Model(Broken(len(VOCABULARY), seed=SEED), Tokenizer.of(VOCABULARY))
    with pytest.raises(EngineError, match="broken"):
        gw.generate(model, "ab", max_tokens=30, stop_token_ids=[])


def test_a_draw_that_fails_ends_its_row_alone() -> None:
    prompts = [PROMPTS[0], PROMPTS[1], PROMPTS[4]]
    expected = complete(toy(), prompts, max_tokens=12)
    for call in range(1, 12):
        model = toy()
        assert isinstance(model.engine, Passes)
        model.engine.ill = range(call, call + 1)
        found = complete(model, prompts, max_tokens=12, return_exceptions=True)
        assert isinstance(found[2], InvalidLogitsError)
        assert "NaN" in str(found[2])
        for one, other in zip(found[:2], expected[:2], strict=True):
            same(one, other)


@pytest.mark.parametrize("change", [np.asfortranarray, lambda logits: logits.astype(np.float64)])
def test_logits_of_another_layout(change: Callable[[Any], Any]) -> None:
    class Other(ToyEngine):
        def forward(self, rows: Any, caches: Any) -> Any:
            logits, made = super().forward(rows, caches)
            return change(logits), made

    model = Model(Other(len(VOCABULARY), seed=SEED), Tokenizer.of(VOCABULARY))
    assert gw.generate(model, PROMPTS, max_tokens=9) == gw.generate(toy(), PROMPTS, max_tokens=9)


@pytest.mark.engine("llama_cpp", "gguf")
def test_llama_cpp_lends_its_logits(tmp_path: Path) -> None:
    from guideway.engines.llama_cpp import LlamaCppEngine
    from tests.helpers.gguf_models import write_gguf

    folder = tiny_model("llama", tmp_path, context=64)
    file = write_gguf(folder, tmp_path / "model.gguf")
    prompts = ["the crab", "scrabble", "of crabs and the"]
    for sampler in SAMPLERS[:3]:
        with model_of(LlamaCppEngine(file), file) as one, model_of(LlamaCppEngine(file), file) as other:
            given = {"max_tokens": 25, "sampler": sampler, "seed": 2}
            for found, stepped in zip(
                complete(one, prompts, **given), step_by_step(other, prompts, **given), strict=True
            ):
                same(found, stepped)
    with model_of(LlamaCppEngine(file, kv_cache_tokens=100), file) as model:
        texts = [f"the crab and the scrabble of crabs {n}" for n in range(12)]
        with pytest.raises(KVCacheFullError, match="kv_cache_tokens="):
            gw.generate(model, texts, max_tokens=30, batch_size=12)  # more than a batch of these cells takes
        with pytest.raises(KVCacheFullError, match="kv_cache_tokens="):
            gw.generate(model, texts[:6], max_tokens=40)  # in a later pass
        assert gw.generate(model, "the crab", max_tokens=20) == gw.generate(model, "the crab", max_tokens=20)


class Splitting(Passes):
    """An engine for which rows with equal numbers of new tokens are cheapest. Records these numbers."""

    splits_rows = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.counts: list[list[int]] = []

    def forward(self, rows: Any, caches: Any) -> Any:
        self.counts.append([len(row) for row in rows])
        return super().forward(rows, caches)


def test_rows_run_equal_numbers_of_forced_tokens() -> None:
    outputs = [gw.Regex(r"([ab]xxbx){3}"), gw.Regex(r"([ab] x){4}"), gw.Regex(r"[ab]{4}xxx[ab]{4}")]
    requests = [
        gw.GenerationRequest(prompt, output, sampler=Sampler(1.0), seed=seed)
        for seed, (prompt, output) in enumerate(product([*PROMPTS, "ab " * 9], outputs))
    ]
    model = toy_model(VOCABULARY, SEED, Splitting)
    expected = step_by_step(toy_model(VOCABULARY, SEED), requests)
    found = complete(model, requests, batch_size=4)
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    assert [one.forced for one in found] == [one.forced for one in expected]
    assert isinstance(model.engine, Splitting)
    counts = [row for row in model.engine.counts if len(row) > 1]
    few = [{count for count in row if count <= EQUAL_TOKENS} for row in counts]
    assert all(len(row) == 1 for row in few)
    assert any(max(row) > EQUAL_TOKENS for row in counts)
    assert any(1 < max(row) <= EQUAL_TOKENS for row in counts)


@pytest.mark.parametrize("streams", [True, False])
def test_rounds_of_the_shared_loop_run_equal_numbers_of_forced_tokens(streams: bool) -> None:
    outputs = [gw.Regex(r"([ab]xxbx){3}"), gw.Regex(r"([ab] x){4}"), gw.Regex(r"[ab]{4}xxx[ab]{4}")]
    requests = [
        gw.GenerationRequest(prompt, output, sampler=Sampler(1.0), seed=seed)
        for seed, (prompt, output) in enumerate(product(PROMPTS, outputs))
    ]
    model = toy_model(VOCABULARY, SEED, Splitting)
    expected = step_by_step(toy_model(VOCABULARY, SEED), requests)
    job = Job(model, requests, None, None, {})
    assert isinstance(model.engine, Splitting)
    waiting, active, pending = job.rows(), list[Row](), 0
    while active := [
        *(row for row in active if not row.is_over),
        *islice(waiting, 4 - sum(not r.is_over for r in active)),
    ]:
        for row in active:
            row.streams = streams
        is_equal = (all if streams else any)(row.has_drawn for row in active)
        model.engine.counts = []
        step(active)
        pending += sum(row.awaits_logits for row in active)
        few = {count for row in model.engine.counts for count in row if count <= EQUAL_TOKENS}
        assert len(few) < 2 or not is_equal
        job.finish_all(active)
    assert [one.tokens for one in job.shaped()] == [one.tokens for one in expected]
    assert [one.forced for one in job.shaped()] == [one.forced for one in expected]
    assert pending
