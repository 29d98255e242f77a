"""Editing and resuming a `GenerationState`, token healing, log-probabilities, `stream_values`."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, Field

import guideway as gw
from guideway.generation import Generation, Model, PartialValue, astream_values, complete
from guideway.testing import ConstantModel
from guideway.tokenizers import Vocabulary
from tests.helpers.toy_models import toy_model

BYTES = [
    b"",
    *(bytes([n]) for n in range(256)),
    b"the",
    b" the",
    b'": ',
    b'{"a"',
    b"\xe2\x82",
    b"ther",
    b"there",
    b"the e",
]
VOCABULARY = Vocabulary(BYTES, eos_ids=[0], special_ids=[0])
SCHEMA = gw.JsonSchema({"type": "object", "properties": {"a": {"type": "string", "maxLength": 20}}, "required": ["a"]})


@pytest.fixture(params=[True, False], ids=["supports_rollback", "recurrent"])
def model(request: pytest.FixtureRequest) -> Model:
    return toy_model(VOCABULARY, 5, supports_rollback=request.param)


HOT: dict[str, Any] = {"temperature": 1.2, "seed": 8}


@pytest.mark.parametrize("output", [None, SCHEMA, gw.Regex("[a-z]{30}")], ids=["free", "schema", "regex"])
@pytest.mark.parametrize("return_kv_cache", [True, False])
@pytest.mark.parametrize("logprobs", [None, 2])
def test_truncated_generation_resumes_identically(
    model: Model, output: Any, return_kv_cache: bool, logprobs: int | None
) -> None:
    options: dict[str, Any] = {**HOT, "logprobs": logprobs} | ({} if output is None else {"allow_truncation": True})
    whole = complete(model, "the ", output, max_tokens=45, **options)
    cut = complete(model, "the ", output, max_tokens=7, return_kv_cache=return_kv_cache, **options)
    assert cut.tokens == whole.tokens[:7]
    state = cut.state
    assert (state.kv_cache is not None) == return_kv_cache
    on = gw.resume(model, state, max_tokens=38, **options)
    assert (on.tokens, on.text, on.value, on.finish_reason) == (
        whole.tokens,
        whole.text,
        whole.value,
        whole.finish_reason,
    )
    assert len(on.steps) == (0 if logprobs is None else len(on.tokens))
    for here, there in zip(on.steps, whole.steps, strict=True):
        assert here[:5] == pytest.approx(there[:5], abs=1e-6)


def test_a_state_is_taken_apart_by_a_function(model: Model) -> None:
    def louder(state: gw.types.GenerationState) -> gw.types.GenerationState:
        """Returns the state with every second token and another seed, and without keys and values."""
        return replace(state, tokens=state.tokens[::2], seed=99, steps=(), kv_cache=None)

    first = complete(model, "the ", gw.Regex("[a-z ]*"), max_tokens=12, return_kv_cache=True, **HOT)
    changed = louder(first.state)
    on = gw.resume(model, changed, max_tokens=9, temperature=1.2)
    assert on.tokens[: len(changed.tokens)] == changed.tokens
    assert on.value == on.text
    assert set(on.text) <= set("abcdefghijklmnopqrstuvwxyz ")
    assert on == gw.resume(model, changed, max_tokens=9, temperature=1.2) or on.tokens  # timings differ
    stale = replace(changed, kv_cache=first.state.kv_cache)  # keys and values of other tokens: what agrees is used
    assert gw.resume(model, stale, max_tokens=9, temperature=1.2).tokens == on.tokens


def test_edited_output_continues_under_its_constraint(model: Model) -> None:
    cut = complete(model, "the ", SCHEMA, max_tokens=9, allow_truncation=True, **HOT)
    edited = cut.state.edited(model, '{"a": "the €')
    assert edited.text(model) == '{"a": "the €'
    on = gw.resume(model, edited, max_tokens=30)
    assert on.value["a"].startswith("the €")
    assert json.loads(on.text) == on.value
    same = cut.state.edited(model, cut.state.text(model))
    assert same.tokens[: len(cut.tokens) - 4] == cut.tokens[: len(cut.tokens) - 4]  # what half a character leaves
    with pytest.raises(gw.errors.RejectedTokenError):
        gw.resume(model, cut.state.edited(model, '{"b'), max_tokens=30)
    with pytest.raises(gw.errors.BudgetTooSmallError):
        gw.resume(model, edited, max_tokens=1)
    finished = complete(model, "the ", gw.Regex("ab"))
    assert gw.resume(model, finished.state).value == "ab"
    shorter = finished.state.edited(model, "")
    assert gw.resume(model, shorter).value == "ab"


def test_a_stream_that_is_left_can_be_resumed(model: Model) -> None:
    whole = gw.generate(model, "the ", gw.Regex("[a-z]{20}"), **HOT)
    stream = gw.stream(model, "the ", gw.Regex("[a-z]{20}"), **HOT)
    begun = next(stream) + next(stream)
    (state,) = stream.states
    assert state.text(model).startswith(begun)
    stream.close()
    assert gw.resume(model, state, temperature=1.2).value == whole


def test_mirostat_and_a_healed_prompt_survive_a_state(model: Model) -> None:
    sampler = gw.Sampler(1.0, mirostat=gw.sampling.Mirostat(3.0, 0.5))
    for output in (None, gw.Regex("[a-z]{40}")):
        options: dict[str, Any] = {"sampler": sampler, "token_healing": True} | (
            {} if output is None else {"allow_truncation": True}
        )
        whole = complete(model, "in:the", output, max_tokens=30, seed=3, **options)
        for size in (1, 2, 9):
            cut = complete(model, "in:the", output, max_tokens=size, seed=3, **options)
            on = gw.resume(model, cut.state, max_tokens=30 - size, **options)
            assert (on.tokens, on.text) == (whole.tokens, whole.text)


# -- healing -----------------------------------------------------------------------------------------------------------


def test_token_healing_uses_longer_tokens() -> None:
    logits = np.zeros(len(BYTES))
    logits[BYTES.index(b"there")] = 9.0
    logits[BYTES.index(b"!")] = 8.0
    model = ConstantModel(VOCABULARY, logits)
    plain = complete(model, "in:the", max_tokens=2)
    assert plain.text == "therethere"
    healed = complete(model, "in:the", max_tokens=2, token_healing=True)
    assert healed.text == "rethere"  # "the" was taken back, and "there" written
    assert healed.prompt_tokens == plain.prompt_tokens - 1
    only = complete(model, "in:the", gw.Regex("r?e!"), token_healing=True)
    assert only.value == only.text == "re!"
    assert BYTES.index(b"there") in only.tokens
    stream = "".join(gw.stream(model, "in:the", gw.Regex("r?e!"), token_healing=True))
    assert stream == "re!"
    assert gw.generate(model, "in:the", int, token_healing=True) is not None
    assert complete(model, "the", token_healing=True, max_tokens=1).text == "there"  # one token stays: nothing to heal


def test_healing_cuts_between_characters(model: Model) -> None:
    for prompt in ("a€", "€", "the é", "x"):
        found = complete(model, prompt, gw.Regex("[a-c]{3}"), token_healing=True)
        assert len(found.value) == 3
        written = model.vocabulary.bytes_of([*found.state.prompt, *found.state.tokens]).decode()
        assert written == prompt + found.value


# -- probabilities -----------------------------------------------------------------------------------------------------


def test_steps_are_what_the_logits_say(model: Model) -> None:
    source = gw.Regex("the (cat|dog)s? [a-z]{2,5}")
    found = complete(model, "a ", source, logprobs=4, **HOT)
    plain = complete(model, "a ", source, **HOT)
    assert found.value == plain.value
    session, matcher = model.session(), gw.compile(source, VOCABULARY).matcher()
    session.feed("a ")
    row = np.zeros((len(VOCABULARY) + 31) // 32, dtype=np.uint32)
    for step in found.steps:
        share = np.exp(session.logits().astype(np.float64))
        share /= share.sum()
        matcher.fill_mask(row)
        legal = np.unpackbits(row.view(np.uint8), bitorder="little", count=len(VOCABULARY)).astype(bool)
        assert step.logprob == pytest.approx(math.log(share[step.token_id]))
        assert step.mask_logprob == pytest.approx(math.log(share[step.token_id] / share[legal].sum()), abs=1e-9)
        assert step.masked_mass == pytest.approx(share[~legal].sum())
        assert step.forced == (legal.sum() == 1)
        order = np.argsort(-share)[:4]
        assert [one.token_id for one in step.alternatives] == order.tolist()
        assert [one.allowed for one in step.alternatives] == legal[order].tolist()
        matcher.advance(step.token_id)
        session.feed([step.token_id])
    assert found.logprob == pytest.approx(sum(step.logprob for step in found.steps))
    with pytest.raises(ValueError, match="pass logprobs=0"):
        _ = plain.logprob


# -- values that grow --------------------------------------------------------------------------------------------------


class Inner(BaseModel):
    tags: list[Literal["x", "y"]] = Field(max_length=3)


class Person(BaseModel):
    name: str = Field(max_length=5, alias="Name")
    age: int = Field(ge=0, le=99)
    born: date
    inner: Inner


@dataclass
class Point:
    x: float
    on: date


def test_each_field_is_usable_when_it_is_whole(model: Model) -> None:
    grown = list(gw.stream_values(model, "the ", Person, **HOT))
    last = grown[-1]
    assert last.value == gw.generate(model, "the ", Person, **HOT)
    assert all(one.value is None for one in grown[:-1])
    orders = [list(one.fields) for one in grown]
    assert orders[-1] == ["Name", "age", "born", "inner"]
    assert all(before == after[: len(before)] for before, after in pairwise(orders))
    first = next(one for one in grown if "born" in one.fields)
    assert type(first.born) is date
    assert first.fields["age"] == last.value.age
    assert "inner" not in first.fields
    with pytest.raises(AttributeError, match="the field 'inner' is not complete; complete fields: Name, age, born"):
        _ = first.inner
    assert last.inner == last.value.inner
    assert isinstance(last.inner, Inner)


@pytest.mark.parametrize("output", [Point, list[int], dict[str, bool], int, str, SCHEMA, Literal["a", 3, None]])
def test_values_grow_to_what_generate_gives(model: Model, output: Any) -> None:
    grown: list[PartialValue[Any]] = list(gw.stream_values(model, "the ", output, max_tokens=40, **HOT))
    assert grown[-1].value == gw.generate(model, "the ", output, max_tokens=40, **HOT)
    sizes = [len(json.dumps(one.data)) for one in grown]
    assert sizes == sorted(sizes)

    async def awaited() -> list[Any]:
        return [one.data async for one in astream_values(model, "the ", output, max_tokens=40, **HOT)]

    assert asyncio.run(awaited()) == [one.data for one in grown]


def test_only_json_grows(model: Model) -> None:
    with pytest.raises(gw.errors.InvalidConstraintError, match="needs a type, a JsonSchema, a Reasoning or ToolCalls"):
        gw.stream_values(model, "the ", gw.Regex("a"))
    with pytest.raises(TypeError, match="one prompt"):
        gw.stream_values(model, ["the "], int)  # type: ignore[call-overload]  # the mistake under test


def test_generate_progress_bar(
    model: Model, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gw.generate(model, ["a", "b"], gw.Regex("ab"), progress=True) == ["ab", "ab"]
    assert capsys.readouterr() == ("", "")  # standard error is not a terminal
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, it now is
    assert gw.generate(model, ["a", "b"], gw.Regex("ab"), progress=True) == ["ab", "ab"]
    out, err = capsys.readouterr()
    assert out == ""
    assert "generating" in err
    assert "100%" in err


def test_results_compare_and_states_say_little_without_being_asked(model: Model) -> None:
    found: Generation[Any] = complete(model, "a ", gw.Regex("ab"))
    assert found.state.kv_cache is None
    assert found.state.tokens == found.tokens[:-1]  # the end token is left out
    assert found.state.prompt == tuple(model.tokenizer.encode("a "))
