"""Sessions: any order of advancing and rewinding restores the state; the generation loop."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the model of these tests is written with onnx")

import guideway as gw
from guideway.engines.onnx import OnnxEngine
from guideway.errors import (
    BudgetTooSmallError,
    ContextOverflowError,
    EmptySequenceError,
    EngineError,
    InvalidTokenError,
    RejectedTokenError,
)
from guideway.generation import Model
from guideway.generation.scheduler import Limits, Row, decode
from guideway.sampling import Mirostat, Sampler
from guideway.sessions import Session, feed_all, infer_all
from guideway.testing import ConstantEngine, ConstantModel, ToyEngine, step_engine_contract
from guideway.tokenizers import Tokenizer, Vocabulary
from tests.helpers.onnx_models import Shape, write

TOKENS = [
    b"",
    *(bytes([b]) for b in b"abcdefghijklmnopqrstuvwxyz ,.\n"),
    b"ab",
    b"cat",
    b"the ",
    b"dog",
    b"\xc3",
    b"\xa9",
    b"",
]
VOCABULARY = Vocabulary(TOKENS, eos_ids=[0], special_ids=[0, len(TOKENS) - 1])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = write(tmp_path_factory.mktemp("model"), Shape(vocab=len(TOKENS) + 3, context=300))
    return Model(OnnxEngine(folder), Tokenizer.of(VOCABULARY), name="small")


def matcher(*texts: str) -> gw.Matcher:
    return gw.compile(gw.Choice(texts), VOCABULARY).matcher()


def test_engines_hold_to_the_contract(model: Model) -> None:
    step_engine_contract(model.engine)
    step_engine_contract(ConstantEngine(np.arange(9)), close=True)
    step_engine_contract(ToyEngine(9), tolerance=0, close=True)
    step_engine_contract(ToyEngine(9, supports_rollback=False), tolerance=0)


class Forgetful(ToyEngine):
    def forward(self, rows: Any, caches: Any) -> Any:
        return super().forward(rows, [None] * len(rows))


class Mixed(ToyEngine):
    def forward(self, rows: Any, caches: Any) -> Any:
        logits, made = super().forward(rows, caches)
        return logits[::-1], made


class Unchecked(ToyEngine):
    def forward(self, rows: Any, caches: Any) -> Any:
        return super().forward([[min(max(i, 0), 8) for i in row] or [0] for row in rows], caches)


class Lossy(ToyEngine):
    def restore(self, arrays: Any) -> Any:
        return super().restore({name: np.zeros_like(a) if name == "states" else a for name, a in arrays.items()})


@pytest.mark.parametrize("broken", [Forgetful, Mixed, Unchecked, Lossy])
def test_the_contract_finds_what_is_broken(broken: type[ToyEngine]) -> None:
    with pytest.raises(AssertionError):
        step_engine_contract(broken(9))


def test_feed_infer_and_text(model: Model) -> None:
    session = model.session()
    ids = session.feed("the cat")
    assert session.tokens == ids == model.tokenizer.encode("the cat")
    token = session.infer()
    assert token == int(np.argmax(fed(model, ids).logits()))
    assert session.tokens == [*ids, token]
    assert session.text == model.tokenizer.decode([*ids, token])
    assert session.feed([35]) == [35]
    assert session.text.endswith(model.tokenizer.decode([token]))  # half a character is not shown


def fed(model: Model, ids: list[int], **options: Any) -> Session:
    session = model.session(**options)
    session.feed(ids)
    return session


def test_logits_do_not_depend_on_how_the_tokens_came(model: Model) -> None:
    ids = model.tokenizer.encode("the cat and the dog")
    stepped = model.session()
    for token in ids:
        stepped.feed([token])
        stepped.logits()
    assert np.allclose(stepped.logits(), fed(model, ids).logits(), atol=1e-5)
    assert stepped.logits().shape == (len(VOCABULARY),)  # what the model pads is cut off
    assert stepped.logits() is not stepped.logits()


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_infer_200_rewind_200(model: Model, temperature: float) -> None:
    session = model.session(seed=3, sampler=Sampler(temperature))
    session.feed("the ")
    before = session.logits()
    produced = [session.infer() for _ in range(200)]
    after = session.logits()
    assert session.rewind(200) == produced
    assert np.array_equal(session.logits(), before)
    assert [session.infer() for _ in range(200)] == produced
    assert np.array_equal(session.logits(), after)


def test_any_order_of_forwards_and_back(model: Model) -> None:
    choose = random.Random(1)
    session, mirror = model.session(logits_bytes=400), [5]  # few logits are kept, so that going back runs again
    session.feed([5])
    for _ in range(150):
        act = choose.randrange(4)
        if act == 0:
            new = [choose.randrange(1, len(TOKENS)) for _ in range(choose.randrange(6))]
            mirror += session.feed(new)
        elif act == 1:
            mirror.append(session.infer())
        elif act == 2:
            count = choose.randrange(len(mirror))
            removed = session.rewind(count)
            assert removed == mirror[len(mirror) - count :]
            mirror = mirror[: len(mirror) - count]
        else:
            assert np.allclose(session.logits(), fed(model, mirror).logits(), atol=1e-4)
        assert session.tokens == mirror
        if len(mirror) > 200:
            session.rewind(len(mirror) - 5)
            mirror = mirror[:5]


def test_rewind_to_empty_and_past_it(model: Model) -> None:
    session = model.session()
    with pytest.raises(EmptySequenceError, match="no token was fed"):
        session.logits()
    session.feed("cat")
    session.infer()
    assert len(session.rewind(2)) == 2
    assert (len(session), session.text) == (0, "")
    with pytest.raises(EmptySequenceError):
        session.infer()
    session.feed("cat")
    with pytest.raises(EmptySequenceError, match="cannot rewind 2 tokens: the session has 1"):
        session.rewind(2)
    with pytest.raises(ValueError, match="negative"):
        session.rewind(-1)
    assert session.rewind(0) == []
    assert session.text == "cat"


def test_forks_share_prefix_and_diverge(model: Model) -> None:
    session = fed(model, [1, 2, 3], seed=1, sampler=Sampler(2.0))
    session.logits()
    other, same = session.fork(row=1), session.fork()
    drawn = [[s.infer() for _ in range(30)] for s in (session, other, same)]
    assert drawn[0] == drawn[2] != drawn[1]
    assert np.allclose(other.logits(), fed(model, other.tokens).logits(), atol=1e-5)


def test_top_k(model: Model) -> None:
    session = fed(model, [1, 2, 3])
    found = session.top_k(5)
    assert found[0][0] == int(session.logits().argmax())
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
    assert sum(p for _, p in session.top_k(1000)) == pytest.approx(1)
    with pytest.raises(ValueError, match="at least 1"):
        session.top_k(0)


@pytest.mark.parametrize("options", [{"seed": "x"}, {"row": 0.5}, {"sampler": 0.5}, {"kv_cache": 5}])
def test_what_is_no_option_is_refused_at_once(model: Model, options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(options))):
        model.session(**options)


def test_invalid_feed_arguments_are_refused(model: Model) -> None:
    session = model.session()
    with pytest.raises(TypeError, match="count must be an integer, got '1'"):
        session.rewind("1")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match="text must be a string or token ids, got 5"):
        session.feed(5)  # type: ignore[arg-type]  # on purpose


def test_bad_input_changes_nothing(model: Model) -> None:
    session = fed(model, [1, 2, 3])
    before = session.logits()
    for wrong in ([1, len(TOKENS)], [-1], [1.5]):
        with pytest.raises(InvalidTokenError):
            session.feed(wrong)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(ContextOverflowError, match="303 tokens"):
        session.feed([1] * 300)
    assert session.tokens == [1, 2, 3]
    assert np.array_equal(session.logits(), before)
    session.feed([1] * 297)
    with pytest.raises(ContextOverflowError):
        session.infer()
    narrow = ConstantModel(VOCABULARY, np.zeros(5)).session()
    with pytest.raises(InvalidTokenError, match="the model's 5 tokens"):
        narrow.feed([7])


def test_a_constraint_moves_with_the_session(model: Model) -> None:
    session = fed(model, model.tokenizer.encode("the "))
    session.constrain(matcher("cat", "cab"))
    with pytest.raises(RejectedTokenError):
        session.feed("cad")
    assert session.text == "the "
    session.feed("c")
    assert session.text + model.tokenizer.decode([session.infer()]) in ("the cca", "the ca", "the cab")
    session.rewind(2)
    assert session.matcher is not None
    assert session.matcher.position == 0
    before = session.tokens
    with pytest.raises(ValueError, match=r"the constraint began after token \d+, .* release=True"):
        session.rewind(1)
    with pytest.raises(ValueError, match="release=True"):
        session.set_text("a")
    assert session.tokens == before
    assert session.matcher is not None
    session.rewind(1, release=True)
    assert session.matcher is None
    session.feed("xyz")


def test_a_finished_constraint_ends_the_session(model: Model) -> None:
    session = fed(model, [1])
    session.constrain(matcher("cat"))
    while session.matcher is not None and not session.matcher.is_finished:
        session.infer()
    assert session.text == "acat"
    with pytest.raises(RejectedTokenError):
        session.infer()
    session.constrain(None)
    session.infer()


class Counting:
    """Counts the passes of an engine."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.passes = engine, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def forward(self, rows: Any, caches: Any) -> Any:
        self.passes += 1
        return self.engine.forward(rows, caches)


