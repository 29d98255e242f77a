"""Constraints in the loop of llama-cpp-python: completions, chat, and errors that C would discard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.errors import BudgetTooSmallError, NoAllowedTokenError, ProcessorError, ProcessorReuseError
from guideway.generation import Model
from guideway.testing import processor_contract, tiny_model
from guideway.tokenizers import Tokenizer

pytestmark = pytest.mark.engine("llama_cpp", "gguf")
PATTERN = r'\{"name": "[a-z]{3,9}", "age": [1-9][0-9]?, "tags": \["[a-z]+"(, "[a-z]+"){0,3}\]\}'
PROMPTS = ["the crab and", "def main(", "once there was another story"]


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import llama_cpp

    from tests.helpers.gguf_models import write_gguf

    folder = tmp_path_factory.mktemp("model")
    file = write_gguf(tiny_model("llama", folder, seed=3), folder / "model.gguf")
    return llama_cpp.Llama(str(file), n_ctx=400, type_k=0, type_v=0, flash_attn=False, verbose=False)


def test_contract() -> None:
    from guideway.integrations.llama_cpp import logits_processor

    def call(processor: Any, ids: list[list[int]], logits: Any) -> Any:
        strided = np.zeros((logits.shape[1], 3), np.float32)  # as llama.cpp has them, between ids and probabilities
        strided[:, 1] = logits[0]
        found = processor(np.array(ids[0], np.intc), strided[:, 1])
        processor.check()
        return np.array([found])

    processor_contract(logits_processor, call, rows=1, rounds=30)


def test_completions_are_those_of_our_loop(llm: Any) -> None:
    from guideway.integrations.llama_cpp import logits_processor

    ours = Model(gw.load(f"gguf:{Path(llm.model_path)}", context_size=400).engine, Tokenizer.of(llm))
    automaton = gw.compile(gw.Regex(PATTERN), ours.vocabulary)
    for prompt in PROMPTS:
        ids = llm.tokenize(prompt.encode())
        with logits_processor(automaton, llm, max_tokens=120) as processor:
            found = llm(ids, max_tokens=120, temperature=0, logits_processor=[processor])["choices"][0]
        session = ours.session()
        session.feed(ids)
        session.constrain(automaton.matcher())
        start = len(session)
        while session.matcher and not session.matcher.is_finished:
            session.infer(tokens_left=120 - len(session) + start)
        assert found["text"] == ours.vocabulary.bytes_of(session.tokens[start:-1]).decode()
        assert found["finish_reason"] == "stop"
        assert processor.timings.calls == len(session) - start


def test_sampling_streams_and_chat(llm: Any) -> None:
    from guideway.integrations.llama_cpp import logits_processor

    for seed in range(5):
        with logits_processor(gw.Regex(PATTERN), llm, max_tokens=120) as processor:
            found = llm("été", max_tokens=120, temperature=1.5, seed=seed, logits_processor=[processor])
        assert re.fullmatch(PATTERN, found["choices"][0]["text"])
    with logits_processor(gw.Regex(PATTERN), llm, max_tokens=120) as processor:
        pieces = llm("été", max_tokens=120, stream=True, logits_processor=[processor])
        assert re.fullmatch(PATTERN, "".join(piece["choices"][0]["text"] for piece in pieces))
    with logits_processor(gw.Choice(["yes", "no"]), llm) as processor:
        found = llm.create_chat_completion([{"role": "user", "content": "crab?"}], logits_processor=[processor])
    assert found["choices"][0]["message"]["content"] in ("yes", "no")


def test_functions_run_before(llm: Any) -> None:
    from guideway.integrations.llama_cpp import logits_processor

    seven = llm.tokenize(b"7", add_bos=False)[-1]

    def liking_seven(input_ids: Any, scores: Any) -> Any:
        scores[seven] += 1000
        return scores

    with logits_processor(gw.Regex("[a-z][0-9]{3}"), llm, before=[liking_seven]) as processor:
        found = llm("a", temperature=0, logits_processor=[processor])
    assert re.fullmatch("[a-z]777", found["choices"][0]["text"])


def test_errors_surface(llm: Any) -> None:
    from guideway.integrations.llama_cpp import logits_processor

    def broken(input_ids: Any, scores: Any) -> Any:
        if len(input_ids) > 8:
            raise ZeroDivisionError("broken")
        return scores

    processor = logits_processor(gw.Regex("[a-z]{90}"), llm, before=[broken])
    found = llm("a", max_tokens=90, logits_processor=[processor])
    assert len(found["choices"][0]["text"]) < 40  # it ended at once
    with pytest.raises(ZeroDivisionError), processor:
        pass
    processor = logits_processor(gw.Regex("[a-z]{90}"), llm, before=[broken])
    with pytest.raises(ZeroDivisionError):
        llm("a", max_tokens=90, logits_processor=[processor], stopping_criteria=processor.check)
    nothing = logits_processor(gw.Regex("[a-z]{9}"), llm, before=[lambda ids, scores: np.full_like(scores, -np.inf)])
    with pytest.raises(NoAllowedTokenError, match="no token is left"), nothing:
        llm("a", logits_processor=[nothing])
    processor = logits_processor(gw.Regex("[a-z]{3}"), llm)
    llm(PROMPTS[0], logits_processor=[processor], stopping_criteria=processor.check)
    with pytest.raises(ProcessorReuseError, match="each generate"):
        llm(PROMPTS[1], logits_processor=[processor], stopping_criteria=processor.check)
    with pytest.raises(BudgetTooSmallError):
        logits_processor(gw.Regex("[a-z]{999}"), llm, max_tokens=3)
    llm.draft_model = object()
    try:
        with pytest.raises(ProcessorError, match="draft model"):
            logits_processor(gw.Regex("a"), llm)
    finally:
        llm.draft_model = None
