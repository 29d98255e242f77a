"""Reasoning parsers of vLLM: reasoning is unconstrained, and the constraint begins after it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import guideway as gw
from tests.helpers.vllm import THOUGHT, has_device, load_llm, serve, thinking_model
from tests.unit.integrations.vllm.test_backend import SCHEMA, free, structured
from tests.unit.integrations.vllm.test_drafts import count

pytestmark = [pytest.mark.engine("vllm", "openai"), pytest.mark.filterwarnings("default")]

PATTERN = "[a-c]{3,5}"
EOS, ABC = 1, (66, 67, 68)
LONGEST = {"regex": 8, "json": 120}  # at least the tokens of an answer
DRAFTS = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1}


def engine(folder: Path, drafts: Any = None) -> Any:
    settings = {"backend": "guideway", "reasoning_parser": "deepseek_r1"}
    return load_llm(thinking_model(folder), structured_outputs_config=settings, speculative_config=drafts)


def thinking(seed: int, **asked: Any) -> Any:
    """Returns a request with a bias towards the end of the reasoning."""
    params = structured(seed, **asked)
    params.logit_bias = {THOUGHT: 5.0}
    return params


def drafted(seed: int, **asked: Any) -> Any:
    """The same for speculative decoding, where vLLM accepts no bias: only a few tokens are allowed."""
    params = structured(seed, **asked)
    params.allowed_token_ids = [EOS, *ABC, THOUGHT]
    return params


def split(tokens: Any) -> tuple[list[int], list[int]]:
    """Returns the tokens of the reasoning and of the answer, without the marker and the end token."""
    found = list(tokens)
    at = found.index(THOUGHT)
    return found[:at], [one for one in found[at + 1 :] if one != EOS]


def check(llm: Any, prompt: str, params: list[Any]) -> int:
    """Checks that each text matches its constraint after the reasoning; returns the number of reasoning tokens."""
    found = [one.outputs[0] for one in llm.generate([prompt] * len(params), params, use_tqdm=False)]
    tokenizer, thought = llm.get_tokenizer(), 0
    for asked, one in zip(params, found, strict=True):
        if asked.structured_outputs is None or THOUGHT not in one.token_ids:  # a request may end before its answer
            continue
        before, behind = split(one.token_ids)
        longest = LONGEST["regex" if asked.structured_outputs.regex else "json"]
        if len(before) + longest > asked.max_tokens:  # too few tokens can be left for the answer
            continue
        text = tokenizer.decode(behind)
        if asked.structured_outputs.regex:
            assert re.fullmatch(PATTERN, text), text
        else:
            gw.JsonSchema(SCHEMA).parse(text)
        assert one.finish_reason == "stop", one.token_ids
        thought += len(before)
    return thought


def test_constraint_begins_after_reasoning(tmp_path: Path) -> None:
    llm = engine(tmp_path)
    params = [one for seed in range(10) for one in (thinking(seed, regex=PATTERN), thinking(seed, json=SCHEMA), free())]
    assert check(llm, "the crab", params) > 100
    at_once = [thinking(seed, regex=PATTERN) for seed in range(4)]  # the prompt has ended them already
    for one in llm.generate(["<think>so</think>"] * 4, at_once, use_tqdm=False):
        assert re.fullmatch(PATTERN, one.outputs[0].text)


def test_drafts_across_the_end_of_thoughts(tmp_path: Path) -> None:
    """Drafts come from the prompt; the marker in it separates the free part from the constrained part."""
    llm = engine(tmp_path, DRAFTS)
    from guideway.integrations.vllm.backend import GuidewayGrammar

    counts = {"validate_tokens": 0, "rollback": 0}
    for name in counts:
        count(GuidewayGrammar, name, counts)
    params = [drafted(seed, regex=PATTERN) for seed in range(60)]
    assert check(llm, "abcabcab</think>abc</think>cab</think>ab<think>abc", [*params, free()]) > 50
    least = 3 if has_device() else 10  # a device draws other tokens
    assert counts["validate_tokens"] > least
    assert counts["rollback"] > least


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = thinking_model(tmp_path_factory.mktemp("model"))
    template = "{{ messages[0].content }}<think>"
    with serve(folder, "--reasoning-parser", "deepseek_r1", "--chat-template", template) as address:
        yield address


def test_reasoning_over_http(server: str) -> None:
    """Reasoning and answer are separate, whole and streamed. The answer matches the constraint."""
    import openai

    with openai.OpenAI(base_url=server, api_key="none", max_retries=0, timeout=60) as client:
        answers = 0
        for seed in range(8):
            body = {"structured_outputs": {"regex": PATTERN}, "allowed_token_ids": [EOS, *range(66, 90), THOUGHT]}
            given: Any = {"model": "tiny", "messages": [{"role": "user", "content": "the crab"}], "max_tokens": 300}
            given |= {"seed": seed, "temperature": 1.0, "logit_bias": {str(THOUGHT): 1}, "extra_body": body}
            whole = client.chat.completions.create(**given).choices[0].message
            pieces = [
                one.choices[0].delta for one in client.chat.completions.create(**given, stream=True) if one.choices
            ]
            streamed = "".join(one.content or "" for one in pieces)
            thoughts = "".join(getattr(one, "reasoning", None) or "" for one in pieces)
            assert streamed == (whole.content or "")
            assert thoughts == (getattr(whole, "reasoning", None) or "")
            if whole.content is not None:
                assert re.fullmatch(PATTERN, whole.content)
                answers += bool(thoughts) and not re.fullmatch(PATTERN, thoughts)
        assert answers > 3
