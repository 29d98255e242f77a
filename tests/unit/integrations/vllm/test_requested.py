"""The constraint and the token budget in the `extra_args` of a request, without vLLM."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import guideway as gw
from guideway.errors import BudgetTooSmallError, InvalidConstraintError
from guideway.integrations.vllm.checks import runnable
from guideway.integrations.vllm.requested import budget_of, follower_of, requested_in_extra_args
from guideway.tokenizers import Tokenizer

TOKENIZER = Tokenizer.of(gw.Vocabulary([b"a", b"b", b""], eos_ids=[2], special_ids=[2]))


def params(**extra: object) -> Any:
    return SimpleNamespace(extra_args=extra, all_stop_token_ids=())


def test_the_budget_of_a_request() -> None:
    given = params(guideway_regex="[ab]{2,9}", guideway_max_tokens="4")
    assert requested_in_extra_args(given) == ("regex", "[ab]{2,9}")
    assert budget_of(given) == 4
    follower = follower_of(given, TOKENIZER)
    assert follower is not None
    assert follower.max_tokens == 4
    free = follower_of(params(guideway_regex="[ab]{2,9}"), TOKENIZER)
    assert free is not None
    assert free.max_tokens is None


def test_wrong_budgets() -> None:
    with pytest.raises(InvalidConstraintError, match="guideway_max_tokens must be a positive integer, got 0"):
        requested_in_extra_args(params(guideway_regex="a", guideway_max_tokens=0))
    with pytest.raises(InvalidConstraintError, match="guideway_max_tokens needs a constraint"):
        requested_in_extra_args(params(guideway_max_tokens=3))
    failed = follower_of(params(guideway_regex="[ab]{20}", guideway_max_tokens=3), TOKENIZER)
    assert failed is not None
    assert isinstance(failed.error, BudgetTooSmallError)


@pytest.mark.parametrize(("drafts", "second_runner"), [(False, False), (True, True), (True, False)])
def test_a_request_that_no_processor_would_constrain_is_refused(
    drafts: bool, second_runner: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`runnable` refuses a constraint in `extra_args` only for the V1 runner with speculative decoding.

    vLLM loads no logits processors for this runner. The test runs without vLLM: a module with the class defined here
    replaces `vllm.exceptions`.
    """

    class VLLMValidationError(ValueError):
        def __init__(self, message: str, parameter: str | None = None) -> None:
            super().__init__(message)
            self.parameter = parameter

    monkeypatch.setitem(sys.modules, "vllm.exceptions", SimpleNamespace(VLLMValidationError=VLLMValidationError))
    config = SimpleNamespace(speculative_config=object() if drafts else None, use_v2_model_runner=second_runner)
    processor, given = SimpleNamespace(vllm_config=config), params(guideway_regex="a")
    assert runnable(lambda *_: "checked", processor, params(), ("generate",)) == "checked"
    assert runnable(lambda *_: "checked", processor, SimpleNamespace(), ("generate",)) == "checked"  # pooling
    if drafts and not second_runner:
        with pytest.raises(VLLMValidationError, match="no logits processors with speculative decoding") as caught:
            runnable(lambda *_: "checked", processor, given, ("generate",))
        assert caught.value.parameter == "vllm_xargs"
    else:
        assert runnable(lambda *_: "checked", processor, given, ("generate",)) == "checked"