def test_forced_tokens_run_no_model(model: Model) -> None:
    counting = Counting(model.engine)
    session = Model(counting, model.tokenizer).session()
    session.feed("a")
    session.constrain(matcher("xyz cot", "xyz cut"))
    row = Row(session, Limits(20))
    decode([row])
    assert counting.passes == 1  # at the one choice, over all that was forced before it
    assert row.finish_reason == "stop"
    assert row.forced == len(row.tokens) - 1
    assert session.text in ("axyz cot", "axyz cut")


def test_only_completable_tokens_are_sampled(model: Model) -> None:
    texts = ["ab", "abcdefgh", "abcdefghijklmnop", "abcdefghijklmnopqrstuvwxyz"]
    for budget in range(2, 30):
        session = fed(model, [1], seed=budget, sampler=Sampler(5.0))
        session.constrain(matcher(*texts))
        row = Row(session, Limits(budget))
        decode([row])
        assert row.finish_reason == "stop"
        assert len(row.tokens) <= budget
        assert VOCABULARY.bytes_of(row.tokens).decode() in texts
    session = fed(model, [1])
    session.constrain(matcher(*texts))
    with pytest.raises(BudgetTooSmallError, match="2 tokens, and 1 are allowed"):
        Row(session, Limits(1))
    with pytest.raises(BudgetTooSmallError, match="1 are left"):
        session.infer(tokens_left=1)


