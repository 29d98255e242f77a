"""What a request asks for: in `structured_outputs`, or in `extra_args` (over HTTP `vllm_xargs`)."""

from __future__ import annotations

import functools
from typing import Any

from guideway.compiler import Automaton, compile
from guideway.constraints import Regex
from guideway.errors import GuidewayError, InvalidConstraintError
from guideway.integrations._common import KINDS, Follower, requested
from guideway.tokenizers import Tokenizer

__all__ = ["Asked", "asked", "automaton_of", "follower_of", "structured", "tokenizer_of", "tokenizer_of_engine"]

Asked = tuple[str, object]
"""A kind of constraint, and its text: see `requested`."""

_PREFIX = "guideway_"


@functools.lru_cache(maxsize=4)
def tokenizer_of(tokenizer: Any) -> Tokenizer:
    """What vLLM holds as a tokenizer, as ours: read once in a process."""
    return Tokenizer.of(tokenizer)


def tokenizer_of_engine(config: Any) -> Tokenizer:
    """The tokenizer of an engine, by its `VllmConfig`."""
    from vllm.tokenizers import cached_tokenizer_from_config

    return tokenizer_of(cached_tokenizer_from_config(model_config=config.model_config))


def structured(options: Any) -> Asked:
    """What `StructuredOutputsParams` ask for; vLLM sees to it that it is one thing."""
    return next((kind, spec) for kind in KINDS if (spec := getattr(options, kind)) is not None)


def asked(params: Any) -> Asked | None:
    """What `SamplingParams.extra_args` ask for, None for nothing: `guideway_json`, `guideway_regex` and so on.

    Raises `InvalidConstraintError` (a ValueError) for a name that is not known, and for several constraints at once.
    """
    found = [name for name in params.extra_args or () if name.startswith(_PREFIX)]
    if not found:
        return None
    if len(found) > 1:
        raise InvalidConstraintError(f"a request has one constraint, not {' and '.join(found)}")
    kind = found[0].removeprefix(_PREFIX)
    if kind not in KINDS:
        raise InvalidConstraintError(
            f"{found[0]} is not known; constraints are {', '.join(_PREFIX + one for one in KINDS)}"
        )
    return kind, params.extra_args[found[0]]


def automaton_of(given: Asked, tokenizer: Tokenizer) -> Automaton:
    """What a request is held to. Raises what `requested` and `guideway.compile` raise."""
    return compile(requested(*given), tokenizer)


def follower_of(params: Any, tokenizer: Tokenizer) -> Follower | None:
    """The request's follower by its `extra_args`, None without a constraint.

    Never raises: what `plugin` would have refused lets the text end at once, and the follower keeps the error.
    """
    try:
        given = asked(params)
        return None if given is None else _follower(automaton_of(given, tokenizer), params, tokenizer)
    except GuidewayError as error:
        failed = _follower(compile(Regex(""), tokenizer), params, tokenizer)
        failed.fail(error)
        return failed


def _follower(automaton: Automaton, params: Any, tokenizer: Tokenizer) -> Follower:
    return Follower(automaton, tokenizer.eos_ids, stop_token_ids=params.all_stop_token_ids, name="a request")
