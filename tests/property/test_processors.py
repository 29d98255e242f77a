"""Random schemas in the engines' own loops: every output is valid, however it was decoded."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.errors import ConstraintError
from guideway.testing import tiny_model
from guideway.vocabulary import Tokenizer

from .judge import Judge
from .keywords import Drawer

ROOM = 24
"""Tokens beyond the shortest output."""
WAYS: list[dict[str, Any]] = [
    {},
    {"do_sample": True, "temperature": 1.5},
    {"num_beams": 3},
    {"do_sample": True, "num_return_sequences": 2},
]
ALONE: list[dict[str, Any]] = [{"prompt_lookup_num_tokens": 4}, {"assistant_model": None}]


def drawn(first: int, count: int, vocabulary: gw.Vocabulary, longest: int) -> list[tuple[Any, gw.Automaton, int]]:
    """So many schemas that compile, their automata, and how many tokens their outputs may have."""
    found: list[tuple[Any, gw.Automaton, int]] = []
    seed = first
    while len(found) < count:
        schema = Drawer(random.Random(seed)).document()
        seed += 1
        try:
            automaton = gw.compile(gw.JsonSchema(schema), vocabulary, cache=False)
        except ConstraintError:
            continue
        if (needed := automaton.matcher().tokens_to_finish()) + ROOM <= longest:
            found.append((schema, automaton, needed + ROOM))
    return found


@pytest.mark.engine("torch", "transformers")
@pytest.mark.parametrize("count", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_transformers(count: int, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    from guideway.engines.transformers import logits_processor

    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = tiny_model("llama", tmp_path)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    named = {"eos_token": "</s>", "bos_token": "<s>", "pad_token": "</s>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **named)
    vocabulary = Tokenizer.of(tokenizer).vocabulary
    judged = 0
    for place, begin in enumerate(range(0, count, 4)):
        some = drawn(1000 * begin, 4, vocabulary, 150)
        batches = [(some, WAYS[place % len(WAYS)])] + [([one], ALONE[place % 2]) for one in some[:1]]
        for batch, way in batches:
            options = {name: model if name == "assistant_model" else value for name, value in way.items()}
            most = max(room for _, _, room in batch)
            processor = logits_processor([automaton for _, automaton, _ in batch], tokenizer, max_tokens=most)
            ids = torch.randint(2, 320, (len(batch), 5))
            options |= {"max_new_tokens": most, "pad_token_id": 1, "logits_processor": [processor]}
            rows = model.generate(ids, attention_mask=torch.ones_like(ids), **{"do_sample": False, **options})
            copies = len(rows) // len(batch)
            for index, row in enumerate(rows[:, 5:].tolist()):
                assert 1 in row, "it did not end"
                text = vocabulary.bytes_of(row[: row.index(1)]).decode()
                try:
                    good = Judge(batch[index // copies][0])(text)
                except (ArithmeticError, RecursionError):  # the judge cannot tell
                    continue
                judged += 1
                assert good, (batch[index // copies][0], text, way)
    assert judged > count