def test_rows_of_a_batch_are_as_alone(model: Model) -> None:
    prompts = ["cat", "the dog", "cat", "ab"]
    alone, together = [], []
    for index, prompt in enumerate(prompts):
        session = model.session(seed=4, sampler=Sampler(1.0)).fork(row=index)
        session.feed(prompt)
        row = Row(session, Limits(10 + index))
        decode([row])
        alone.append((row.tokens, row.finish_reason))
        fresh = model.session(seed=4, sampler=Sampler(1.0)).fork(row=index)
        fresh.feed(prompt)
        together.append(Row(fresh, Limits(10 + index)))
    decode(together)
    assert [(row.tokens, row.finish_reason) for row in together] == alone
    assert all(row.timings.prompt > 0 for row in together)


def test_sessions_of_several_models_do_not_mix(model: Model) -> None:
    other = ConstantModel(VOCABULARY)
    with pytest.raises(ValueError, match="same model"):
        feed_all([fed(model, [1]), fed(other, [1])])


def test_closed_models_are_refused() -> None:
    with ConstantModel(VOCABULARY) as model:
        assert model.session().feed("cat") == [32]
    with pytest.raises(EngineError, match="closed"):
        model.session()
    model.close()


def test_constant_models_need_sound_logits() -> None:
    with pytest.raises(EngineError, match="one dimension"):
        ConstantModel(VOCABULARY, np.zeros((2, 2)))


