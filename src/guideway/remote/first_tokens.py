"""The most probable option by the log-probabilities of the first tokens of an answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["is_logprob", "most_probable"]

MAX_LOGPROB = 10**9
"""The largest absolute value of an integer that is a log-probability. Larger integers may not fit into a float."""


def most_probable(tokens: Iterable[tuple[str, Any]], options: Sequence[str]) -> str | None:
    """Return the option that is the most probable answer, or None if the first tokens do not determine it.

    An endpoint lists only its most probable first tokens. An option that is not listed begins with a listed token, or
    with an unlisted one, which is at most as probable as the least probable listed token. The larger of these
    probabilities is a bound for the option. The result is the best listed option, if it exceeds all these bounds.

    Args:
        tokens: The listed tokens with their log-probabilities.
        options: The options.
    """
    found = {token: float(value) for token, value in tokens if is_logprob(value)}
    known = {option: found[option] for option in options if option in found}
    if not known:
        return None
    best = max(known, key=known.__getitem__)
    least = min(found.values())
    for option in options:
        beginnings = [value for token, value in found.items() if token and option.startswith(token)]
        if option not in known and max([least, *beginnings]) >= known[best]:
            return None
    return best


def is_logprob(value: Any) -> bool:
    """Return whether a value of an answer is the logarithm of a probability; rounding may make it slightly positive."""
    if type(value) is int:
        return -MAX_LOGPROB <= value <= 0
    return type(value) is float and math.isfinite(value) and value <= 1e-3
