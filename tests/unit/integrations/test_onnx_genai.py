"""Constraints in loops over the generator of onnxruntime-genai: steps, forced tokens, batches, rewinding."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.errors import BudgetTooSmallError, NoAllowedTokenError, ProcessorError, ProcessorReuseError
from guideway.testing import processor_contract
from guideway.tokenizers import Tokenizer
from tests.helpers.genai_models import genai_folder

pytestmark = pytest.mark.engine("onnxruntime_genai")
PATTERN = r'\{"name": "[a-z]{3,9}", "age": [1-9][0-9]?, "tags": \["[a-z]+"(, "[a-z]+"){0,3}\]\}'
PROMPTS = ["The year ", "Built in ", "In 1990 ", "He said "]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Tokenizer]:
    """The bundled model, which is an export with the Hub's names, and its tokenizer."""
    import onnxruntime_genai as og

    folder = genai_folder(Path(gw.__file__).parent / "tiny", tmp_path_factory.mktemp("genai") / "tiny")
    return og.Model(str(folder)), Tokenizer.of(folder)


def generator_of(loaded: Any, prompts: list[str], **options: Any) -> tuple[Any, int]:
    """Returns a generator after prompts that are truncated to equal length, and that length."""
    import onnxruntime_genai as og

    ids = [loaded[1].encode(prompt, special=True) for prompt in prompts]
    width = min(map(len, ids))
    params = og.GeneratorParams(loaded[0])
    params.set_search_options(max_length=200, batch_size=len(prompts), **options)
    generator = og.Generator(loaded[0], params)
    generator.append_tokens(np.array([row[:width] for row in ids], np.int32))
    return generator, width


def text_of(loaded: Any, ids: Any) -> str:
    """Returns the output of a finished generator without the end token."""
    ids = [int(i) for i in ids]
    ends = [i for i, token_id in enumerate(ids) if token_id in loaded[1].eos_ids]
    return str(loaded[1].vocabulary.bytes_of(ids[: ends[0]] if ends else ids).decode())


class Written:
    """What a processor needs of a generator: sequences, and logits that are read and written."""

    def __init__(self, ids: list[list[int]], logits: Any) -> None:
        self.ids, self.logits = ids, logits[:, None]

    def get_sequence(self, row: int) -> Any:
        return np.array(self.ids[row], np.int32)

    def get_logits(self) -> Any:
        return self.logits

    def set_logits(self, logits: Any) -> None:
        self.logits = logits


def test_contract() -> None:
    from guideway.integrations.onnx_genai import logits_processor

    def call(processor: Any, ids: list[list[int]], logits: Any) -> Any:
        generator = Written(ids, logits.copy())
        processor(generator)
        return generator.logits[:, 0]

    processor_contract(logits_processor, call, rows=1, rounds=30)


def test_sequences_are_those_of_our_loop(loaded: Any) -> None:
    from guideway.integrations.onnx_genai import logits_processor

    model = gw.load("tiny")
    for prompt in PROMPTS:
        expected = gw.generation.complete(model, prompt, gw.Regex(PATTERN), max_tokens=120)
        generator, width = generator_of(loaded, [prompt])
        processor = logits_processor(gw.Regex(PATTERN), loaded[1], max_tokens=120)
        drawn = 0
        while not generator.is_done():
            processor.step(generator)
            drawn += 1
        found = generator.get_sequence(0)[width:].tolist()
        assert found == list(expected.tokens[:-1])
        assert expected.forced >= processor.forced >= expected.forced - 1 > 8  # the end token is drawn here
        assert drawn < len(found)  # forced ones went together
        plain, _ = generator_of(loaded, [prompt])
        processor = logits_processor(gw.Regex(PATTERN), loaded[1], max_tokens=120)
        while not plain.is_done():
            processor(plain)
            plain.generate_next_token()
        assert re.fullmatch(PATTERN, text_of(loaded, plain.get_sequence(0)[width:]))
        assert processor.timings.calls == len(plain.get_sequence(0)) - width + 1
        assert processor.timings.model > 0


def test_going_back(loaded: Any) -> None:
    from guideway.integrations.onnx_genai import logits_processor

    generator, width = generator_of(loaded, PROMPTS[:1])
    processor = logits_processor(gw.Regex(PATTERN), loaded[1], max_tokens=120)
    while not generator.is_done():
        processor.step(generator)
    whole = generator.get_sequence(0).tolist()
    for cut in (width + 30, width + 3, width + 11):
        generator, _ = generator_of(loaded, PROMPTS[:1])
        processor = logits_processor(gw.Regex(PATTERN), loaded[1], max_tokens=120)
        while generator.token_count() < cut:
            processor.step(generator)
        back = width + 2
        generator.rewind_to(back - 1)
        generator.append_tokens(np.array([whole[back - 1 : back]], np.int32))
        while not generator.is_done():
            processor.step(generator)
        assert generator.get_sequence(0).tolist() == whole


def test_batches(loaded: Any) -> None:
    from guideway.integrations.onnx_genai import logits_processor

    patterns = ["[a-z]{4}", None, r"\d+(, \d+){2}", "(yes|no)"]
    constraints = [None if one is None else gw.Regex(one) for one in patterns]
    for sample in (False, True):
        generator, width = generator_of(loaded, PROMPTS, do_sample=sample, temperature=1.3, top_k=40, random_seed=3)
        processor = logits_processor(constraints, loaded[1], max_tokens=40)
        while not generator.is_done() and generator.token_count() < width + 40:
            processor.step(generator)
        for index, pattern in enumerate(patterns):
            assert pattern is None or re.fullmatch(pattern, text_of(loaded, generator.get_sequence(index)[width:]))


def test_functions_run_before_and_errors_surface(loaded: Any) -> None:
    from guideway.integrations.onnx_genai import logits_processor

    seven = loaded[1].encode("7")[-1]

    def liking_seven(ids: Any, logits: Any) -> Any:
        logits[:, seven] += 1000
        return logits

    generator, width = generator_of(loaded, PROMPTS[:1])
    processor = logits_processor(gw.Regex("[a-z][0-9]{3}"), loaded[1], before=[liking_seven])
    while not generator.is_done():
        processor.step(generator)
    assert re.fullmatch("[a-z]777", text_of(loaded, generator.get_sequence(0)[width:]))
    other, _ = generator_of(loaded, PROMPTS[1:2])
    with pytest.raises(ProcessorReuseError, match="each generate"):
        processor.step(other)
    nothing = logits_processor(gw.Regex("[ab]+"), loaded[1], before=[lambda ids, logits: logits * 0 - np.inf])
    with pytest.raises(NoAllowedTokenError, match="no token is left"):
        nothing.step(generator_of(loaded, PROMPTS[:1])[0])
    with pytest.raises(ProcessorError, match="beam search is not supported"):
        logits_processor(gw.Regex("[ab]+"), loaded[1])(generator_of(loaded, PROMPTS[:1], num_beams=2)[0])
    with pytest.raises(BudgetTooSmallError):
        logits_processor(gw.Regex("[a-z]{999}"), loaded[1], max_tokens=3)
