"""200 requests with hostile constraints and 8 ordinary ones in vLLM: the work of the backend in each step."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest

import guideway as gw
from guideway.jsontext.encoder import write_json
from guideway.testing import tiny_model
from tests.helpers.hostile_constraints import PATTERNS, SCHEMAS
from tests.helpers.vllm import load_llm

# vLLM and its imports emit many warnings that guideway does not cause.
pytestmark = [pytest.mark.engine("vllm"), pytest.mark.filterwarnings("default")]

ROWS, HOSTILE, STEPS = 8, 200, 80
ORDINARY = rf"([a-z]{{3,9}} ){{6}}[0-9]{{{STEPS}}}"
MOST_GROWTH = 0.020  # seconds of CPU time, of the 99th percentile


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_llm(tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3), max_num_seqs=ROWS + HOSTILE)


def asked(seed: int, **constraint: Any) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    options = StructuredOutputsParams(**constraint)
    return SamplingParams(max_tokens=200, temperature=1.0, seed=seed, structured_outputs=options)


def hostile(llm: Any) -> list[Any]:
    """Return hostile requests. vLLM refuses those whose constraint cannot be compiled, before they join a batch."""
    from guideway.integrations.vllm.requested import automaton_of, tokenizer_of

    specs = [("regex", pattern) for pattern in PATTERNS.values()]
    specs += [("json", write_json(schema)) for schema in SCHEMAS.values()]
    tokenizer, accepted = tokenizer_of(llm.get_tokenizer()), []
    for kind, spec in specs:
        try:
            automaton_of((kind, spec), tokenizer)
        except gw.GuidewayError:
            continue
        accepted.append((kind, spec))
    rng = random.Random(1)
    return [asked(number, **dict([rng.choice(accepted)])) for number in range(HOSTILE)]


def run(llm: Any, others: list[Any]) -> tuple[list[list[int]], list[float]]:
    """Return the tokens of the ordinary requests, and the CPU time of the backend in each step."""
    from guideway.integrations.vllm.backend import GuidewayGrammar

    parts: list[float] = []
    steps: list[float] = []

    def timed(name: str) -> Any:
        function = getattr(GuidewayGrammar, name)

        def call(*arguments: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*arguments)
            finally:
                parts.append(time.thread_time() - start)

        return patch.object(GuidewayGrammar, name, call)

    step = llm.llm_engine.step

    def counted() -> Any:
        parts.clear()
        found = step()
        steps.append(sum(parts))
        return found

    params = [asked(number, regex=ORDINARY) for number in range(ROWS)] + others
    prompts = [f"the crab {number}" for number in range(len(params))]
    with timed("fill_bitmask"), timed("accept_tokens"), patch.object(llm.llm_engine, "step", counted):
        found = llm.generate(prompts, params, use_tqdm=False)
    return [list(one.outputs[0].token_ids) for one in found[:ROWS]], steps


def test_ordinary_rows_with_hostile_rows(llm: Any) -> None:
    def percentile(times: Sequence[float]) -> float:
        ordered = sorted(times)
        return ordered[int(0.99 * (len(ordered) - 1))]

    alone, before = run(llm, [])
    beside, after = run(llm, hostile(llm))
    shown = f"p99 {percentile(before) * 1e3:.1f} -> {percentile(after) * 1e3:.1f} ms, {len(after)} steps"
    print(shown)
    assert beside == alone
    assert percentile(after) - percentile(before) <= MOST_GROWTH, shown
