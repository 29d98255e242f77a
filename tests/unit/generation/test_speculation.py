"""Speculative decoding gives the texts of plain decoding, in fewer passes of the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.errors import EngineError
from guideway.generation import Model, complete
from guideway.sampling import Sampler
from guideway.testing import ToyEngine, tiny_model

TEXT = "Ada Lovelace, 36, mathematician from London, met Ada Lovelace, 36, mathematician from London, met Ada"
RECORD = gw.JsonSchema(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 30}, "age": {"type": "integer", "maximum": 200}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
)
OUTPUTS: list[Any] = [None, RECORD, gw.Regex(r"[a-zA-Z0-9, ]{20,60}"), gw.Choice(["yes", "no", "perhaps"])]
WAYS: list[dict[str, Any]] = [{"prompt_lookup_num_tokens": 6}, {"assistant": True}, {"assistant": True, "num": 3}]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with gw.load("tiny") as made:
        yield made


def options(way: dict[str, Any], assistant: Model) -> dict[str, Any]:
    if "assistant" not in way:
        return way
    return {"assistant_model": assistant, "num_assistant_tokens": way.get("num", 5)}


def _differs_by_tie(model: Model, prompt: str, one: Any, other: Any, tolerance: float = 1e-3) -> bool:
    """Return whether the first different tokens have nearly equal logits."""
    at = next((i for i, (a, b) in enumerate(zip(one.tokens, other.tokens, strict=False)) if a != b), None)
    if at is None:
        return False
    session = model.session()
    session.feed(prompt)
    session.feed(list(one.tokens[:at]))
    logits = session.logits()
    return bool(abs(logits[one.tokens[at]] - logits[other.tokens[at]]) < tolerance)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("sampler", [Sampler(0.0), Sampler(1.0), Sampler(0.7, top_k=20, repetition_penalty=1.1)])
def test_texts_are_those_of_plain_decoding(model: Model, way: dict[str, Any], sampler: Sampler) -> None:
    more = options(way, model)
    prompts = [TEXT, "I feel ", "x"]
    drafted = accepted = ties = 0
    for output in OUTPUTS:
        given: dict[str, Any] = {"sampler": sampler, "max_tokens": 24, "seed": 5}
        plain = complete(model, prompts, output, **given)
        found = complete(model, prompts, output, **given, **more)
        for prompt, one, other in zip(prompts, plain, found, strict=True):
            if one.tokens != other.tokens:
                assert _differs_by_tie(model, prompt, one, other)
                ties += 1
                continue
            assert (one.text, one.finish_reason, one.forced) == (other.text, other.finish_reason, other.forced)
            assert one.drafted == one.accepted == 0
            drafted, accepted = drafted + other.drafted, accepted + other.accepted
    assert drafted > 20
    assert 0 < accepted <= drafted
    assert ties <= 1


def test_an_equal_assistant_is_accepted_and_saves_passes(model: Model) -> None:
    given: dict[str, Any] = {"max_tokens": 40, "stop_token_ids": ()}
    calls = model.engine.counts.calls
    plain = complete(model, TEXT, **given)
    ran = model.engine.counts.calls - calls
    model.prefixes.clear()
    with gw.load("tiny") as assistant:
        calls = model.engine.counts.calls
        found = complete(model, TEXT, assistant_model=assistant, **given)
        fewer = model.engine.counts.calls - calls
    assert found.tokens == plain.tokens
    assert found.accepted == found.drafted > 0
    assert fewer <= ran / 3


def test_lookup_saves_passes_where_the_text_repeats(model: Model) -> None:
    prompt = "one two three four five six seven. " * 4
    output = gw.Regex("(one two three four five six seven[.] ){3}")
    calls = model.engine.counts.calls
    found = complete(model, prompt, output | gw.Regex("[a-z ]{60}"), prompt_lookup_num_tokens=8)
    assert found.accepted <= found.drafted
    assert model.engine.counts.calls - calls <= len(found.tokens) - found.accepted + 2


def test_rows_with_and_without_drafts_share_passes(model: Model) -> None:
    alone = complete(model, ["I feel ", TEXT], RECORD)
    requests = ["I feel ", gw.GenerationRequest(TEXT, RECORD, prompt_lookup_num_tokens=6)]
    mixed = complete(model, requests, RECORD)
    assert [one.tokens for one in mixed] == [one.tokens for one in alone]
    assert mixed[0].drafted == 0


def test_streams_and_sessions_continue(model: Model) -> None:
    text = complete(model, TEXT, RECORD).text
    assert "".join(gw.stream(model, TEXT, RECORD, prompt_lookup_num_tokens=6)) == text
    cut = complete(model, TEXT, RECORD, max_tokens=16, allow_truncation=True, prompt_lookup_num_tokens=6)
    assert gw.resume(model, cut.state, prompt_lookup_num_tokens=6).text == gw.resume(model, cut.state).text


def test_limits_hold(model: Model) -> None:
    for most in (1, 2, 3, 7):
        found = complete(model, TEXT, max_tokens=most, prompt_lookup_num_tokens=9)
        assert found.tokens == complete(model, TEXT, max_tokens=most).tokens
    budget = complete(model, TEXT, gw.Regex("[a-z]{1,50}"), max_tokens=9, prompt_lookup_num_tokens=9)
    assert budget.tokens == complete(model, TEXT, gw.Regex("[a-z]{1,50}"), max_tokens=9).tokens
    with_words = complete(model, TEXT, bad_words=["the", "e"], max_tokens=20, prompt_lookup_num_tokens=9)
    assert with_words.tokens == complete(model, TEXT, bad_words=["the", "e"], max_tokens=20).tokens


def test_wrong_arguments_are_clear_errors(model: Model) -> None:
    with pytest.raises(TypeError, match="assistant_model must be a"):
        gw.generate(model, "x", assistant_model="tiny")  # type: ignore[arg-type]  # the wrong type is the test
    other = gw.Tokenizer.of([*model.vocabulary.token_bytes, b"one more"], eos_ids=model.vocabulary.eos_ids)
    with pytest.raises(ValueError, match="must have the vocabulary"):
        gw.generate(model, "x", assistant_model=Model(ToyEngine(len(other.vocabulary)), other))
    with pytest.raises(ValueError, match="prompt_lookup_num_tokens"):
        gw.generate(model, "x", prompt_lookup_num_tokens=-1)
    toy = Model(ToyEngine(len(model.vocabulary)), model.tokenizer)
    with pytest.raises(EngineError, match="speculative decoding needs an engine"):
        gw.generate(toy, "x", prompt_lookup_num_tokens=4)


_TORCH = pytest.mark.engine("torch", "transformers")
_MLX = pytest.mark.engine("mlx", "mlx_lm", "torch")
_LLAMA = pytest.mark.engine("llama_cpp", "gguf", "torch")
ENGINES = [
    "onnx",
    pytest.param("hf", marks=_TORCH),
    pytest.param("mlx", marks=_MLX),
    pytest.param("gguf", marks=_LLAMA),
]


@pytest.mark.parametrize("kind", ENGINES)
def test_all_logits_are_those_of_single_steps(kind: str, tmp_path: Path) -> None:
    if kind == "onnx":
        engine = gw.load("tiny").engine
    else:
        name = f"{kind}:{tiny_model('llama', tmp_path)}"
        if kind == "gguf":
            from tests.helpers.gguf_models import write_gguf

            name = f"gguf:{write_gguf(Path(name[5:]), tmp_path / 'model.gguf')}"
        engine = gw.load(name).engine
    _, caches = engine.forward([[5, 6, 7], [8, 9], [5, 6, 7, 8]], [None] * 3)
    rows = [[10, 11, 12], [13], [14, 15]]
    found, made = engine.forward_all(rows, caches)
    starts = [[5, 6, 7], [8, 9], [5, 6, 7, 8]]
    for start, row, logits, cache in zip(starts, rows, found, made, strict=True):
        assert logits.shape == (len(row), engine.vocab_size)
        assert cache.length == len(start) + len(row)
        for count in range(1, len(row) + 1):
            expected, _ = engine.forward([start + row[:count]], [None])
            np.testing.assert_allclose(logits[count - 1], expected[0], atol=1e-3 * max(1, np.abs(expected).max()))
        again, _ = engine.forward([[20]], [cache.truncated(len(start))])
        expected, _ = engine.forward([[*start, 20]], [None])
        np.testing.assert_allclose(again[0], expected[0], atol=1e-3 * max(1, np.abs(expected).max()))
