"""Constraints in `generate` of transformers: every decoding mode, and errors."""

from __future__ import annotations

import re
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.errors import BudgetTooSmallError, NoAllowedTokenError, ProcessorError, ProcessorReuseError
from guideway.generation import Model
from guideway.testing import processor_contract, tiny_model
from guideway.tokenizers import Tokenizer

pytestmark = pytest.mark.engine("torch", "transformers")
PATTERN = r'\{"name": "[a-z]{3,9}", "age": [1-9][0-9]?, "tags": \["[a-z]+"(, "[a-z]+"){0,3}\]\}'
PROMPTS = ["the crab and", "def main(", "été", "once there was another story"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Model]:
    """The model and tokenizer of transformers, and ours over the same weights."""
    import torch
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    folder = tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(Path(folder) / "tokenizer.json"), eos_token="</s>", bos_token="<s>", pad_token="</s>"
    )
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    return model, tokenizer, Model(gw.load(f"hf:{folder}").engine, Tokenizer.of(tokenizer))


def generated(loaded: Any, prompts: list[str], processor: Any, **options: Any) -> list[list[int]]:
    model, tokenizer, _ = loaded
    batch = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left", return_token_type_ids=False)
    options = {"max_new_tokens": 120, "do_sample": False, **options}
    found = model.generate(**batch, logits_processor=[processor], pad_token_id=tokenizer.pad_token_id, **options)
    return [row[batch["input_ids"].shape[1] :].tolist() for row in found]


def text_of(loaded: Any, ids: list[int]) -> str:
    table = loaded[2].vocabulary
    ends = [i for i, token in enumerate(ids) if token in table.eos_ids]
    assert ends, "it did not end"
    return table.bytes_of(ids[: ends[0]]).decode()


def test_contract() -> None:
    import torch

    from guideway.integrations.transformers import logits_processor

    for dtype, in_place in product((torch.float32, torch.float64), (False, True)):
        processor_contract(
            partial(logits_processor, in_place=in_place),
            lambda p, ids, logits, dtype=dtype: p(torch.tensor(ids), torch.tensor(logits, dtype=dtype)).numpy(),
            rounds=20,
        )


MODES: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sample": {"do_sample": True, "temperature": 1.5, "top_k": 20},
    "several samples": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"num_beams": 4},
    "beams that sample": {"num_beams": 3, "do_sample": True},
    "prompt lookup": {"prompt_lookup_num_tokens": 4},
    "no cache": {"use_cache": False},
}


@pytest.mark.parametrize("mode", MODES)
def test_texts_of_every_decoding_mode_fit_the_constraint(loaded: Any, mode: str) -> None:
    import torch

    from guideway.integrations.transformers import logits_processor

    torch.manual_seed(1)
    prompts = PROMPTS[:1] if mode == "prompt lookup" else PROMPTS
    for found in generated(
        loaded, prompts, logits_processor(gw.Regex(PATTERN), loaded[1], max_tokens=120), **MODES[mode]
    ):
        assert re.fullmatch(PATTERN, text_of(loaded, found))


def test_greedy_is_that_of_our_loop(loaded: Any) -> None:
    from guideway.integrations.transformers import logits_processor

    model, tokenizer, ours = loaded
    automaton = gw.compile(gw.Regex(PATTERN), ours.vocabulary)
    for prompt in PROMPTS:
        ids = tokenizer(prompt)["input_ids"]
        session = ours.session()
        session.feed(ids)
        session.constrain(automaton.matcher())
        start = len(session)
        while not (session.matcher and session.matcher.is_finished):
            session.infer(tokens_left=120 - len(session) + start)
        ways = [{}, {"prompt_lookup_num_tokens": 3}, {"assistant_model": model}]
        for options in ways:
            (found,) = generated(loaded, [prompt], logits_processor(automaton, tokenizer, max_tokens=120), **options)
            assert found == session.tokens[start:], options


