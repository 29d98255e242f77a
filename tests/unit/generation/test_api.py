"""`generate`, `extract` and `stream`: values, details, budgets, streams and errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the model of these tests is written with onnx")

import guideway as gw
from guideway.generation import Generation, complete, extraction
from guideway.generation.prompts import extraction_prompt
from guideway.testing import ConstantModel
from guideway.tokenizers import Vocabulary
from tests.helpers.small_model import write_model

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
DATE = r"\d{4}-(0[1-9]|1[0-2])"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name", "age"],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> gw.Model:
    return gw.load(f"onnx:{write_model(tmp_path_factory.mktemp('small'))}")


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> gw.Model:
    return gw.load(f"onnx:{write_model(tmp_path_factory.mktemp('chat'), chat_template=TEMPLATE)}")


def test_the_shape_of_the_result_is_that_of_the_prompt(model: gw.Model) -> None:
    date = gw.Regex(DATE)
    one = gw.generate(model, "Ada", date)
    assert isinstance(one, str)
    assert re.fullmatch(DATE, one)
    assert gw.generate(model, ["Ada", "the", "Ada"], date) == [one, gw.generate(model, "the", date), one]
    inner = gw.generate(model, ["Ada", "the"], date, n=3, seed=1)
    assert [len(texts) for texts in inner] == [3, 3]
    assert len(set(inner[0])) > 1  # samples are drawn, not all the most probable one
    assert gw.generate(model, "Ada", date, n=3, seed=1) == inner[0]
    assert gw.generate(model, [], date) == []
    assert gw.generate(model, ["Ada"], date, n=1) == [gw.generate(model, "Ada", date, n=1)]


def test_more_rows_than_go_at_once(model: gw.Model) -> None:
    date = gw.Regex("[a-z]{3}")
    found = gw.generate(model, ["Ada", "the"], date, n=20, seed=3)
    assert [len(texts) for texts in found] == [20, 20]
    assert found[0] == gw.generate(model, "Ada", date, n=20, seed=3)
    prompts = ["Ada"] * 35
    assert gw.generate(model, prompts, date) == [gw.generate(model, "Ada", date)] * 35


def test_free_text(model: gw.Model) -> None:
    details = complete(model, "Ada", max_tokens=20)
    assert details.value == details.text == gw.generate(model, "Ada", max_tokens=20)
    assert (len(details.tokens), details.finish_reason, details.forced, details.sampled) == (20, "length", 0, 20)
    assert details.prompt_tokens == len(model.tokenizer.encode("Ada"))
    assert details.timings.model > 0 < details.timings.prompt
    assert details.tokens_per_second > 0


def test_free_text_stops_at_eos() -> None:
    vocabulary = Vocabulary([b"</s>", b"a", b"b"], eos_ids=[0], special_ids=[0])
    details = complete(ConstantModel(vocabulary, [1.0, 0.5, 0.0]), "ab")
    assert (details.text, details.tokens, details.finish_reason) == ("", (0,), "stop")
    details = complete(ConstantModel(vocabulary), "ab", temperature=1.0, seed=2, max_tokens=1000)
    assert details.finish_reason == "stop"
    assert details.tokens[-1] == 0
    assert set(details.text) <= {"a", "b"}


def test_seeds(model: gw.Model) -> None:
    texts = [gw.generate(model, "Ada", max_tokens=12, temperature=1.0, seed=seed) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_sampler_options_arrive(model: gw.Model) -> None:
    greedy = gw.generate(model, "Ada", max_tokens=12)
    assert gw.generate(model, "Ada", max_tokens=12, temperature=9.0, top_k=1) == greedy
    assert gw.generate(model, "Ada", max_tokens=12, temperature=9.0, top_p=1e-9) == greedy
    assert gw.generate(model, "Ada", max_tokens=12, temperature=9.0, min_p=1.0) == greedy
    with pytest.raises(ValueError, match="top_p"):
        gw.generate(model, "Ada", top_p=0.0)


def test_forced_tokens_are_counted_and_not_drawn(model: gw.Model) -> None:
    details = complete(model, "Ada", gw.Regex("the quick brown (fox|dog)!"))
    assert details.finish_reason == "stop"
    assert details.text in ("the quick brown fox!", "the quick brown dog!")
    assert details.sampled <= 2
    assert details.forced + details.sampled == len(details.tokens)
    assert details.tokens[-1] in model.tokenizer.eos_ids


@pytest.mark.parametrize("pattern", [r"(a|bcdefg)*x", r"[a-z ]{3,40}", r"é+|hello (world|m.*x)"])
def test_every_budget_gives_a_whole_text_or_none(model: gw.Model, pattern: str) -> None:
    source = gw.Regex(pattern)
    fewest = gw.compile(source, model.vocabulary).matcher().min_tokens_to_complete()
    for budget in range(1, fewest):
        with pytest.raises(gw.errors.BudgetTooSmallError, match=f"needs {fewest} tokens; max_tokens is {budget}"):
            gw.generate(model, "Ada", source, max_tokens=budget)
    for budget in range(fewest, 24):
        details = complete(model, "Ada", source, max_tokens=budget, temperature=3.0, seed=budget)
        assert re.fullmatch(pattern, details.text)
        assert len(details.tokens) <= budget
        assert (details.finish_reason == "stop") == (details.truncation is None)


def test_the_context_is_a_budget_too(tmp_path: Path) -> None:
    model = gw.load(f"onnx:{write_model(tmp_path, context=30)}")
    prompt = "a!" * 13
    room = 30 - len(model.tokenizer.encode(prompt))
    assert len(complete(model, prompt, temperature=2.0).tokens) <= room == 4
    details = complete(model, prompt, gw.Regex("[xyz]+"), temperature=2.0)
    assert details.truncation is not None
    assert details.truncation[:2] == ("completed_early", "context")
    assert len(details.tokens) <= room
    with pytest.raises(gw.errors.BudgetTooSmallError, match="room for 4 after"):
        gw.generate(model, prompt, gw.Regex("[xyz]{40}"))
    with pytest.raises(gw.errors.ContextOverflowError, match="no room"):
        gw.generate(model, "a!" * 15)
    with pytest.raises(gw.errors.ContextOverflowError, match="32 tokens"):
        gw.generate(model, "a!" * 16)


@pytest.mark.parametrize("output", [None, gw.Regex(r"[a-zé€😀]{5,30}\.")])
def test_a_stream_joined_is_the_text(model: gw.Model, output: Any) -> None:
    options: dict[str, Any] = {"max_tokens": 60, "temperature": 2.0, "seed": 4}
    pieces = list(gw.stream(model, "Ada", output, **options))
    assert "".join(pieces) == gw.generate(model, "Ada", output, **options)
    assert all(pieces)
    assert len(pieces) > 3


def test_a_stream_raises_before_its_first_piece(model: gw.Model) -> None:
    with pytest.raises(gw.errors.BudgetTooSmallError):
        gw.stream(model, "Ada", gw.Regex("a{90}"), max_tokens=3)
    with pytest.raises(gw.errors.ContextOverflowError):
        gw.stream(model, "a!" * 500)


def test_messages_go_through_the_template(chat: gw.Model, model: gw.Model) -> None:
    messages = [{"role": "user", "content": "Ada"}]
    details = complete(chat, messages, gw.Regex("[ab]"))
    assert details.prompt_tokens == len(chat.tokenizer.encode("[user]Ada[assistant]"))
    assert len(gw.generate(chat, [messages, messages], gw.Regex("[ab]"))) == 2
    with pytest.raises(gw.errors.ChatTemplateError, match="no chat template"):
        gw.generate(model, messages)


def test_json_values_and_extraction(model: gw.Model, chat: gw.Model) -> None:
    schema = gw.JsonSchema(SCHEMA)
    value = gw.generate(model, "Ada", schema)
    assert isinstance(value["name"], str)
    assert value["age"] <= 150
    found = complete(model, extraction(model, "Ada, 36", schema), schema)
    assert found.value == json.loads(found.text) == gw.extract(model, "Ada, 36", schema)
    assert found.prompt_tokens == len(model.tokenizer.encode(extraction_prompt("Ada, 36", schema.schema)))
    assert len(gw.extract(model, ["Ada", "Zoe"], schema)) == 2
    messages: Any = extraction(chat, "Ada", schema).prompt
    assert messages[0]["role"] == "user"
    assert '"maximum": 150' in messages[0]["content"]
    with pytest.raises(gw.errors.InvalidConstraintError, match="extract needs a type or a JsonSchema"):
        gw.extract(model, "Ada", gw.Regex("a"))


def test_constant_models_fit_too() -> None:
    vocabulary = Vocabulary([b"", *(bytes([b]) for b in range(256)), b'": ', b'", "'], eos_ids=[0], special_ids=[0])
    model = ConstantModel(vocabulary)
    for seed in range(20):
        value = gw.generate(model, "x", gw.JsonSchema(SCHEMA), temperature=2.0, seed=seed, max_tokens=80)
        assert set(value) == {"name", "age"}
    biased = ConstantModel(vocabulary, np.where(np.arange(len(vocabulary)) == ord("a") + 1, 9.0, 0.0))
    assert gw.generate(biased, "x", gw.Regex("[a-z]{5}")) == "aaaaa"


def test_unknown_models_are_refused_by_name(tmp_path: Path) -> None:
    for name in ("large", "onnx:", "gguf:file.gguf", "", f"onnx:{tmp_path}"):
        with pytest.raises(
            (gw.errors.ModelNotFoundError, gw.errors.MissingDependencyError), match=r"model|needs llama-cpp-python"
        ):
            gw.load(name)
    write_model(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(gw.errors.ModelNotFoundError, match=r"tokenizer\.json"):
        gw.load(f"onnx:{tmp_path}")


@pytest.mark.parametrize("options", [{"max_tokens": 0}, {"n": 0}, {"temperature": -1.0}])
def test_options_out_of_range_are_named(model: gw.Model, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        gw.generate(model, "Ada", **options)


def test_prompts_may_be_token_ids(model: gw.Model) -> None:
    text = "Ada was"
    ids = model.tokenizer.encode(text)
    expected = gw.generate(model, text, max_tokens=6)
    for given in (ids, tuple(ids), list(np.array(ids)), [*model.bos_ids, *ids], gw.GenerationRequest(ids)):
        assert gw.generate(model, given, max_tokens=6) == expected  # type: ignore[call-overload]  # an array's integers
    assert gw.generate(model, [ids, ids], max_tokens=6) == [expected] * 2
    assert gw.generate(model, [ids, text], max_tokens=6) == [expected] * 2  # type: ignore[call-overload]  # mixed
    assert "".join(gw.stream(model, ids, max_tokens=6)) == expected
    assert gw.score(model, ids, ["a", "b"]) == gw.score(model, text, ["a", "b"])
    with pytest.raises(gw.errors.InvalidTokenError, match="token id must be in"):
        gw.generate(model, [len(model.vocabulary)])


def test_non_prompts_are_refused(model: gw.Model) -> None:
    for wrong in (3, None, [3.5], [[3.5]], [3, "a"], ["a", {"role": "user"}], b"Ada"):
        with pytest.raises(TypeError, match="prompt must be"):
            gw.generate(model, wrong)  # type: ignore[call-overload]  # the mistake under test
    with pytest.raises(gw.errors.EmptySequenceError):
        gw.generate(model, "")


def test_a_vocabulary_without_an_end_is_refused() -> None:
    model = ConstantModel(Vocabulary([b"a", b"b"]))
    with pytest.raises(gw.errors.UnsupportedTokenizerError, match="eos_ids"):
        gw.generate(model, "a", gw.Regex("ab"))
    details: Generation[str] = complete(model, "a", max_tokens=3)
    assert details.text == "aaa"
