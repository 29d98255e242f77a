"""Log-probabilities of the tokens of prompts."""

from __future__ import annotations

from collections.abc import Sequence

from guideway.generation.options import BATCH
from guideway.sampling import TokenLogprobs, report
from guideway.sessions import ModelBase, feed_all

__all__ = ["prompt_logprobs"]


def prompt_logprobs(model: ModelBase, prompts: Sequence[Sequence[int]], count: int) -> list[list[TokenLogprobs | None]]:
    """Return, for each prompt, the log-probability of each token given the tokens before it.

    The entry of the first token is None.

    Args:
        model: The model.
        prompts: Token ids.
        count: The number of alternatives in each `TokenLogprobs`.

    Raises:
        ContextOverflowError: A prompt is longer than the context.
        InvalidTokenError: An id is outside the vocabulary.
    """
    found: list[list[TokenLogprobs | None]] = []
    for start in range(0, len(prompts), BATCH):
        group = prompts[start : start + BATCH]
        sessions = [model.session() for _ in group]
        steps: list[list[TokenLogprobs | None]] = [[] for _ in group]
        for place in range(max(map(len, group), default=0)):
            going = [number for number, ids in enumerate(group) if place < len(ids)]
            if place:
                feed_all([sessions[number] for number in going])
            for number in going:
                session, token_id = sessions[number], group[number][place]
                known = report(session.shared_logits(), None, token_id, forced=False, count=count) if place else None
                steps[number].append(known)
                session.feed([token_id])
        found += steps
    return found
