"""How many tokens a text still needs."""

from __future__ import annotations

from guideway._kernel import Matcher
from guideway.errors import UnsatisfiableError

__all__ = ["min_tokens_to_complete"]

_NEVER = 0xFFFFFFFF  # what the kernel says where no tokens spell a completion


def min_tokens_to_complete(matcher: Matcher) -> int:
    """Fewest tokens that spell the shortest way to finish the text, the end token among them.

    Raises `UnsatisfiableError` where the vocabulary, one without tokens for some bytes, spells it in no way.
    """
    needed = matcher.tokens_to_finish()
    if needed == _NEVER:
        shortest = matcher.completion()
        raise UnsatisfiableError(
            f"the vocabulary has no tokens that spell the shortest way to finish the text: {shortest!r}"
        )
    return needed
