"""vLLM with speculative decoding by n-grams of the prompt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from guideway.testing import tiny_model
from tests.helpers.vllm import load_llm
from tests.unit.integrations.vllm.test_backend import SCHEMA, free, processed, structured

pytestmark = [pytest.mark.engine("vllm"), pytest.mark.filterwarnings("default")]


def test_drafts_under_a_constraint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Drafts are copied from the prompt, which contains texts that the constraint accepts and texts that it refuses."""
    drafts = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
    llm = load_llm(tiny_model("llama", tmp_path, seed=3), speculative_config=drafts)
    from guideway.integrations.vllm.backend import GuidewayGrammar

    counts = {"rollback": 0, "validate_tokens": 0}
    for name in counts:
        count(GuidewayGrammar, name, counts)
    prompt = '{"name": "abcabcabc", "age": 12} {"name": "abcabcabc", "age": 12} '
    params = [structured(seed, json=SCHEMA) for seed in range(6)] + [structured(regex="(abc){20}[0-9]{3}"), free()]
    found = [one.outputs[0] for one in llm.generate([prompt] * len(params), params, use_tqdm=False)]
    for one in found[:6]:
        gw.JsonSchema(SCHEMA).parse(one.text)
        assert one.finish_reason == "stop"
    assert re.fullmatch("(abc){20}[0-9]{3}", found[6].text)
    assert counts["validate_tokens"] > 10
    assert counts["rollback"] > 10
    assert "ends early" not in caplog.text
    if llm.llm_engine.vllm_config.use_v2_model_runner:
        asked = [processed(seed, regex="(abc){20}[0-9]{3}") for seed in range(4)]
        for one in llm.generate([prompt] * 4, [*asked], use_tqdm=False):
            assert re.fullmatch("(abc){20}[0-9]{3}", one.outputs[0].text)
        return
    # The V1 runner loads no logits processors here, so a constraint for them would have no effect.
    from vllm.exceptions import VLLMValidationError

    with pytest.raises(VLLMValidationError, match="no logits processors with speculative decoding"):
        llm.generate([prompt], [processed(regex="abc")], use_tqdm=False)


def count(owner: Any, name: str, counts: dict[str, int]) -> None:
    """How often a method of a class is called, from now on."""
    original = getattr(owner, name)

    def counted(self: Any, *given: Any) -> Any:
        counts[name] += 1
        return original(self, *given)

    setattr(owner, name, counted)