def test_a_session_opens_with_bos_and_never_goes_below() -> None:
    model = gw.load("tiny")
    bos = model.tokenizer.bos_id
    session = model.session()
    assert session.tokens == [bos] == list(model.bos_ids)
    assert session.text == ""
    opening = session.logits()  # what follows nothing
    ids = session.feed("The Winter Jazz Night")
    assert session.tokens == [bos, *ids] == model.tokenizer.encode("The Winter Jazz Night", special=True)
    with pytest.raises(EmptySequenceError, match="after its 1 BOS ids"):
        session.rewind(len(ids) + 1)
    assert session.rewind(len(ids)) == ids
    assert np.array_equal(session.logits(), opening)
    assert session.feed(model.tokenizer.encode("The", special=True)) == model.tokenizer.encode("The")  # BOS is there
    assert session.set_text("") == (1, model.tokenizer.encode("The"), [])
    assert model.session(kv_cache=session.kv_cache()).tokens == [bos]


def test_set_text_runs_only_what_changed() -> None:
    model = gw.load("tiny")
    model.prefixes.budget_bytes = 0  # it would find what was run before
    session = model.session()
    words = "the crab, the scrabble and the trombone-like crabs in Llanfairpwllgwyngyll"
    assert len(session.feed(words)) > len(words.split())  # words of several tokens
    session.logits()
    for text in (
        words + "!",
        words.replace("trombone", "trumpet"),
        words.replace("the ", "the \N{CRAB} "),
        "\N{CRAB}",
        "",
        words,
    ):
        ids = model.tokenizer.encode(text, special=True)
        before, ran = session.tokens, session.counts.run
        same = next(
            (i for i, (a, b) in enumerate(zip(ids, before, strict=False)) if a != b), min(len(ids), len(before))
        )
        change = session.set_text(text)
        assert change == (same, before[same:], ids[same:])
        fresh = fed(model, ids)
        assert (session.tokens, session.text) == (fresh.tokens, text)
        assert np.allclose(session.logits(), fresh.logits(), atol=1e-4)
        assert session.counts.run - ran == max(1, len(ids) - same) or not change.fed


def test_dropped_logits_are_recomputed_and_counted(model: Model) -> None:
    session = model.session(logits_bytes=0)
    session.feed("the cat and the dog")
    session.logits()
    ran = session.counts.run
    assert session.counts.recomputed == 0
    session.rewind(3)
    assert session.counts.run == ran  # lazily
    found = session.logits()
    assert (session.counts.run, session.counts.recomputed) == (ran + 1, 1)
    assert np.allclose(found, fed(model, session.tokens).logits(), atol=1e-5)


def test_recurrent_models_go_back_by_checkpoints() -> None:
    model = Model(ToyEngine(len(TOKENS), supports_rollback=False), Tokenizer.of(VOCABULARY))
    session = model.session(sampler=Sampler(1.0), checkpoint_bytes=64 * 30)
    session.feed([1, 2, 3] * 300)
    before = session.logits()
    produced = [session.infer() for _ in range(200)]
    assert session.rewind(200) == produced
    assert np.array_equal(session.logits(), before)
    assert [session.infer() for _ in range(200)] == produced
    ran = session.counts.run
    session.rewind(10)
    session.feed([7])
    session.logits()
    assert session.counts.run - ran < 30  # near the end the checkpoints are dense
    with pytest.raises(ValueError, match="cannot be truncated"):
        session.kv_cache().cache.truncated(3)


