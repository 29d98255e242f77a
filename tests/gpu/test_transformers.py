"""Models of transformers on a CUDA device, in bfloat16: `generate`, continuous batching, and the own loop."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.errors import NoAllowedTokenError
from guideway.generation import Model
from guideway.sampling import Sampler
from guideway.testing import step_engine_contract
from guideway.tokenizers import Tokenizer
from tests.helpers.engines import PATTERN as RECORD, check_engine, model_of
from tests.unit.integrations.transformers.test_continuous_batching import PATTERNS, PROMPTS, results
from tests.unit.integrations.transformers.test_processor import MODES, PATTERN, text_of

from . import DEVICE

pytestmark = pytest.mark.engine("torch", "transformers")


@pytest.fixture(scope="module")
def both(loaded: tuple[Any, Any], folder: Path) -> tuple[Any, Any, Model]:
    """Model and tokenizer of transformers, and ours over the same weights."""
    return *loaded, Model(gw.load(loaded[0], tokenizer=folder).engine, Tokenizer.of(loaded[1]))


def generated(both: Any, prompts: list[str], processor: Any, **options: Any) -> list[list[int]]:
    model, tokenizer, _ = both
    batch = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left", return_token_type_ids=False)
    options = {"max_new_tokens": 120, "do_sample": False, **options}
    found = model.generate(
        **batch.to(DEVICE), logits_processor=[processor], pad_token_id=tokenizer.pad_token_id, **options
    )
    return [row[batch["input_ids"].shape[1] :].tolist() for row in found]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ahead", [False, True])
def test_texts_of_every_decoding_mode_fit_the_constraint(both: Any, mode: str, ahead: bool) -> None:
    import torch

    from guideway.integrations.transformers import logits_processor

    torch.manual_seed(1)
    prompts = PROMPTS[:1] if mode == "prompt lookup" else PROMPTS
    processor = logits_processor(gw.Regex(PATTERN), both[1], max_tokens=120)
    more = {"stopping_criteria": [processor.ahead]} if ahead else {}
    for found in generated(both, prompts, processor, **MODES[mode], **more):
        assert re.fullmatch(PATTERN, text_of(both, found))
    processor.check()
    timings = processor.timings
    assert timings.calls > 10
    if ahead and mode in ("greedy", "sample"):
        assert 0 < timings.overlap <= timings.mask


def test_background_masks_do_not_change_the_text(both: Any) -> None:
    from guideway.integrations.transformers import logits_processor

    texts = []
    for ahead in (False, True):
        processor = logits_processor(gw.Regex(PATTERN), both[1], max_tokens=120)
        more = {"stopping_criteria": [processor.ahead]} if ahead else {}
        texts.append(generated(both, PROMPTS, processor, **more))
    assert texts[0] == texts[1]


def test_a_row_without_an_allowed_token_is_reported(both: Any) -> None:
    from transformers import LogitsProcessor

    from guideway.integrations.transformers import logits_processor

    class Spoiler(LogitsProcessor):  # type: ignore[misc]  # transformers gives no types
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            return scores.new_full(scores.shape, float("-inf")) if input_ids.shape[1] > 8 else scores

    processor = logits_processor(gw.Regex("[a-z]{30}"), both[1], max_tokens=60, before=[Spoiler()])
    with pytest.raises(NoAllowedTokenError, match="no token is left"):
        generated(both, PROMPTS[:1], processor, max_new_tokens=60)  # raises at the next token


def test_continuous_batching(both: Any) -> None:
    from transformers import ContinuousBatchingConfig, GenerationConfig

    from guideway.integrations.transformers import continuous_constraints

    table = Tokenizer.of(both[1])
    settings = GenerationConfig(eos_token_id=1, do_sample=False, max_new_tokens=40)
    config = ContinuousBatchingConfig(
        num_blocks=64, page_size=32, max_batch_tokens=96, use_async_batching=False, use_cuda_graph=False
    )
    manager = both[0].init_continuous_batching(settings, config)
    constraints = continuous_constraints(manager, table)
    manager.start()
    wanted: dict[str, str | None] = {}
    try:
        for index, pattern in enumerate(PATTERNS * 4):
            ids = table.encode(PROMPTS[index % 3], special=True)
            source = None if pattern is None else gw.Regex(pattern)
            wanted[constraints.add_request(ids, source, max_new_tokens=40 if pattern else 7)] = pattern
        for number, result in results(manager, list(wanted)):
            assert result.error is None
            pattern = wanted[number]
            if pattern is not None:
                assert result.generated_tokens[-1] == 1, "it did not end"
                text = table.vocabulary.bytes_of(result.generated_tokens[:-1]).decode()
                assert re.fullmatch(pattern, text), pattern
    finally:
        manager.stop(block=True)
    assert not constraints.errors
    assert constraints.timings.calls > 20


def test_managers_that_sample_without_processors_are_refused(both: Any) -> None:
    from transformers import ContinuousBatchingConfig, GenerationConfig

    from guideway.errors import ProcessorError
    from guideway.integrations.transformers import continuous_constraints

    for options in ({"use_async_batching": True}, {"use_cuda_graph": True}):
        config = ContinuousBatchingConfig(num_blocks=64, page_size=32, max_batch_tokens=96, **options)
        manager = both[0].init_continuous_batching(GenerationConfig(eos_token_id=1), config)
        with pytest.raises(ProcessorError, match="use_cuda_graph=False"):
            continuous_constraints(manager, both[1])


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-3), ("bfloat16", 0.25)])
def test_sessions_and_contract(folder: Path, dtype: str, tolerance: float, tmp_path: Path) -> None:
    from guideway.engines.transformers import TransformersEngine

    engine = TransformersEngine(folder, device=DEVICE, dtype=dtype)
    assert engine.on_device
    assert engine.supports_rollback
    assert engine.packs_rows
    if dtype == "float32":
        check_engine(model_of(engine, folder), tmp_path / "session", tolerance=tolerance, exact=False)
    else:
        step_engine_contract(engine, [7, 3, 9, 100, 41, 200, 5, 3], tolerance=tolerance)


def test_the_own_loop(both: Any) -> None:
    """Many rows with different prompts and constraints, greedy and sampled, with logprobs and a token budget."""
    model = both[2]
    schema = gw.JsonSchema(
        {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 9}, "tags": {"type": "array", "maxItems": 3}},
            "required": ["name", "tags"],
            "additionalProperties": False,
        }
    )
    for sampler in (Sampler(), Sampler(1.2, top_k=40), Sampler(1.0, top_p=0.9, repetition_penalty=1.1)):
        prompts = [f"{PROMPTS[i % 3]} {'and ' * i}" for i in range(24)]
        values = gw.generate(model, prompts, schema, sampler=sampler, seed=4, max_tokens=100)
        assert len(values) == 24
        assert all(set(value) == {"name", "tags"} for value in values)
        for value in gw.generate(model, prompts, RECORD, sampler=sampler, max_tokens=100):
            assert json.loads(value)["name"].isalpha()
    scores = gw.score(model, "the crab ", ["and", "scrabble", "1"])
    assert sum(one.probability for one in scores) == pytest.approx(1.0, abs=1e-3)


def test_results_on_the_device_are_those_of_the_cpu(folder: Path) -> None:
    """float32: greedy texts of the own loop differ only where two logits are nearly equal."""
    texts = []
    for device in ("cpu", DEVICE):
        with gw.load(f"hf:{folder}", dtype="float32", device=device) as model:
            texts.append([gw.generate(model, prompt, RECORD, max_tokens=120) for prompt in PROMPTS * 3])
    assert texts[0] == texts[1]
