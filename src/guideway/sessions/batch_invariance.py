"""Draws that do not depend on the rows that ran in the same calls of the engine (batch invariance).

Padding and the division of a sequence into calls change the last digits of logits. If the logits of two tokens differ
only in these digits, or if the random number is as close to the border between two tokens, these digits would determine
the token. Such a draw is repeated with logits that are computed for the whole sequence in one call of the engine. They
depend only on the tokens of the sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guideway import masks
from guideway.sampling import draw_with_gap

if TYPE_CHECKING:
    from guideway.sessions.session import Session

__all__ = ["settled_draw"]


def settled_draw(session: Session, logits: Any, mask: masks.Row | None, attempt: int) -> int | None:
    """Draw a token, and draw it again if differences of logits below `session.tolerance` could change it.

    The second draw uses the logits of `Session.logits_alone`. If there are none, the first token is returned.

    Args:
        session: The session. `session.tolerance` must be above 0.
        logits: The logits at its end.
        mask: The allowed tokens; None: all.
        attempt: As in `Session.draw`.

    Returns:
        The token. None: the kernel does not support this sampler or these logits, so the caller must draw.
    """
    place = session.seed, session.row, len(session)
    found = draw_with_gap(session.sampler, logits, mask, session._tokens, place, attempt)
    if found is None or found[1] >= session.tolerance:
        return None if found is None else found[0]
    alone = session.logits_alone()
    again = None if alone is None else draw_with_gap(session.sampler, alone, mask, session._tokens, place, attempt)
    return found[0] if again is None else again[0]
