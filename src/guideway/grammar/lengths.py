"""Limits the length of the texts of a regular language, if possible by other repetition counts.

Otherwise the limit is an intersection. Its automaton can have as many states as the product of the numbers of states of
its parts, so masks take longer.
"""

from __future__ import annotations

from guideway.grammar.regular import ANY_CHAR, EMPTY, NEVER, Chars, Concat, Literals, Regular, Repeat, Union, either

__all__ = ["of_length"]

_DEEPEST = 4  # maximum nesting depth that is searched
_MOST_WAYS = 16  # maximum number of alternatives that are bounded separately


def of_length(parts: list[Regular], fewest: int, most: int | None) -> list[Regular]:
    """Bound the length of the texts of an intersection.

    Args:
        parts: The parts of the intersection.
        fewest: The minimum length in characters.
        most: The maximum length in characters; None: no maximum.

    Returns:
        The parts of an intersection with the bound: one part is changed, or a part is added.
    """
    if not fewest and most is None:
        return parts
    if most is not None and most < fewest:
        return [NEVER]
    for i, part in enumerate(parts):
        made = _within(part, fewest, most, _DEEPEST)
        if made is not None and made != NEVER:  # for NEVER, a part is added: an empty language is detected later
            return [*parts[:i], made, *parts[i + 1 :]]
    return [*parts, Repeat(ANY_CHAR, fewest, most) if most != 0 else EMPTY]


def _within(part: Regular, fewest: int, most: int | None, depth: int) -> Regular | None:
    """Return the part with the bound; None: this needs more than a change of one repetition count."""
    if isinstance(part, Literals):
        texts = tuple(text for text in part.texts if fewest <= len(text) and (most is None or len(text) <= most))
        return Literals(texts) if texts else NEVER
    if isinstance(part, Union):
        if depth == 0 or len(part.parts) > _MOST_WAYS:
            return None
        ways = [_within(way, fewest, most, depth - 1) for way in part.parts]
        return None if None in ways else either(way for way in ways if way is not None and way != NEVER)
    if isinstance(part, Concat):
        return _counted(list(part.parts), fewest, most, depth)
    return _counted([part], fewest, most, depth)


def _counted(parts: list[Regular], fewest: int, most: int | None, depth: int) -> Regular | None:
    fixed, place, unit, counted = 0, 0, 1, None
    for i, part in enumerate(parts):
        length = _length(part, depth)
        if length is not None:
            fixed += length
            continue
        each = _length(part.part, depth) if isinstance(part, Repeat) else None
        if not isinstance(part, Repeat) or not each or counted is not None:
            return None
        place, unit, counted = i, each, part
    if counted is None:
        return NEVER if fixed < fewest or (most is not None and fixed > most) else _cat(parts)
    least, highest = max(counted.minimum, -((fixed - fewest) // unit)), counted.maximum
    if most is not None:
        room = (most - fixed) // unit
        highest = room if highest is None else min(highest, room)
    if highest is not None and highest < least:
        return NEVER
    return _cat([*parts[:place], Repeat(counted.part, least, highest), *parts[place + 1 :]])


def _cat(parts: list[Regular]) -> Regular:
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def _length(part: Regular, depth: int) -> int | None:
    """Return the length in characters that all texts of a part have; None: it varies, or is not known."""
    if isinstance(part, Chars):
        return 1
    if isinstance(part, Literals):
        lengths = {len(text) for text in part.texts}
        return lengths.pop() if len(lengths) == 1 else None
    if depth == 0:
        return None
    if isinstance(part, Repeat) and part.minimum == part.maximum:
        each = _length(part.part, depth - 1)
        return None if each is None else each * part.minimum
    if isinstance(part, Concat | Union):
        lengths_of = [_length(one, depth - 1) for one in part.parts]
        if None in lengths_of or (isinstance(part, Union) and len(set(lengths_of)) != 1):
            return None
        return sum(n or 0 for n in lengths_of) if isinstance(part, Concat) else lengths_of[0]
    return None
