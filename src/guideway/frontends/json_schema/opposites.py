"""Negates a term: the ways in which a value can violate it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guideway.frontends.json_schema.assertions import (
    ALL,
    ANYTHING,
    ARRAY,
    NOTHING,
    NUMBER,
    OBJECT,
    STRING,
    WHOLE_DIGITS,
    ArrayPart,
    Bundle,
    Demand,
    Group,
    NumberPart,
    ObjectPart,
    StringPart,
    Want,
)
from guideway.frontends.json_schema.parse import Fork, Term, want

__all__ = ["Option", "bundle_of_value", "opposites"]

Option = tuple[Bundle | None, tuple[int, ...]]
"""A bundle and literals, all of which must hold."""


def bundle_of_value(value: Any, literal_of: Callable[[Any], int]) -> Bundle:
    """The conditions on the items or entries of a constant array or object.

    `literal_of` returns the literal of a constant.
    """
    if isinstance(value, list):
        items = tuple(want(literal_of(item)) for item in value)
        return Bundle(ARRAY, array=ArrayPart(items, NOTHING, len(items), len(items)))
    group = Group({name: want(literal_of(inner)) for name, inner in value.items()}, (), NOTHING)
    return Bundle(OBJECT, object=ObjectPart((group,), dict.fromkeys(value)))


def opposites(term: Term, literal_of: Callable[[Any], int]) -> list[Option]:
    """Return the negation of a term as a disjunction. `unevaluated*` and the forks `any` and `one` are not included."""
    own = term.own
    options: list[Option] = []
    if own.types != ALL:
        options.append((Bundle(ALL & ~own.types), ()))
    if own.boxes:
        options += _other_boxes(own.boxes, literal_of)
    if own.number:
        options += (((Bundle(NUMBER, number=part)), ()) for part in _other_numbers(own.number))
    if own.string:
        options += (((Bundle(STRING, string=part)), ()) for part in _other_strings(own.string))
    if own.array:
        options += (((Bundle(ARRAY, array=part)), ()) for part in _other_arrays(own.array))
    if own.object:
        options += (((Bundle(OBJECT, object=part)), ()) for part in _other_objects(own.object))
    options += ((None, (one ^ 1,)) for one in term.also)
    for fork in term.forks:
        options += _other_fork(fork)
    return options


def _other_boxes(boxes: dict[str, object], literal_of: Callable[[Any], int]) -> list[Option]:
    options: list[Option] = []
    for kind, types in ((list, ARRAY), (dict, OBJECT)):
        same = [box for box in boxes.values() if isinstance(box, kind)]
        if len(same) > 1:
            others = tuple(literal_of({"enum": [box]}) ^ 1 for box in same)
            options.append((Bundle(types), others))
        elif same:
            part = bundle_of_value(same[0], lambda value: literal_of({"enum": [value]}))
            if part.array:
                options += (((Bundle(ARRAY, array=one)), ()) for one in _other_arrays(part.array))
            elif part.object:
                options += (((Bundle(OBJECT, object=one)), ()) for one in _other_objects(part.object))
    return options


def _other_fork(fork: Fork) -> list[Option]:
    literals = fork.literals
    if fork.kind == "if":
        condition, then, other = literals
        return [(None, (condition, then ^ 1)), (None, (condition ^ 1, other ^ 1))]
    if fork.kind == "when":
        has = Bundle(OBJECT, object=ObjectPart(required={fork.name: None}))
        options: list[Option] = [(has, (one ^ 1,)) for one in literals]
        for name in fork.needs:
            part = ObjectPart(required={fork.name: None}, banned=frozenset((name,)))
            options += [(Bundle(OBJECT, object=part), ())] if name != fork.name else []
        return options
    return []  # negations of `any` and `one` are made by Choices, which knows which branches overlap


def _other_numbers(part: NumberPart) -> list[NumberPart]:
    made = []
    if part.digits_only is not None:
        made.append(NumberPart(digits_only=False) if part.digits_only else WHOLE_DIGITS)
    if part.given is not None:
        return [*made, NumberPart(excluded=part.given)]
    if part.low is not None:
        made.append(NumberPart(high=part.low, open_high=not part.open_low))
    if part.high is not None:
        made.append(NumberPart(low=part.high, open_low=not part.open_high))
    multiple = tuple(one for one in part.multiple if one != 1) if part.digits_only else part.multiple
    return made + [NumberPart(not_multiple=(one,)) for one in multiple]


def _other_strings(part: StringPart) -> list[StringPart]:
    made = []
    if part.given is not None:
        made.append(StringPart(excluded=frozenset(part.given)))
    if part.fewest:
        made.append(StringPart(most=part.fewest - 1))
    if part.most is not None:
        made.append(StringPart(fewest=part.most + 1))
    return made + [StringPart(tests=((not holds, kind, text, at),)) for holds, kind, text, at in part.tests]


def _opposite(one: Want) -> Want:
    """The negation of a want with at most one literal, as terms have them."""
    return want(next(iter(one)) ^ 1) if one else NOTHING


def _other_arrays(part: ArrayPart) -> list[ArrayPart]:
    made = []
    if part.fewest:
        made.append(ArrayPart(most=part.fewest - 1))
    if part.most is not None:
        made.append(ArrayPart(fewest=part.most + 1))
    for i, one in enumerate(part.prefix):
        if one:
            made.append(ArrayPart((ANYTHING,) * i + (_opposite(one),), fewest=i + 1))
    if part.rest:
        made.append(ArrayPart(contains=((len(part.prefix), _opposite(part.rest), 1, None),)))
    for start, what, least, most in part.contains:
        if least:
            made.append(ArrayPart(contains=((start, what, 0, least - 1),)))
        if most is not None:
            made.append(ArrayPart(contains=((start, what, most + 1, None),)))
    if part.unique:
        made.append(ArrayPart(fewest=2, twins=True))
    return made


def _other_objects(part: ObjectPart) -> list[ObjectPart]:
    made = []
    if part.fewest:
        made.append(ObjectPart(most=part.fewest - 1))
    if part.most is not None:
        made.append(ObjectPart(fewest=part.most + 1))
    made += [ObjectPart(banned=frozenset((name,))) for name in part.required]
    for group in part.groups:
        for name, one in group.names.items():
            if one:
                made.append(ObjectPart((Group({name: _opposite(one)}),), {name: None}))
        for pattern, at, one in group.patterns:
            if one:
                made.append(ObjectPart(demands=(Demand(_opposite(one), inside=((pattern, at),)),)))
        if group.extra:
            outside = tuple((pattern, at) for pattern, at, _ in group.patterns)
            made.append(ObjectPart(demands=(Demand(_opposite(group.extra), frozenset(group.names), (), outside),)))
    if part.keys:
        made.append(ObjectPart(demands=(Demand(ANYTHING, keys=_opposite(part.keys)),)))
    return made
