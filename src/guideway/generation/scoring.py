"""`score`: the exact probabilities of options, from passes over the trie of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, overload

import numpy as np

from guideway.arguments import integer, short_repr
from guideway.generation.options import BATCH, Prompt, Prompts
from guideway.generation.plan import Plan, is_many
from guideway.generation.protocol import AnyModel, as_model_base, dispatched
from guideway.sampling import log_softmax
from guideway.sessions import ModelBase, Session, feed_all

__all__ = ["Score", "score"]


@dataclass(frozen=True)
class Score:
    """The score of one option.

    Attributes:
        option: The option.
        logprob: The log-probability of its tokens after the prompt, under the model; with `end=True`, of its tokens
            followed by any end token.
        probability: Its probability among the options: exp(logprob), normalised over them.
        tokens: Its ids, with the first end token of the tokenizer if `end=True`; empty for a model served by an API.
    """

    option: str
    logprob: float
    probability: float
    tokens: tuple[int, ...]


# fmt: off
@overload
def score(model: AnyModel, prompt: Prompt, options: Sequence[str], *, end: bool = False,
          batch_size: int = BATCH) -> list[Score]: ...
@overload
def score(model: AnyModel, prompt: Prompts, options: Sequence[str], *, end: bool = False,
          batch_size: int = BATCH) -> list[list[Score]]: ...
# fmt: on
@dispatched
def score(model: AnyModel, prompt: Any, options: Sequence[str], *, end: bool = False, batch_size: int = BATCH) -> Any:
    """Compute the exact probability of each option after a prompt. Nothing is sampled.

    With a local model, options with common first tokens share passes. An option counts only with the tokens that the
    tokenizer encodes it to; other tokens with the same text do not count.

    Args:
        model: The model, from `guideway.load` or `guideway.remote`.
        prompt: A prompt, or a list of prompts.
        options: The options.
        end: Whether an end token follows each option, so that one option ("no") may be a prefix of another ("none").
        batch_size: The maximum number of sequences that run together.

    Returns:
        A `Score` for each option, in their order; for a list of prompts a list of those.

    Raises:
        TypeError: `options` is not a list of str, or an argument has a wrong type.
        ValueError: There are no options, an option is empty, two have the same tokens, the tokens of one are a prefix
            of those of another without `end=True`, or `end=True` is given and the tokenizer has no EOS token. Or
            `batch_size` is less than 1.
        ContextOverflowError: Prompt and option do not fit the model's context.
        GuidewayError: The prompt is not valid, or the engine failed, as in `generate`.
    """
    model = as_model_base(model)
    plan = Plan(model, None, {})
    if is_many(prompt):
        return [score(model, one, options, end=end, batch_size=batch_size) for one in prompt]
    batch_size = integer("batch_size", batch_size, 1)
    spelled = _spelled(model, options, end)
    root = plan.prompted(prompt).session
    found = np.zeros(len(spelled))
    waiting: list[tuple[Session, int, list[int]]] = [(root, 0, list(range(len(spelled))))]
    while waiting:
        # Those added last first, so that the stack remains small.
        some = [waiting.pop() for _ in range(min(batch_size, len(waiting)))]
        feed_all([session for session, _, _ in some])
        for session, depth, members in some:
            logprobs = log_softmax(session.shared_logits())
            by_token: dict[int, list[int]] = {}
            for number in members:
                if depth == len(spelled[number]):  # only the end token of this option remains
                    found[number] += np.logaddexp.reduce(logprobs[list(model.tokenizer.eos_ids)])
                    continue
                by_token.setdefault(spelled[number][depth], []).append(number)
            for token_id, group in by_token.items():
                found[group] += logprobs[token_id]
                left = [number for number in group if end or len(spelled[number]) > depth + 1]
                if left:
                    child = session.fork()
                    child.feed([token_id])
                    waiting.append((child, depth + 1, left))
    shares = np.exp(found - np.logaddexp.reduce(found))
    ends = tuple(model.tokenizer.eos_ids[:1]) if end else ()
    return [
        Score(option, float(logprob), float(share), (*ids, *ends))
        for option, ids, logprob, share in zip(options, spelled, found, shares, strict=True)
    ]


def _spelled(model: ModelBase, options: Sequence[str], end: bool) -> list[tuple[int, ...]]:
    given: object = options
    if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
        raise TypeError(f"options must be a list of strings, got {short_repr(options)}")
    if not options:
        raise ValueError("options must have at least one item")
    if len(set(options)) < len(options) or not all(options):
        raise ValueError("options must be non-empty strings, all different")
    if end and not model.tokenizer.eos_ids:
        raise ValueError(f"end=True needs an EOS token, and the tokenizer of {model.name} has none")
    spelled = [tuple(model.tokenizer.encode(option)) for option in options]
    for option, ids in zip(options, spelled, strict=True):
        if not ids:
            raise ValueError(f"option {short_repr(option)} has no tokens")
        if spelled.count(ids) > 1:
            raise ValueError(f"option {short_repr(option)} has the same tokens as another option")
    ordered = sorted(range(len(spelled)), key=lambda n: spelled[n])
    for one, other in pairwise(ordered):
        if not end and spelled[other][: len(spelled[one])] == spelled[one]:
            raise ValueError(
                f"option {short_repr(options[one])} is a token prefix of {short_repr(options[other])}; pass end=True to score the end token"
            )
    return spelled
