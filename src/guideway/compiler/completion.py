"""How many tokens a text still needs."""

from __future__ import annotations

from guideway._kernel import Matcher
from guideway.errors import Unsatisfiable

__all__ = ["tokens_needed"]

_NEVER = 0xFFFFFFFF  # what the kernel says where no tokens spell a completion


def tokens_needed(matcher: Matcher) -> int:
    """Fewest tokens that spell the shortest way to finish the text, the end token among them.

    Raises `Unsatisfiable` where the vocabulary, one without tokens for some bytes, spells it in no way.
    """
    needed = matcher.tokens_to_finish()
    if needed == _NEVER:
        shortest = matcher.completion()
        raise Unsatisfiable(
            f"the vocabulary has no tokens that spell the shortest way to finish the text: {shortest!r}"
        )
    return needed
