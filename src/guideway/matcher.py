"""The matcher: where a sequence stands in its constraint, and which tokens are legal next.

A matcher is the kernel's own object, so that a call costs no Python in between. A mask row is `ceil(V / 32)` uint32
words: bit `t % 32` of word `t // 32` is set exactly when the text so far and token `t` can still be completed; bits
from V on are 0. End-of-sequence tokens are set exactly when the text is complete. After one was taken the matcher is
finished: its mask is the end tokens alone, and `advance` raises.

Matchers of one automaton may be used from different threads; one matcher from one thread at a time. Each call either
succeeds or raises and changes nothing.
"""

from __future__ import annotations

from ._kernel import FollowJob, Matcher, advance_and_fill, fill_masks, follow

__all__ = ["FollowJob", "Matcher", "advance_and_fill", "fill_masks", "follow"]