def test_checkpoints_of_a_way_not_taken_are_forgotten() -> None:
    model = Model(ToyEngine(len(TOKENS), supports_rollback=False), Tokenizer.of(VOCABULARY))
    session = model.session()
    for token in [1] * 10:
        session.feed([token])
        session.logits()
    session.rewind(5)
    session.feed([2] * 8)
    session.logits()
    session.rewind(2)  # to 11 tokens; the earlier path had a checkpoint at 10
    assert np.array_equal(session.logits(), fed(model, session.tokens).logits())


def test_learned_prefixes_stand_before_all_tokens(model: Model) -> None:
    arrays = model.engine.export(fed(model, [5, 6, 7]).kv_cache().cache)
    prefix = model.soft_prompt(arrays)
    assert (len(prefix), prefix.positions) == (0, 3)
    session = model.session(kv_cache=prefix)
    with pytest.raises(EmptySequenceError):
        session.logits()
    session.feed([1, 2])
    assert np.allclose(session.logits(), fed(model, [5, 6, 7, 1, 2]).logits(), atol=1e-5)
    again = model.session(kv_cache=session.kv_cache())
    assert again.rewind(2) == [1, 2]
    again.feed([3])
    assert np.allclose(again.logits(), fed(model, [5, 6, 7, 3]).logits(), atol=1e-5)
    assert again.tokens == [3]
    with pytest.raises(ContextOverflowError):
        again.feed([1] * 297)
    with pytest.raises(EngineError, match="must be float32"):
        model.soft_prompt({name: array[..., :1] for name, array in arrays.items()})
    with pytest.raises(ValueError, match="different model"):
        ConstantModel(VOCABULARY).session(kv_cache=prefix)


def test_kv_is_kept_and_given_to_many(model: Model) -> None:
    session = fed(model, [1, 2, 3, 4])
    kv = session.kv_cache()
    assert kv.nbytes >= 4 * 256
    session.feed([9])
    session.logits()
    for ids in ([5], [6, 7]):
        other = model.session(kv_cache=kv)
        other.feed(ids)
        assert np.allclose(other.logits(), fed(model, [1, 2, 3, 4, *ids]).logits(), atol=1e-5)
        assert other.counts.run == len(ids)


def test_many_sessions_are_one_step(model: Model) -> None:
    counting = Counting(model.engine)
    many = Model(counting, model.tokenizer)
    sessions = [many.session(row=i, sampler=Sampler(1.0)) for i in range(4)]
    for session in sessions:
        session.feed([1, 2, 3])
    drawn = infer_all(sessions)
    assert counting.passes == 1
    alone = [many.session(row=i, sampler=Sampler(1.0)) for i in range(4)]
    for session in alone:
        session.feed([1, 2, 3])
    assert drawn == [session.infer() for session in alone]


def test_rewind_restores_sampler_state(tmp_path: Path) -> None:
    sampler = Sampler(1.0, mirostat=Mirostat(2.0, 0.5), frequency_penalty=0.3)
    model = Model(ToyEngine(len(TOKENS)), Tokenizer.of(VOCABULARY))
    session = model.session(sampler=sampler)
    session.feed([1, 2])
    first = [session.infer() for _ in range(30)]
    assert session.rewind(20) == first[10:]
    other = session.fork()
    session.save(tmp_path / "saved")
    again = model.load_session(tmp_path / "saved")
    for one in (session, other, again):
        assert [one.infer() for _ in range(20)] == first[10:]
    session.rewind(30)
    session.feed(first[:10])  # fed, not sampled: nothing is cached
    assert [session.infer() for _ in range(20)] != first[10:]
    session.sampler = Sampler(order=(lambda tokens, logits: logits,))
    with pytest.raises(gw.errors.SnapshotError, match="is a function"):
        session.save(tmp_path / "never")
