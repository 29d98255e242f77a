"""The constraint of a request: from `structured_outputs`, or from `extra_args` (over HTTP: `vllm_xargs`)."""

from __future__ import annotations

from typing import Any

from guideway.compiler import Automaton, compile
from guideway.constraints import Regex
from guideway.errors import GuidewayError, InvalidConstraintError
from guideway.integrations._common import KINDS, Follower, requested, token_budget
from guideway.tokenizers import Tokenizer

__all__ = [
    "Requested",
    "automaton_of",
    "budget_of",
    "follower_of",
    "requested_in_extra_args",
    "structured",
    "tokenizer_of",
    "tokenizer_of_engine",
]

Requested = tuple[str, object]
"""The kind and the text of a constraint: the arguments of `guideway.integrations._common.requested`."""

_PREFIX = "guideway_"
_MAX_TOKENS = "guideway_max_tokens"


def tokenizer_of(tokenizer: Any) -> Tokenizer:
    """Return a `guideway.Tokenizer` for a tokenizer of vLLM."""
    return Tokenizer.of(tokenizer)


def tokenizer_of_engine(config: Any) -> Tokenizer:
    """Return the tokenizer of an engine from its `VllmConfig`."""
    from vllm.tokenizers import cached_tokenizer_from_config

    return tokenizer_of(cached_tokenizer_from_config(model_config=config.model_config))


def structured(options: Any) -> Requested:
    """Return the constraint of `StructuredOutputsParams`. vLLM ensures that there is exactly one."""
    return next((kind, spec) for kind in KINDS if (spec := getattr(options, kind)) is not None)


def requested_in_extra_args(params: Any) -> Requested | None:
    """Return the constraint in `SamplingParams.extra_args` (`guideway_json`, `guideway_regex`, …); None if it has none.

    Raises:
        InvalidConstraintError: The name is unknown, there are several constraints, or `guideway_max_tokens` (see
            `budget_of`) is malformed or given without a constraint. The error is also a `ValueError`.
    """
    found = [name for name in params.extra_args or () if name.startswith(_PREFIX) and name != _MAX_TOKENS]
    budget = budget_of(params)
    if not found:
        if budget is not None:
            raise InvalidConstraintError(f"{_MAX_TOKENS} needs a constraint, such as {_PREFIX}json")
        return None
    if len(found) > 1:
        raise InvalidConstraintError(f"a request may have one constraint, got {' and '.join(found)}")
    kind = found[0].removeprefix(_PREFIX)
    if kind not in KINDS:
        raise InvalidConstraintError(
            f"unknown argument {found[0]}; known arguments: {', '.join(_PREFIX + one for one in (*KINDS, 'max_tokens'))}"
        )
    return kind, params.extra_args[found[0]]


def budget_of(params: Any) -> int | None:
    """Return the token budget `guideway_max_tokens` in `SamplingParams.extra_args`; None if there is none.

    Raises:
        InvalidConstraintError: The value is not a positive integer.
    """
    return token_budget(_MAX_TOKENS, (params.extra_args or {}).get(_MAX_TOKENS))


def automaton_of(given: Requested, tokenizer: Tokenizer) -> Automaton:
    """Compile a constraint. Raises what `requested` and `guideway.compile` raise."""
    return compile(requested(*given), tokenizer)


def follower_of(params: Any, tokenizer: Tokenizer) -> Follower | None:
    """Return the state of a request with a constraint in `extra_args`; None for a request without one.

    Never raises an error of the constraint. For an invalid constraint, the text ends at once and the follower has the
    error.
    """
    try:
        given = requested_in_extra_args(params)
        if given is None:
            return None
        return _follower(automaton_of(given, tokenizer), params, tokenizer, budget_of(params))
    except GuidewayError as error:
        failed = _follower(compile(Regex(""), tokenizer), params, tokenizer)
        failed.fail(error)
        return failed


def _follower(automaton: Automaton, params: Any, tokenizer: Tokenizer, max_tokens: int | None = None) -> Follower:
    return Follower(
        automaton,
        tokenizer.eos_ids,
        stop_token_ids=params.all_stop_token_ids,
        name="a request",
        max_tokens=max_tokens,
    )
