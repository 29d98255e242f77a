"""Constraints in the loops of mlx-lm: one sequence, drafts, batches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.errors import NoAllowedTokenError, ProcessorReuseError
from guideway.generation import Model
from guideway.testing import processor_contract, tiny_model
from guideway.tokenizers import Tokenizer

pytestmark = pytest.mark.engine("mlx", "mlx_lm")
PATTERN = r'\{"name": "[a-z]{3,9}", "age": [1-9][0-9]?, "tags": \["[a-z]+"(, "[a-z]+"){0,3}\]\}'
PROMPTS = ["the crab and", "def main(", "once there was another story"]
EOS = 1


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Tokenizer, Path]:
    from mlx_lm.utils import load_model

    folder = tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3)
    return load_model(folder)[0], Tokenizer.of(folder), folder


def generated(loaded: Any, prompt: str, processors: list[Any], **options: Any) -> list[int]:
    """Returns ids up to the end token. The generator calls the processors once more after the end token."""
    import mlx.core as mx
    from mlx_lm.generate import generate_step, speculative_generate_step

    ids = mx.array(loaded[1].encode(prompt, special=True))
    step = speculative_generate_step if "draft_model" in options else generate_step
    found: list[int] = []
    for token_id, *_ in step(ids, loaded[0], max_tokens=120, logits_processors=processors, **options):
        found.append(int(token_id))
        if found[-1] == EOS:
            break
    return found


def test_contract() -> None:
    import mlx.core as mx

    from guideway.integrations.mlx import logits_processor

    def make(constraints: list[Any], vocabulary: Any) -> Any:
        return logits_processor(constraints[0], vocabulary)

    def call(processor: Any, ids: list[list[int]], logits: Any) -> Any:
        return np.array(processor(mx.array(ids[0]), mx.array(logits)))

    processor_contract(make, call, rows=1, rounds=30, drafts=False)


def test_sequences_are_those_of_our_loop(loaded: Any) -> None:
    from guideway.integrations.mlx import logits_processor

    model, tokenizer, folder = loaded
    ours = Model(gw.load(f"mlx:{folder}").engine, tokenizer)
    automaton = gw.compile(gw.Regex(PATTERN), ours.vocabulary)
    for prompt in PROMPTS:
        session = ours.session()
        session.feed(prompt)
        session.constrain(automaton.matcher())
        start = len(session)
        while session.matcher and not session.matcher.is_finished:
            session.infer(tokens_left=120 - len(session) + start)
        for options in ({}, {"draft_model": model, "num_draft_tokens": 3}):
            processor = logits_processor(automaton, tokenizer, max_tokens=120)
            assert generated(loaded, prompt, [processor], **options) == session.tokens[start:], options
        assert processor.timings.calls > 0


def test_a_batch_with_rows_that_join_and_leave(loaded: Any) -> None:
    from mlx_lm.generate import BatchGenerator

    from guideway.integrations.mlx import logits_processor

    model, tokenizer, _ = loaded
    patterns = [PATTERN, "[a-z]{4}", None, r"\d+(, \d+){2}", "(yes|no)", "[a-z ]{30,40}"] * 3
    batch = BatchGenerator(model, max_tokens=130, stop_tokens=[[EOS]], completion_batch_size=4, prefill_batch_size=2)
    numbers: dict[int, str | None] = {}
    for index, pattern in enumerate(patterns):
        one = None if pattern is None else [logits_processor(gw.Regex(pattern), tokenizer, max_tokens=130)]
        ids = tokenizer.encode(PROMPTS[index % 3], special=True)
        (number,) = batch.insert([ids], max_tokens=[130 if pattern else 9], logits_processors=[one])
        numbers[number] = pattern
    texts: dict[int, list[int]] = {number: [] for number in numbers}
    waiting = set(numbers)
    for _ in range(3000):
        if not waiting:
            break
        for response in batch.next_generated():
            texts[response.uid].append(int(response.token))
            if response.finish_reason:
                waiting.discard(response.uid)
    assert not waiting
    for number, pattern in numbers.items():
        ids = [token_id for token_id in texts[number] if token_id != EOS]
        assert pattern is None or re.fullmatch(pattern, tokenizer.vocabulary.bytes_of(ids).decode())


def test_functions_run_before_and_errors_surface(loaded: Any) -> None:
    import mlx.core as mx

    from guideway.integrations.mlx import logits_processor

    seven = loaded[1].encode("7")[0]
    more = mx.array(np.where(np.arange(320) == seven, 1000.0, 0.0).astype(np.float32))
    processor = logits_processor(gw.Regex("[a-z][0-9]{3}"), loaded[1], before=[lambda tokens, logits: logits + more])
    found = generated(loaded, "a", [processor])
    assert re.fullmatch("[a-z]777", loaded[1].vocabulary.bytes_of(found[:-1]).decode())
    nothing = [lambda tokens, logits: logits * 0 - mx.array(np.inf)]
    with pytest.raises(NoAllowedTokenError, match="no token is left"):
        generated(loaded, "a", [logits_processor(gw.Regex("[a-z]{9}"), loaded[1], before=nothing)])
    used = logits_processor(gw.Regex("[a-z]{3}"), loaded[1])
    generated(loaded, PROMPTS[0], [used])
    with pytest.raises(ProcessorReuseError, match="each generate"):
        generated(loaded, PROMPTS[1], [used])
    assert generated(loaded, "a", [logits_processor(None, loaded[1])])[:5] == generated(loaded, "a", [])[:5]
