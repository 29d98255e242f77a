"""Random schemas in the loops of other libraries: every output is valid."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.errors import ConstraintError
from guideway.testing import tiny_model
from guideway.tokenizers import Tokenizer

from ..helpers.exports import export_folder
from ..helpers.genai_models import genai_folder
from ..helpers.loops import loops
from .judge import Judge
from .keywords import Drawer

ROOM = 24
"""Tokens beyond the shortest output."""
LONGEST = 120
COUNTS = pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.slow)])
BATCHED: list[dict[str, Any]] = [
    {},
    {"do_sample": True, "temperature": 1.5},
    {"do_sample": True, "num_return_sequences": 2},
]
BEAMS: list[dict[str, Any]] = [{"num_beams": 3}, {"num_beams": 2, "do_sample": True}]
ALONE: list[dict[str, Any]] = [{"assistant_model": None}, {"prompt_lookup_num_tokens": 4}]

Case = tuple[Any, gw.Automaton, int]


def drawn(first: int, count: int, vocabulary: gw.Vocabulary) -> list[Case]:
    """Returns `count` schemas that compile, their automata, and the maximum number of tokens of their outputs."""
    found: list[Case] = []
    seed = first
    while len(found) < count:
        schema = Drawer(random.Random(seed)).document()
        seed += 1
        try:
            automaton = gw.compile(gw.JsonSchema(schema), vocabulary, cache=False)
        except ConstraintError:
            continue
        if (needed := automaton.matcher().min_tokens_to_complete()) + ROOM <= LONGEST:
            found.append((schema, automaton, needed + ROOM))
    return found


def judged(case: Case, ids: list[int], vocabulary: gw.Vocabulary, way: object) -> bool:
    """Whether the judge could tell; it must call the text valid then. `ids`: without the end token."""
    text = vocabulary.bytes_of(ids).decode()
    try:
        good = Judge(case[0])(text)
    except (ArithmeticError, RecursionError):
        return False
    assert good, (case[0], text, way)
    return True


def until_end(ids: list[int]) -> list[int]:
    assert 1 in ids, "it did not end"
    return ids[: ids.index(1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_folder(tiny_model("llama", tmp_path_factory.mktemp("schemas") / "model"))


@pytest.mark.engine("torch", "transformers", "onnx")
@COUNTS
def test_every_loop_with_one_text(count: int, folder: Path, tmp_path: Path) -> None:
    """Greedily, through every loop that is installed: plain, assisted, prompt lookup, continuous, speculative."""
    table = Tokenizer.of(folder)
    chance, found = random.Random(5), dict[str, int]()
    with ExitStack() as stack:
        for name, run in loops(folder, tmp_path, stack).items():
            for case in drawn(1000, count, table.vocabulary):
                ids = [chance.randrange(2, 320) for _ in range(5)]
                found[name] = found.get(name, 0) + judged(case, run(ids, case[1], case[2]), table.vocabulary, name)
    assert min(found.values()) > count * 0.8, found


@pytest.mark.engine("torch", "transformers", "onnx")
@COUNTS
def test_transformers(count: int, folder: Path) -> None:
    """Each schema alone and streamed, with drafts, in a batch with others and a free row, and under beams."""
    import torch
    from transformers import AutoModelForCausalLM

    from guideway.integrations.transformers import logits_processor

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, table = AutoModelForCausalLM.from_pretrained(folder).eval(), Tokenizer.of(folder)
    seen = 0
    for place, begin in enumerate(range(0, count, 4)):
        some = drawn(1000 * begin, 4, table.vocabulary)
        batches = [(some, ways[place % len(ways)]) for ways in (BATCHED, BEAMS)]
        batches += [([one], way) for i, one in enumerate(some) for way in ({"streamer": None}, ALONE[i % len(ALONE)])]
        for batch, way in batches:
            options = dict(way)
            if "assistant_model" in way:
                options["assistant_model"] = model
            streamed = Streamed()
            if "streamer" in way:
                options["streamer"] = streamed
            most = max(room for _, _, room in batch)
            mixed = [automaton for _, automaton, _ in batch] + ([None] if len(batch) > 1 else [])
            processor = logits_processor(mixed, table, max_tokens=most)
            ids = torch.randint(2, 320, (len(mixed), 5))
            options |= {"max_new_tokens": most, "pad_token_id": 1, "eos_token_id": 1, "logits_processor": [processor]}
            rows = model.generate(ids, attention_mask=torch.ones_like(ids), **{"do_sample": False, **options})
            copies = len(rows) // len(mixed)
            for index, row in enumerate(rows[: len(batch) * copies, 5:].tolist()):
                seen += judged(batch[index // copies], until_end(row), table.vocabulary, way)
            if "streamer" in way:
                assert streamed.ids[5:] == rows[0, 5:].tolist()
    assert seen > 3.5 * count  # of some the judge cannot tell


class Streamed:
    """A streamer of transformers that keeps what it is given."""

    def __init__(self) -> None:
        self.ids: list[int] = []

    def put(self, value: Any) -> None:
        self.ids += value.flatten().tolist()

    def end(self) -> None:
        pass


@pytest.mark.engine("torch", "transformers", "onnx", "onnxruntime_genai")
@COUNTS
def test_onnxruntime_genai_in_batches(count: int, folder: Path, tmp_path: Path) -> None:
    import onnxruntime_genai as og

    from guideway.integrations.onnx_genai import logits_processor

    model, table = og.Model(str(genai_folder(folder, tmp_path / "genai"))), Tokenizer.of(folder)
    chance, seen = np.random.default_rng(1), 0
    for place, begin in enumerate(range(0, count, 4)):
        batch = drawn(1000 * begin, 4, table.vocabulary)
        most = max(room for _, _, room in batch)
        params = og.GeneratorParams(model)
        how = {"do_sample": True, "temperature": 1.4, "top_k": 50, "random_seed": place} if place % 2 else {}
        params.set_search_options(max_length=5 + most, batch_size=5, **how)
        generator = og.Generator(model, params)
        generator.append_tokens(chance.integers(2, 320, (5, 5)).astype(np.int32))
        processor = logits_processor([*(automaton for _, automaton, _ in batch), None], table, max_tokens=most)
        while not generator.is_done():
            processor.step(generator)
        for index, case in enumerate(batch):
            seen += judged(case, until_end([*generator.get_sequence(index)[5:].tolist(), 1]), table.vocabulary, how)
    assert seen > count * 0.8


@pytest.mark.engine("mlx", "mlx_lm", "torch", "transformers", "onnx")
@COUNTS
def test_mlx_in_a_batch_that_rows_join_and_leave(count: int, folder: Path) -> None:
    from mlx_lm.generate import BatchGenerator
    from mlx_lm.sample_utils import make_sampler
    from mlx_lm.utils import load_model

    from guideway.integrations.mlx import logits_processor

    model, table = load_model(folder)[0], Tokenizer.of(folder)
    cases, chance = drawn(5000, count, table.vocabulary), random.Random(2)
    batch = BatchGenerator(model, stop_tokens=[[1]], completion_batch_size=4, prefill_batch_size=2)
    waiting: dict[int, tuple[Case, list[int]]] = {}
    for index, case in enumerate(cases):
        ids = [chance.randrange(2, 320) for _ in range(4)]
        how = {"samplers": [make_sampler(temp=1.3)]} if index % 2 else {}
        processors = [[logits_processor(case[1], table, max_tokens=case[2])]]
        (number,) = batch.insert([ids], max_tokens=[case[2]], logits_processors=processors, **how)
        waiting[number] = (case, [])
    seen = 0
    while waiting and (responses := batch.next_generated()):
        for response in responses:
            case, ids = waiting[response.uid]
            ids.append(int(response.token))
            if response.finish_reason:
                seen += judged(case, until_end(ids), table.vocabulary, "mlx")
                del waiting[response.uid]
    assert not waiting
    assert seen > count * 0.8


@pytest.mark.engine("llama_cpp", "gguf", "torch", "transformers", "onnx")
@COUNTS
def test_llama_cpp_streamed_and_sampled(count: int, folder: Path, tmp_path: Path) -> None:
    from llama_cpp import Llama

    from guideway.integrations.llama_cpp import logits_processor

    from ..helpers.gguf_models import write_gguf

    file, table = write_gguf(folder, tmp_path / "model.gguf"), Tokenizer.of(folder)
    llm = Llama(str(file), n_ctx=256, type_k=0, type_v=0, flash_attn=False, verbose=False, seed=1)
    chance, seen = random.Random(3), 0
    for place, case in enumerate(drawn(9000, count, table.vocabulary)):
        ids = [chance.randrange(2, 320) for _ in range(4)]
        with logits_processor(case[1], table, max_tokens=case[2]) as processor:
            found = []
            how = {"temp": 1.3, "top_k": 50} if place % 2 else {"temp": 0.0}
            for token_id in llm.generate(ids, logits_processor=both(processor), reset=True, **how):
                processor.check()
                found.append(token_id)
                if token_id == 1:
                    break
        seen += judged(case, until_end(found), table.vocabulary, how)
    assert seen > count * 0.8


def both(processor: Callable[[Any, Any], Any]) -> Any:
    from llama_cpp import LogitsProcessorList

    return LogitsProcessorList([processor])
