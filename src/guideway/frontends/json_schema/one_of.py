"""Determines which branches of `oneOf` overlap, that is, may accept the same value.

If no branches overlap, `oneOf` is equivalent to `anyOf`. A key is a discriminator of branches if each of them lists the
allowed values of the key as strings, and no two of these lists have a string in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from guideway.errors import LimitExceededError
from guideway.frontends.json_schema.assertions import (
    ANYTHING,
    ARRAY,
    NUMBER,
    OBJECT,
    STRING,
    Conjunction,
    ObjectAssertions,
    TypeAssertions,
    join,
    merge,
)
from guideway.frontends.json_schema.parse import SchemaAnalysis
from guideway.jsontext.pointer import shown

__all__ = ["Tags", "conditions_of_key", "discriminator", "overlaps_of", "tags_of"]

MAX_PAIRED = 300
"""The maximum number of `oneOf` branches that are compared pairwise if no discriminator separates all of them."""

AnalysisOf = Callable[[int], SchemaAnalysis]
IsUnsatisfiable = Callable[[Conjunction], bool]


def overlaps_of(
    literals: Sequence[int],
    expansions: list[list[TypeAssertions]],
    analysis_of: AnalysisOf,
    is_unsatisfiable: IsUnsatisfiable,
    place: str,
    spend: Callable[[int], None],
) -> list[list[int]]:
    """For each branch, return the indices of the other branches that may accept the same value.

    Args:
        literals: The literals of the branches.
        expansions: The alternatives of each branch.
        analysis_of: Returns the analysis of the schema of a literal.
        is_unsatisfiable: Returns True if a conjunction is known to be unsatisfiable.
        place: The JSON Pointer of the `oneOf`, for errors.
        spend: Is called with the number of pairs that are compared, and may raise `LimitExceededError`.

    Raises:
        LimitExceededError: There are more than `MAX_PAIRED` branches, and no discriminator separates all of them.
    """
    overlaps: list[list[int]] = [[] for _ in literals]
    if _values_differ(expansions) or _tags_differ(expansions, analysis_of):
        return overlaps
    if len(literals) > MAX_PAIRED:
        raise LimitExceededError(
            f"at {shown(place)}: more than {MAX_PAIRED} branches that no single property distinguishes; "
            f"give each branch a property with a different const",
            place,
        )
    for i, left in enumerate(expansions):
        for j in range(i):
            spend(len(left) * len(expansions[j]))
            if literals[i] == literals[j] or any(
                _can_meet(one, other, is_unsatisfiable) for one in left for other in expansions[j]
            ):
                overlaps[i].append(j)
                overlaps[j].append(i)
    return overlaps


def _can_meet(left: TypeAssertions, right: TypeAssertions, is_unsatisfiable: IsUnsatisfiable) -> bool:
    """Return False if `merge` or the values of a required key show that two alternatives do not overlap."""
    both = merge(left, right)
    if both is None:
        return False
    part = both.object
    if both.types != OBJECT or part is None or both.composites is not None or len(part.rule_sets) < 2:
        return True
    conjunctions = (conditions_of_key(part, name) for name in part.required)
    return not any(
        1 in conjunction or (len(conjunction) > 1 and is_unsatisfiable(conjunction)) for conjunction in conjunctions
    )


def conditions_of_key(part: ObjectAssertions, name: str) -> Conjunction:
    """Return the conditions of `properties` and `additionalProperties` on the value of a key.

    An `additionalProperties` next to `patternProperties` is ignored if `properties` does not name the key.
    """
    conjunction = ANYTHING
    for rules in part.rule_sets:
        inner = rules.names.get(name)
        if inner is None and not rules.patterns:
            inner = rules.additional
        if inner:
            conjunction = join(conjunction, inner)
    return conjunction


def _values_differ(expansions: list[list[TypeAssertions]]) -> bool:
    """Return True if all alternatives allow only null, booleans, listed numbers and listed strings, and no value occurs
    twice.
    """
    seen: set[object] = set()
    count = 0
    for assertions in (assertions for expansion in expansions for assertions in expansion):
        number, string = assertions.number, assertions.string
        if (
            assertions.types & (ARRAY | OBJECT)
            or (assertions.types & NUMBER and (number is None or number.enum is None))
            or (assertions.types & STRING and (string is None or string.enum is None))
        ):
            return False
        mine: list[object] = [("word", bit) for bit in (1, 2, 4) if assertions.types & bit]
        mine += number.enum if number and number.enum else ()
        mine += string.enum if string and string.enum else ()
        count += len(mine)
        seen.update(mine)
    return count == len(seen)


def _tags_differ(expansions: list[list[TypeAssertions]], analysis_of: AnalysisOf) -> bool:
    """Return True if a discriminator of the branches is found that all of them require."""
    parts = [
        [assertions.object for assertions in expansion if assertions.types == OBJECT and assertions.composites is None]
        for expansion in expansions
    ]
    if any(len(mine) != len(expansion) or None in mine for mine, expansion in zip(parts, expansions, strict=True)):
        return False
    first = next((part for mine in parts for part in mine), None)
    for name in first.required if first else ():
        tags: set[str] = set()
        count = 0
        for mine in parts:
            found = [_tag_values(part, name, analysis_of) if name in part.required else None for part in mine if part]
            if None in found:
                break
            values = {tag for one in found for tag in one or ()}
            count += len(values)
            tags |= values
        else:
            if count == len(tags):
                return True
    return False


def _tag_values(part: ObjectAssertions, name: str, analysis_of: AnalysisOf) -> set[str] | None:
    """Return a set of strings that contains all allowed values of a key. None if no schema lists its values."""
    for rules in part.rule_sets:
        for literal in rules.names.get(name, ()):
            if literal > 1 and not literal & 1:
                own = analysis_of(literal).own
                if own.types == STRING and own.string and own.string.enum is not None:
                    return set(own.string.enum)
    return None


Tags = dict[str, dict[int, tuple[set[str], bool]]]
"""For each key and the index of each branch: the strings that its value may be, and whether the key is required."""


def tags_of(expansions: list[list[TypeAssertions]], analysis_of: AnalysisOf) -> Tags:
    """Return the `Tags` of branches. A branch is left out for keys whose values it does not list as strings.

    It is left out for all keys if it allows other values than objects.

    Args:
        expansions: The alternatives of each branch.
        analysis_of: Returns the analysis of the schema of a literal.
    """
    made: Tags = {}
    for j, expansion in enumerate(expansions):
        parts = [
            one.object for one in expansion if one.types == OBJECT and one.composites is None and one.object is not None
        ]
        if not parts or len(parts) < len(expansion):
            continue
        for name in dict.fromkeys(name for rules in parts[0].rule_sets for name in rules.names):
            found = [_tag_values(part, name, analysis_of) for part in parts]
            values = {tag for one in found for tag in one or ()}
            if None not in found and values:
                made.setdefault(name, {})[j] = (values, all(name in part.required for part in parts))
    return made


def discriminator(overlaps: Sequence[int], tags: Tags) -> tuple[str, dict[int, tuple[set[str], bool]]]:
    """Return the key that separates the most branches of `overlaps`.

    For each key, the branches are read in order. A branch is separated if it lists values for the key, and none that a
    branch before it lists.

    Returns:
        The key; and for each branch that it separates, the listed values and whether the key is required. ("", {}) if
        no key separates any.
    """
    best: tuple[str, dict[int, tuple[set[str], bool]]] = ("", {})
    for name in sorted(tags):
        separated: dict[int, tuple[set[str], bool]] = {}
        taken: set[str] = set()
        for j in overlaps:
            found = tags[name].get(j)
            if found is not None and taken.isdisjoint(found[0]):
                taken |= found[0]
                separated[j] = found
        if len(separated) > len(best[1]):
            best = (name, separated)
    return best
