"""`score` for endpoints that return log-probabilities.

`UnsupportedError` is raised if these do not give the exact score of an option. There are two kinds
(`Capabilities.logprobs`):

prompt   The endpoint returns the log-probability of every token of the prompt (vLLM). One request is sent for each
         option; the option is the prefill (the beginning of the answer).
top      The endpoint returns the most probable first tokens of an answer. One request is sent; each option must be one
         of these tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from guideway.arguments import short_repr
from guideway.errors import RemoteError, UnsupportedError
from guideway.generation.scoring import Score
from guideway.remote.adapters import Adapter, Request
from guideway.remote.adapters.base import get, items
from guideway.remote.adapters.openai import chat_usage, first_tokens
from guideway.remote.first_tokens import is_logprob
from guideway.remote.streams import ask
from guideway.remote.usage import RateLimit, Usage

__all__ = ["remote_scores"]


def remote_scores(
    adapter: Adapter, request: Request, options: Sequence[str], kind: str, width: int, limit: RateLimit, provider: str
) -> tuple[list[Score], Usage]:
    """Return the scores of options as continuations of a prompt, and the tokens that the requests used.

    Args:
        adapter: The adapter of the client.
        request: The request with the prompt.
        options: The options.
        kind: "prompt" or "top" (see the module); "": the endpoint returns no log-probabilities.
        width: The maximum number of requests at one time.
        limit: The limits of requests and tokens per minute, and of requests at one time.
        provider: The name of the endpoint, for errors.

    Raises:
        TypeError: `options` is not a list or tuple of strings.
        ValueError: There is no option, an empty one, or two equal ones.
        UnsupportedError: The endpoint does not return the log-probability of an option.
        RemoteError: The endpoint failed.
    """
    given: object = options
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
        raise TypeError(f"options must be a list of strings, got {short_repr(options)}")
    if not options or len(set(options)) < len(options) or not all(options):
        raise ValueError("options must be one or more non-empty strings, all different")
    if not kind:
        raise UnsupportedError(f"{provider} gives no log-probabilities, so options have no score")
    if kind == "top":
        answer = ask(adapter, request, kind, "", limit, provider)
        usage = _usage(answer)
        logprobs = _of_first_token(answer, options, provider)
    else:
        with ThreadPoolExecutor(min(width, len(options))) as pool:
            answers = list(pool.map(lambda one: ask(adapter, request, kind, one, limit, provider), options))
        usage = sum(map(_usage, answers), Usage())
        logprobs = [_of_prompt(answer, one, provider) for answer, one in zip(answers, options, strict=True)]
    most = max(logprobs)
    weights = [math.exp(one - most) for one in logprobs]
    scores = [
        Score(option, logprob, weight / sum(weights), ())
        for option, logprob, weight in zip(options, logprobs, weights, strict=True)
    ]
    return scores, usage


def _usage(answer: Any) -> Usage:
    return Usage(requests=1) + chat_usage(get(answer, "usage"))


def _number(value: Any, provider: str) -> float:
    if is_logprob(value):
        return float(value)
    raise RemoteError(f"{provider} gave {short_repr(value, 40)} as a log-probability", provider=provider)


def _of_first_token(answer: Any, options: Sequence[str], provider: str) -> list[float]:
    choices = items(get(answer, "choices"))
    content = items(get(choices[0], "logprobs", "content")) if choices else ()
    if not content:
        raise UnsupportedError(f"{provider} gave no log-probabilities, so options have no score")
    found = {token: _number(value, provider) for token, value in first_tokens(content)}
    for option in options:
        if option not in found:
            raise UnsupportedError(
                f"the option {option[:80]!r} is not one of the {len(found)} first tokens that {provider} gave, so its"
                " probability is unknown; use options of one token that the prompt asks for"
            )
    return [found[option] for option in options]


def _of_prompt(answer: Any, option: str, provider: str) -> float:
    total, text = 0.0, ""
    for entry in reversed(items(get(answer, "prompt_logprobs"))):
        token = next(iter(entry.values()), None) if isinstance(entry, dict) else None  # the prompt's token comes first
        word = get(token, "decoded_token")
        if not isinstance(word, str):
            break
        text = word + text
        total += _number(get(token, "logprob"), provider)
        if text == option:
            return total
        if len(text) >= len(option):
            break
    raise UnsupportedError(
        f"{provider} gave no log-probabilities for the tokens of the option {option[:80]!r}, or its first token begins before"
        " it, so it has no score"
    )
