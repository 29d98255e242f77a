"""Which branches of `oneOf` a value may fit together; where none can, "exactly one" is "any"."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from guideway.errors import LimitExceeded

from .bundles import ANYTHING, ARRAY, FREE, NUMBER, OBJECT, STRING, Bundle, ObjectPart, Want, join, merge
from .terms import Term

__all__ = ["rivals_of"]

MAX_PAIRED = 300
"""How many branches of `oneOf` are compared with each other where no one tag or value tells all of them apart."""

TermOf = Callable[[int], Term]


def rivals_of(literals: Sequence[int], faces: list[list[Bundle]], term_of: TermOf, place: str) -> list[list[int]]:
    """For each branch the others that a value may fit as well. `faces`: what each branch comes down to."""
    rivals: list[list[int]] = [[] for _ in literals]
    if _values_differ(faces) or _tags_differ(faces, term_of):
        return rivals
    if len(literals) > MAX_PAIRED:
        raise LimitExceeded(f"at {place!r}: more than {MAX_PAIRED} branches that no one value tells apart", place)
    for i, left in enumerate(faces):
        for j in range(i):
            if literals[i] == literals[j] or any(_can_meet(one, other, term_of) for one in left for other in faces[j]):
                rivals[i].append(j)
                rivals[j].append(i)
    return rivals


def _can_meet(left: Bundle, right: Bundle, term_of: TermOf) -> bool:
    """Whether a value may fit both, as far as is seen at once: types, given values, required keys."""
    both = merge(left, right)
    if both is None:
        return False
    part = both.object
    if both.types != OBJECT or part is None or both.boxes is not None or len(part.groups) < 2:
        return True
    return not any(_contradictory(_of_key(part, name), term_of) for name in part.required)


def _of_key(part: ObjectPart, name: str) -> Want:
    """What is plainly said of a key."""
    wanted = ANYTHING
    for group in part.groups:
        inner = group.names.get(name)
        if inner is None and not group.patterns:
            inner = group.extra
        wanted = join(wanted, inner or ANYTHING)
    return wanted


def _contradictory(wanted: Want, term_of: TermOf) -> bool:
    """Whether simple schemas exclude each other."""
    if 1 in wanted:
        return True
    bundle: Bundle | None = FREE
    for one in wanted if len(wanted) > 1 else ():
        if not one & 1 and bundle is not None:
            bundle = merge(bundle, term_of(one).own)
    return bundle is None


def _values_differ(faces: list[list[Bundle]]) -> bool:
    """Whether all branches are given scalars, and none is in two of them."""
    seen: set[object] = set()
    count = 0
    for bundle in (bundle for face in faces for bundle in face):
        number, string = bundle.number, bundle.string
        if (
            bundle.types & (ARRAY | OBJECT)
            or (bundle.types & NUMBER and (number is None or number.given is None))
            or (bundle.types & STRING and (string is None or string.given is None))
        ):
            return False
        mine: list[object] = [("word", bit) for bit in (1, 2, 4) if bundle.types & bit]
        mine += number.given if number and number.given else ()
        mine += string.given if string and string.given else ()
        count += len(mine)
        seen.update(mine)
    return count == len(seen)


def _tags_differ(faces: list[list[Bundle]], term_of: TermOf) -> bool:
    """Whether the values of one required key tell all branches apart."""
    parts = [[bundle.object for bundle in face if bundle.types == OBJECT and bundle.boxes is None] for face in faces]
    if any(len(mine) != len(face) or None in mine for mine, face in zip(parts, faces, strict=True)):
        return False
    first = next((part for mine in parts for part in mine), None)
    for name in first.required if first else ():
        tags: set[str] = set()
        count = 0
        for mine in parts:
            found = [_tag_values(part, name, term_of) for part in mine if part is not None]
            if None in found:
                break
            values = {tag for one in found for tag in one or ()}
            count += len(values)
            tags |= values
        else:
            if count == len(tags):
                return True
    return False


def _tag_values(part: ObjectPart, name: str, term_of: TermOf) -> set[str] | None:
    """The strings that a required key may have, where they are given."""
    if name not in part.required:
        return None
    for group in part.groups:
        for literal in group.names.get(name, ()):
            if literal > 1 and not literal & 1:
                own = term_of(literal).own
                if own.types == STRING and own.string and own.string.given is not None:
                    return set(own.string.given)
    return None
