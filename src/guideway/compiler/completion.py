"""The minimum number of tokens that complete a text."""

from __future__ import annotations

from guideway._kernel import Matcher
from guideway.errors import UnsatisfiableError

__all__ = ["min_tokens_to_complete"]

_NEVER = 0xFFFFFFFF  # the kernel's value for "no tokens spell a completion"


def min_tokens_to_complete(matcher: Matcher) -> int:
    """Return the number of tokens of the shortest completion, including the end token.

    Args:
        matcher: The matcher. It is not changed.

    Raises:
        UnsatisfiableError: The vocabulary lacks tokens for bytes of every shortest completion.
    """
    needed = matcher.tokens_to_finish()
    if needed == _NEVER:
        shortest = matcher.completion()
        raise UnsatisfiableError(f"the vocabulary has no tokens that spell the shortest completion {shortest!r}")
    return needed
