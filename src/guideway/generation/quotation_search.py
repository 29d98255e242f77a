"""Verbatim strings that are chosen as a whole: a beam search over the strings that occur in the source.

The most probable first token may begin a string that the model finds improbable as a whole: the mask forces what follows
it. So the most probable beginnings are extended to their ends, and the most probable string is taken. The log-probabilities
are those of the model, not renormalised by the mask, so a string that the model would not have written loses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from guideway import masks
from guideway.errors import BudgetTooSmallError, UnsatisfiableError
from guideway.sampling import log_softmax
from guideway.sessions import feed_all
from guideway.sessions.session import Session

__all__ = ["MAX_TOKENS", "best_quotation"]

MAX_TOKENS = 64
"""The maximum number of tokens of a string that is chosen as a whole. The end of a longer one is chosen token by token."""


@dataclass
class _PartialQuotation:
    session: Session
    tokens: tuple[int, ...]
    logprob: float


def best_quotation(session: Session, width: int, budget: int | None) -> list[int]:
    """Return the tokens of the most probable verbatim string, with the token that ends it.

    Args:
        session: A session whose matcher is before the first character of a verbatim string. Its model has run. It does
            not change.
        width: The number of beginnings that are extended at once.
        budget: The maximum number of tokens up to the end of the text; None: any.

    Returns:
        The tokens; none if no string was found that ends within the budget.
    """
    live, ended = [_PartialQuotation(session, (), 0.0)], list[_PartialQuotation]()
    longest = MAX_TOKENS if budget is None else min(MAX_TOKENS, budget)
    for taken in range(longest):
        if taken:
            feed_all([beam.session for beam in live])
        extended = _extended(live, width, None if budget is None else budget - taken)
        live = []
        for logprob, beam, token_id in extended:
            further = beam.session.fork()
            further.feed([token_id])
            after = _PartialQuotation(further, (*beam.tokens, token_id), logprob)
            matcher = further.matcher
            goes_on = matcher is not None and not matcher.is_finished and matcher.quotation == "inside"
            (live if goes_on else ended).append(after)
        best = max((beam.logprob for beam in ended), default=-np.inf)
        live = [beam for beam in live if beam.logprob > best]
        if not live:
            break
    found = max((*ended, *live), key=lambda beam: beam.logprob, default=None)
    return [] if found is None else list(found.tokens)


def _extended(
    live: list[_PartialQuotation], width: int, budget: int | None
) -> list[tuple[float, _PartialQuotation, int]]:
    """Return the `width` most probable extensions by one token, with their log-probabilities."""
    found: list[tuple[float, int, int]] = []
    for number, beam in enumerate(live):
        session = beam.session
        try:
            session.only_legal(budget)
        except (BudgetTooSmallError, UnsatisfiableError):
            continue
        logprobs = log_softmax(session.shared_logits())
        allowed = np.arange(logprobs.size) if session.mask is None else masks.ids(session.mask, logprobs.size)
        legal = logprobs[allowed]
        for at in np.argsort(-legal, kind="stable")[:width].tolist():
            if legal[at] > -np.inf:
                found.append((beam.logprob + float(legal[at]), number, int(allowed[at])))
    found.sort(key=lambda one: (-one[0], one[1], one[2]))
    return [(logprob, live[number], token_id) for logprob, number, token_id in found[:width]]
