"""Determines which branches of `oneOf` overlap. If none do, "exactly one" is equivalent to "any"."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from guideway.errors import LimitExceededError
from guideway.frontends.json_schema.assertions import (
    ANYTHING,
    ARRAY,
    NUMBER,
    OBJECT,
    STRING,
    Bundle,
    ObjectPart,
    Want,
    join,
    merge,
)
from guideway.frontends.json_schema.parse import Term
from guideway.jsontext.pointer import shown

__all__ = ["Tags", "discriminator", "plainly_said", "rivals_of", "tags_of"]

MAX_PAIRED = 300
"""The maximum number of `oneOf` branches that are compared pairwise if no discriminator separates all of them."""

TermOf = Callable[[int], Term]
IsDead = Callable[[Want], bool]


def rivals_of(
    literals: Sequence[int],
    faces: list[list[Bundle]],
    term_of: TermOf,
    is_dead: IsDead,
    place: str,
    spend: Callable[[int], None],
) -> list[list[int]]:
    """For each branch, return its rivals: the other branches that may accept the same value.

    Args:
        literals: The branches.
        faces: The alternatives of each branch.
        term_of: Returns the term of a literal.
        is_dead: Whether no value can meet a want.
        place: The JSON Pointer for errors.
        spend: Counts the pairs that are compared.
    """
    rivals: list[list[int]] = [[] for _ in literals]
    if _values_differ(faces) or _tags_differ(faces, term_of):
        return rivals
    if len(literals) > MAX_PAIRED:
        raise LimitExceededError(
            f"at {shown(place)}: more than {MAX_PAIRED} branches that no single property distinguishes; "
            f"give each branch a property with a different const",
            place,
        )
    for i, left in enumerate(faces):
        for j in range(i):
            spend(len(left) * len(faces[j]))
            if literals[i] == literals[j] or any(_can_meet(one, other, is_dead) for one in left for other in faces[j]):
                rivals[i].append(j)
                rivals[j].append(i)
    return rivals


def _can_meet(left: Bundle, right: Bundle, is_dead: IsDead) -> bool:
    """Whether two bundles may overlap, by a shallow check of types, listed values and required keys."""
    both = merge(left, right)
    if both is None:
        return False
    part = both.object
    if both.types != OBJECT or part is None or both.boxes is not None or len(part.groups) < 2:
        return True
    wants = (plainly_said(part, name) for name in part.required)
    return not any(1 in wanted or (len(wanted) > 1 and is_dead(wanted)) for wanted in wants)


def plainly_said(part: ObjectPart, name: str) -> Want:
    """The conditions on a key that do not depend on patterns."""
    wanted = ANYTHING
    for group in part.groups:
        inner = group.names.get(name)
        if inner is None and not group.patterns:
            inner = group.extra
        if inner:
            wanted = join(wanted, inner)
    return wanted


def _values_differ(faces: list[list[Bundle]]) -> bool:
    """Whether all branches are lists of scalars, and the lists are disjoint."""
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
    """Whether some required key is a discriminator of all branches."""
    parts = [[bundle.object for bundle in face if bundle.types == OBJECT and bundle.boxes is None] for face in faces]
    if any(len(mine) != len(face) or None in mine for mine, face in zip(parts, faces, strict=True)):
        return False
    first = next((part for mine in parts for part in mine), None)
    for name in first.required if first else ():
        tags: set[str] = set()
        count = 0
        for mine in parts:
            found = [_tag_values(part, name, term_of) if name in part.required else None for part in mine if part]
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
    """The strings that a key may have, if they are listed."""
    for group in part.groups:
        for literal in group.names.get(name, ()):
            if literal > 1 and not literal & 1:
                own = term_of(literal).own
                if own.types == STRING and own.string and own.string.given is not None:
                    return set(own.string.given)
    return None


Tags = dict[str, dict[int, tuple[set[str], bool]]]


def tags_of(faces: list[list[Bundle]], term_of: TermOf) -> Tags:
    """For each key, the branches that list its values as strings, with these values and whether the key is required."""
    made: Tags = {}
    for j, face in enumerate(faces):
        parts = [one.object for one in face if one.types == OBJECT and one.boxes is None and one.object is not None]
        if not parts or len(parts) < len(face):
            continue
        for name in dict.fromkeys(name for group in parts[0].groups for name in group.names):
            found = [_tag_values(part, name, term_of) for part in parts]
            values = {tag for one in found for tag in one or ()}
            if None not in found and values:
                made.setdefault(name, {})[j] = (values, all(name in part.required for part in parts))
    return made


def discriminator(rivals: Sequence[int], tags: Tags) -> tuple[str, dict[int, tuple[set[str], bool]]]:
    """The discriminator: the key that separates the most branches.

    Returns:
        The key, and for each separated branch its values and whether the key is required.
    """
    best: tuple[str, dict[int, tuple[set[str], bool]]] = ("", {})
    for name in sorted(tags):
        told: dict[int, tuple[set[str], bool]] = {}
        taken: set[str] = set()
        for j in rivals:
            found = tags[name].get(j)
            if found is not None and taken.isdisjoint(found[0]):
                taken |= found[0]
                told[j] = found
        if len(told) > len(best[1]):
            best = (name, told)
    return best
