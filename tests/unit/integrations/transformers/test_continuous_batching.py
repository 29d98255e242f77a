"""Constraints in the continuous batching of transformers: requests join and leave, and errors end one request."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

import guideway as gw
from guideway.errors import BudgetTooSmallError, NoAllowedTokenError, ProcessorError
from guideway.testing import tiny_model
from guideway.tokenizers import Tokenizer

pytestmark = pytest.mark.engine("torch", "transformers", "psutil")
PROMPTS = ["the crab and", "def main(", "once there was another story"]
PATTERNS = ["[a-z]{4}", None, r"\d+(, \d+){2}", "(yes|no)", '\\{"name": "[a-z]{3,9}"\\}', "[a-z ]{20,30}"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Tokenizer]:
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    folder = tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3)
    return AutoModelForCausalLM.from_pretrained(folder).eval(), Tokenizer.of(folder)


def manager_of(loaded: Any, **options: Any) -> Any:
    from transformers import ContinuousBatchingConfig, GenerationConfig

    given = {"eos_token_id": 1, "do_sample": False, "max_new_tokens": 40, **options}
    config = ContinuousBatchingConfig(num_blocks=64, page_size=32, max_batch_tokens=96)
    return loaded[0].init_continuous_batching(GenerationConfig(**given), config)


def results(manager: Any, numbers: list[str]) -> Iterator[tuple[str, Any]]:
    waiting, until = set(numbers), time.monotonic() + 100
    while waiting and time.monotonic() < until:
        assert manager.background_thread_status.fatal_error is None, manager.background_thread_status.fatal_error
        result = manager.get_result(timeout=1)
        if result is not None and result.is_finished() and result.request_id in waiting:
            waiting.discard(result.request_id)
            yield result.request_id, result
    assert not waiting


def text_of(loaded: Any, result: Any) -> str:
    assert result.generated_tokens[-1] == 1, "it did not end"
    return str(loaded[1].vocabulary.bytes_of(result.generated_tokens[:-1]).decode())


def test_requests_that_join_and_leave(loaded: Any) -> None:
    from guideway.integrations.transformers import continuous_constraints

    for options in ({}, {"do_sample": True, "temperature": 1.4, "top_k": 30}):
        manager = manager_of(loaded, **options)
        constraints = continuous_constraints(manager, loaded[1])
        manager.start()
        wanted: dict[str, str | None] = {}
        try:
            for index, pattern in enumerate(PATTERNS * 3):
                ids = loaded[1].encode(PROMPTS[index % 3], special=True)
                source = None if pattern is None else gw.Regex(pattern)
                wanted[constraints.add_request(ids, source, max_new_tokens=40 if pattern else 7)] = pattern
                if index % 4 == 3:
                    time.sleep(0.05)  # other requests have started by then
            for number, result in results(manager, list(wanted)):
                assert result.error is None
                pattern = wanted[number]
                assert pattern is None or re.fullmatch(pattern, text_of(loaded, result)), pattern
            late = constraints.add_request([0, 5], gw.Regex("[ab]{3}"), max_new_tokens=5)
            for _, result in results(manager, [late]):
                assert re.fullmatch("[ab]{3}", text_of(loaded, result))
        finally:
            manager.stop(block=True)
        assert not constraints.errors
        assert len(constraints._live) <= 1  # what has finished is forgotten
        assert constraints.timings.calls > 20


def test_an_error_ends_one_request(loaded: Any) -> None:
    from transformers import LogitsProcessor

    from guideway.integrations.transformers import continuous_constraints

    manager = manager_of(loaded)
    constraints = continuous_constraints(manager, loaded[1])

    class Spoiler(LogitsProcessor):  # type: ignore[misc]  # transformers gives no types
        calls = 0

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            self.calls += 1
            scores = scores.clone()
            if self.calls == 4:
                scores[0] = float("-inf")
            return scores

    manager.logit_processor.logits_processor.insert(0, Spoiler())
    manager.start()
    try:
        added = [constraints.add_request([0, 5, 9 + i], gw.Regex("[a-z]{12}"), max_new_tokens=14) for i in range(3)]
        found = dict(results(manager, added))
    finally:
        manager.stop(block=True)
    failed = [number for number in added if found[number].error]
    assert len(failed) == 1
    assert "no token is left" in found[failed[0]].error
    assert isinstance(constraints.errors[failed[0]], NoAllowedTokenError)
    assert len(found[failed[0]].generated_tokens) < 12
    for number in set(added) - set(failed):
        assert re.fullmatch("[a-z]{12}", text_of(loaded, found[number]))


def test_refused_managers(loaded: Any) -> None:
    from guideway.integrations.transformers import continuous_constraints

    manager = manager_of(loaded)
    constraints = continuous_constraints(manager, loaded[1])
    with pytest.raises(BudgetTooSmallError):
        constraints.add_request([0, 5], gw.Regex("[a-z]{9}"), max_new_tokens=3)
    with pytest.raises(gw.errors.InvalidConstraintError):
        constraints.add_request([0, 5], gw.Regex("("))
    manager.start()
    try:
        with pytest.raises(ProcessorError, match="has started"):
            continuous_constraints(manager, loaded[1])
    finally:
        manager.stop(block=True)
    other = manager_of(loaded)
    other.continuous_batching_config.use_async_batching = True
    with pytest.raises(ProcessorError, match="use_async_batching=False"):
        continuous_constraints(other, loaded[1])
