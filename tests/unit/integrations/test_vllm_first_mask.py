"""`compile_grammar` of the backend of vLLM computes the first mask and raises its error. vLLM's types may be stubs."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.compiler import CompileLimits
from guideway.errors import LimitExceededError
from guideway.integrations._common import follower
from guideway.tokenizers import Tokenizer
from tests.helpers.vllm_stub import backend_module

pytestmark = pytest.mark.engine("torch")

PATTERN = "(a|b)*a(a|b){14}"
TOKENS = [*(bytes([one]) for one in range(256)), *(b"a" * size for size in range(2, 40)), b""]
END = len(TOKENS) - 1
TABLE = gw.Vocabulary(TOKENS, eos_ids=[END], special_ids=[END])


def compiled() -> Any:
    module = backend_module()
    backend = module.GuidewayBackend(None, Tokenizer.of(TABLE), len(TOKENS))
    return backend.compile_grammar(module.StructuredOutputOptions.REGEX, PATTERN)


def limited(*_: object) -> gw.Automaton:
    """Return an automaton that is compiled, but whose first mask needs more states than the limit allows."""
    return gw.compile(gw.Regex(PATTERN), TABLE, cache=False, limits=CompileLimits(max_states=10))


def test_a_first_mask_that_exceeds_a_limit_is_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(backend_module(), "automaton_of", limited)
    with caplog.at_level(logging.ERROR), pytest.raises(LimitExceededError, match="max_states = 10"):
        compiled()
    assert "ends early" not in caplog.text


def test_a_first_mask_that_takes_too_long_is_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(follower, "MASK_SECONDS", -1.0)
    with caplog.at_level(logging.ERROR), pytest.raises(LimitExceededError, match="one mask took"):
        compiled()
    assert "ends early" not in caplog.text


def test_an_error_before_the_first_token_is_logged_as_that_of_a_request(caplog: pytest.LogCaptureFixture) -> None:
    grammar = compiled()
    row = np.zeros(grammar.follower.matcher.words, np.uint32)
    grammar.follower.fill(row)
    assert row.any()
    with caplog.at_level(logging.ERROR):
        grammar.follower.fail(LimitExceededError("too much"))
    assert "a request without output ends early" in caplog.text
    grammar.accept_tokens("7", [0])
    with caplog.at_level(logging.ERROR):
        grammar.follower.fail(LimitExceededError("too much"))
    assert "request 7 ends early" in caplog.text