def test_a_batch_with_a_constraint_for_each_prompt(loaded: Any) -> None:
    from guideway.integrations.transformers import logits_processor

    patterns = ["[a-z]{4}", None, r"\d+(, \d+){2}", "(yes|no)"]
    constraints = [None if one is None else gw.Regex(one) for one in patterns]
    for options in ({}, {"num_beams": 2}, {"do_sample": True, "num_return_sequences": 2}):
        processor = logits_processor(constraints, loaded[1], max_tokens=30)
        found = generated(loaded, PROMPTS, processor, max_new_tokens=30, **options)
        copies = len(found) // len(PROMPTS)
        for index, ids in enumerate(found):
            pattern = patterns[index // copies]
            assert pattern is None or re.fullmatch(pattern, text_of(loaded, ids))
    assert processor.timings.calls > 3
    assert processor.timings.mask > 0


def test_functions_run_before_and_the_model_s_own_logits_are_kept(loaded: Any) -> None:
    from guideway.integrations.transformers import logits_processor

    model, tokenizer, ours = loaded
    seen: list[tuple[int, ...]] = []

    def liking_seven(input_ids: Any, scores: Any) -> Any:
        seen.append(tuple(scores.shape))
        scores = scores.clone()
        scores[:, ours.tokenizer.encode("7")[0]] += 1000
        return scores

    processor = logits_processor(gw.Regex("[a-z][0-9]{3}"), tokenizer, before=[liking_seven])
    batch = tokenizer(["a"], return_tensors="pt", return_token_type_ids=False)
    found = model.generate(
        **batch,
        logits_processor=[processor],
        output_logits=True,
        return_dict_in_generate=True,
        max_new_tokens=9,
        do_sample=False,
    )
    ids = found.sequences[0, batch["input_ids"].shape[1] :].tolist()
    assert re.fullmatch("[a-z]777", text_of(loaded, ids))
    assert seen == [(1, 320)] * len(ids)
    assert all(np.isfinite(logits.numpy()).all() for logits in found.logits)


def test_scores_are_modified_in_place_only_if_unused(loaded: Any) -> None:
    from guideway.integrations.transformers import logits_processor
    from guideway.masks.torch import TorchMasks

    class Noting(TorchMasks):
        def __call__(self, logits: Any, rows: Any, held: Any) -> Any:
            seen.add(self.in_place)
            return super().__call__(logits, rows, held)

    seen = set[bool]()
    kept = {"return_dict_in_generate": True}
    for options, written in (
        ({}, {True}),
        ({"num_beams": 2}, {True}),
        ({"output_scores": True, **kept}, {True}),
        ({"output_logits": True, **kept}, {False}),
        ({"prompt_lookup_num_tokens": 3}, {True, False}),  # drafting reads them again, verification does not
    ):
        processor = logits_processor(gw.Regex("(ab|cd){9}"), loaded[1])
        processor._apply = Noting()
        batch = loaded[1](["abcdabababcdab"], return_tensors="pt", return_token_type_ids=False)
        seen.clear()
        loaded[0].generate(**batch, logits_processor=[processor], max_new_tokens=20, do_sample=False, **options)
        assert seen == written, options


def test_errors_surface(loaded: Any) -> None:
    from guideway.integrations.transformers import logits_processor

    _, tokenizer, _ = loaded
    processor = logits_processor(gw.Regex("[a-z]{20}"), tokenizer)
    with pytest.raises(
        NoAllowedTokenError, match="another processor forbids all tokens"
    ):  # it forces the end at the last token
        generated(loaded, PROMPTS[:1], processor, max_length=12, max_new_tokens=None, forced_eos_token_id=1)
    processor = logits_processor(gw.Regex("[a-z]{3}"), tokenizer)
    generated(loaded, PROMPTS[:1], processor)
    with pytest.raises(ProcessorReuseError, match="each generate"):
        generated(loaded, PROMPTS[3:], processor)
    with pytest.raises(ProcessorError, match="got 2 constraints for 3 rows"):
        generated(loaded, PROMPTS[:3], logits_processor([gw.Regex("a"), None], tokenizer))
    with pytest.raises(BudgetTooSmallError):
        logits_processor(gw.Regex("[a-z]{999}"), tokenizer, max_tokens=3)
    with pytest.raises(gw.errors.InvalidConstraintError):
        logits_processor(gw.Regex("("), tokenizer)


def test_ids_of_ahead_are_copied_once(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU a second copy would wait for the model. A changed tensor is read again."""
    import torch

    from guideway.integrations.transformers import logits_processor, processor as module

    copies = list[int]()

    def counted(ids: Any) -> Any:
        copies.append(len(ids))
        return ids.numpy().copy()

    monkeypatch.setattr(module, "_on_host", counted)
    with torch.no_grad():
        one = logits_processor(gw.Regex("[a-z]{40}"), loaded[1])
        scores = torch.zeros(1, 320, dtype=torch.float64)
        ids = torch.tensor([[5, 6]])
        legal = [int(one(ids, scores).argmax())]
        for _ in range(5):
            ids = torch.cat([ids, torch.tensor([[legal[-1]]])], 1)
            one.ahead(ids, scores)
            before = len(copies)
            legal.append(int(one(ids, scores).argmax()))
            assert len(copies) == before
        ids = torch.cat([ids, torch.tensor([[legal[-1]]])], 1)
        one.ahead(ids, scores)
        ids[0, -1] = 1  # the end token, which is not allowed yet: the row is free afterwards
        before = len(copies)
        one(ids, scores)
        assert len(copies) == before + 1
