"""Assertions per type (`TypeAssertions`): their conjunction (`merge`) and their negation (`negations`).

A `Conjunction` is a set of literals. A literal is a number that refers to a schema or to its negation: 2n refers to
schema n, and 2n+1 to its negation. The literal 0 is `true` (any value), and 1 is `false` (no value). A value meets a
conjunction if it meets all its literals. Assertions are not changed after a schema was parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from guideway.jsontext.encoder import identity

__all__ = [
    "ALL",
    "ANYTHING",
    "ARRAY",
    "FALSE",
    "NOTHING",
    "NULL",
    "NUMBER",
    "OBJECT",
    "STRING",
    "TRUE",
    "UNCONSTRAINED",
    "WHOLE_DIGITS",
    "ArrayAssertions",
    "Conjunction",
    "CountedDisjunction",
    "Demand",
    "NumberAssertions",
    "ObjectAssertions",
    "Option",
    "PropertyRules",
    "StringAssertions",
    "TypeAssertions",
    "assertions_of_constant",
    "can_merge",
    "conjunction_of",
    "constant_key",
    "implies",
    "is_empty_interval",
    "join",
    "merge",
    "negations",
    "tidy_array",
    "within",
]

NULL, TRUE, FALSE, NUMBER, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32, 64
ALL = 127

Conjunction = frozenset[int]
ANYTHING: Conjunction = frozenset()
"""The conjunction that every value meets."""
NOTHING: Conjunction = frozenset({1})
"""A conjunction that no value meets. Other conjunctions with the literal 1 are equivalent."""
_NO_NAMES: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class NumberAssertions:
    """Assertions about numbers: an interval, divisors, and listed values.

    Attributes:
        low: The lower bound; None: no bound.
        high: The upper bound; None: no bound.
        open_low: Whether `low` itself is not allowed.
        open_high: Whether `high` itself is not allowed.
        multiple: Divisors: the number must be a multiple of each of them.
        not_multiple: The number must be a multiple of none of them.
        enum: The allowed numbers; None: all.
        excluded: Numbers that are not allowed.
        digits_only: True: the text must have neither a fraction nor an exponent. False: it must have one. None: both
            are allowed. Draft 4 defines integers by their text.
    """

    low: int | Decimal | None = None
    high: int | Decimal | None = None
    open_low: bool = False
    open_high: bool = False
    multiple: tuple[int | Decimal, ...] = ()
    not_multiple: tuple[int | Decimal, ...] = ()
    enum: frozenset[int | Decimal] | None = None
    excluded: frozenset[int | Decimal] = frozenset()
    digits_only: bool | None = None


WHOLE_DIGITS = NumberAssertions(multiple=(1,), digits_only=True)
"""The integers of draft 4. `1.0` and `1e2` are numbers, but not integers."""


@dataclass(slots=True, eq=False)
class StringAssertions:
    """Assertions about strings.

    Attributes:
        minimum: The minimum length, in code points.
        maximum: The maximum length, in code points; None: no limit.
        tests: Patterns and formats: whether the string must match, the kind ("pattern" or "format"), the pattern or the
            name of the format, and the JSON Pointer of the keyword.
        enum: The allowed strings; None: all.
        excluded: Strings that are not allowed.
    """

    minimum: int = 0
    maximum: int | None = None
    tests: tuple[tuple[bool, str, str, str], ...] = ()
    enum: dict[str, None] | None = None
    excluded: frozenset[str] = _NO_NAMES


@dataclass(slots=True, eq=False)
class ArrayAssertions:
    """Assertions about arrays.

    Attributes:
        prefix: The conditions on the first items, one for each item.
        rest: The condition on every later item.
        minimum: The minimum number of items.
        maximum: The maximum number of items; None: no limit.
        contains: For each `contains`: the index of the first item that counts, the condition, and the minimum and
            maximum number of items that meet it (None: no limit).
        unique: Whether all items must differ.
        duplicates: Whether the array must contain duplicates (two equal items).
    """

    prefix: tuple[Conjunction, ...] = ()
    rest: Conjunction = ANYTHING
    minimum: int = 0
    maximum: int | None = None
    contains: tuple[tuple[int, Conjunction, int, int | None], ...] = ()
    unique: bool = False
    duplicates: bool = False


@dataclass(slots=True, eq=False)
class PropertyRules:
    """Property rules of one schema: `properties`, `patternProperties` and `additionalProperties`.

    Attributes:
        names: For each key of `properties`, the condition on its value.
        patterns: For each member of `patternProperties`: the pattern, the JSON Pointer of the keyword, and the
            condition on the value.
        additional: The condition on the values of all other keys; None: the schema has no `additionalProperties`.
        has_properties: Whether the schema has the keyword `properties`, even with an empty value.
    """

    names: dict[str, Conjunction] = field(default_factory=dict)
    patterns: tuple[tuple[str, str, Conjunction], ...] = ()
    additional: Conjunction | None = None
    has_properties: bool = False


@dataclass(slots=True, eq=False)
class Demand:
    """A condition that at least one entry of an object must meet.

    An entry meets it if its key is not in `names`, matches all patterns of `inside` and none of `outside`, and meets
    `keys`, and its value meets `value`. An entry whose key is in `named` meets it if its value meets the condition that
    `named` gives for this key. A pattern of `inside` or `outside` comes with the JSON Pointer of its keyword.
    """

    value: Conjunction
    names: frozenset[str] = _NO_NAMES
    inside: tuple[tuple[str, str], ...] = ()
    outside: tuple[tuple[str, str], ...] = ()
    keys: Conjunction = ANYTHING
    named: tuple[tuple[str, Conjunction], ...] = ()


@dataclass(slots=True, eq=False)
class CountedDisjunction:
    """A disjunction whose branches are sets of conditions on the values of keys.

    Marks are bits: bit i means that branch i fails. A branch holds if no entry and no missing key makes it fail. The
    marks are collected while the object is read, so the disjunction is not expanded.

    Attributes:
        branches: The number of branches.
        maximum: The maximum number of branches that hold. At least one must hold.
        readings: For each key, disjoint conditions on its value. Each has the marks of the branches that fail if the
            value meets the condition.
        missing: For each key whose absence makes branches fail, the marks of these branches.
    """

    branches: int
    maximum: int
    readings: dict[str, list[tuple[int, Conjunction]]]
    missing: dict[str, int]


@dataclass(slots=True, eq=False)
class ObjectAssertions:
    """Assertions about objects.

    Attributes:
        rule_sets: The property rules of several schemas, all of which must hold.
        required: Keys that must be present.
        forbidden: Keys that must be absent.
        minimum: The minimum number of entries.
        maximum: The maximum number of entries; None: no limit.
        keys: The condition that every key must meet as a string (`propertyNames`).
        demands: Conditions, each of which at least one entry must meet.
        counted_disjunctions: Disjunctions, all of which must hold.
    """

    rule_sets: tuple[PropertyRules, ...] = ()
    required: dict[str, None] = field(default_factory=dict)
    forbidden: frozenset[str] = _NO_NAMES
    minimum: int = 0
    maximum: int | None = None
    keys: Conjunction = ANYTHING
    demands: tuple[Demand, ...] = ()
    counted_disjunctions: tuple[CountedDisjunction, ...] = ()


@dataclass(slots=True, eq=False)
class TypeAssertions:
    """The allowed types, and the assertions about the values of each type.

    Attributes:
        types: The allowed types as bits, such as `NULL | STRING`.
        number: Assertions about numbers; None: there are none. The next three are similar.
        string: Assertions about strings.
        array: Assertions about arrays.
        object: Assertions about objects.
        composites: The allowed arrays and objects by `constant_key`; None: they are not listed. They must also meet
            `array` and `object`.
    """

    types: int = ALL
    number: NumberAssertions | None = None
    string: StringAssertions | None = None
    array: ArrayAssertions | None = None
    object: ObjectAssertions | None = None
    composites: dict[str, Any] | None = None

    @property
    def unconstrained(self) -> bool:
        """Whether there are no assertions about the values of the types."""
        return not (self.object or self.string or self.number or self.array) and self.composites is None


UNCONSTRAINED = TypeAssertions()


def conjunction_of(literal: int) -> Conjunction:
    """Return the conjunction that is equivalent to one literal."""
    return frozenset((literal,)) if literal > 1 else NOTHING if literal else ANYTHING


def join(left: Conjunction, right: Conjunction) -> Conjunction:
    """Return the conjunction of two conjunctions.

    It is `NOTHING` if one contains the negation of a literal of the other.
    """
    if not left or left is right:
        return right
    if not right:
        return left
    if len(right) == 1:  # nearly always
        (one,) = right
        if one == 1 or 1 in left or one ^ 1 in left:
            return NOTHING
        return left if one in left else left | right
    both = left | right
    if 1 in both or not left.isdisjoint([one ^ 1 for one in right]):
        return NOTHING
    return both


def merge(left: TypeAssertions, right: TypeAssertions) -> TypeAssertions | None:
    """Return assertions that a value meets if it meets both arguments; None: no type remains."""
    types = left.types & right.types
    part, added = left.object, right.object
    if added is None and left.types == types and right.unconstrained:
        return left
    if part is None and right.types == types and left.unconstrained:
        return right
    if types == OBJECT and left.composites is None and right.composites is None:  # the most frequent case
        if part is None or added is None:
            part = part or added
        else:
            part = _objects(part, added)
            if part is None:
                return None
        return TypeAssertions(OBJECT, object=part)
    number = string = array = object_ = None
    if types & NUMBER:
        number = left.number or right.number
        if left.number and right.number:
            number = _numbers(left.number, right.number)
            types &= ~0 if number else ~NUMBER
    if types & STRING:
        string = left.string or right.string
        if left.string and right.string:
            string = _strings(left.string, right.string)
            types &= ~0 if string else ~STRING
    if types & ARRAY:
        array = left.array or right.array
        if left.array and right.array:
            array = _arrays(left.array, right.array)
            types &= ~0 if array else ~ARRAY
    if types & OBJECT:
        object_ = left.object or right.object
        if left.object and right.object:
            object_ = _objects(left.object, right.object)
            types &= ~0 if object_ else ~OBJECT
    composites = left.composites if left.composites is not None else right.composites
    if composites is not None:
        if left.composites is not None and right.composites is not None:
            composites = {key: composite for key, composite in left.composites.items() if key in right.composites}
        fits = partial(_has_size, array if types & ARRAY else None, object_ if types & OBJECT else None)
        kinds = {list if types & ARRAY else None, dict if types & OBJECT else None}
        composites = {
            key: composite for key, composite in composites.items() if type(composite) in kinds and fits(composite)
        }
        kept = set(map(type, composites.values()))
        types &= ~((0 if list in kept else ARRAY) | (0 if dict in kept else OBJECT))
    return TypeAssertions(types, number, string, array, object_, composites) if types else None


def _has_size(array: ArrayAssertions | None, object_: ObjectAssertions | None, composite: Any) -> bool:
    """Return whether a listed array or object has an allowed number of items or entries.

    An object must also have the required keys, and none of the forbidden ones.
    """
    if type(composite) is list:
        return array is None or _in_limits(len(composite), array.minimum, array.maximum)
    if object_ is None:
        return True
    return (
        _in_limits(len(composite), object_.minimum, object_.maximum)
        and object_.required.keys() <= composite.keys()
        and object_.forbidden.isdisjoint(composite)
    )


def _in_limits(size: int, minimum: int, maximum: int | None) -> bool:
    return size >= minimum and (maximum is None or size <= maximum)


def can_merge(left: TypeAssertions, right: TypeAssertions) -> bool:
    """Return whether `merge` finds a type that remains.

    Unless arrays or objects are listed, assertions about objects are compared without merging them.
    """
    types = left.types & right.types
    if left.composites is not None or right.composites is not None:
        return merge(left, right) is not None
    if types & NULL or types & TRUE or types & FALSE:
        return True
    return bool(
        (types & OBJECT and (not left.object or not right.object or _can_merge_objects(left.object, right.object)))
        or (types & STRING and (not left.string or not right.string or _strings(left.string, right.string)))
        or (types & NUMBER and (not left.number or not right.number or _numbers(left.number, right.number)))
        or (types & ARRAY and (not left.array or not right.array or _arrays(left.array, right.array)))
    )


def implies(assertions: TypeAssertions, other: TypeAssertions) -> bool:
    """Return whether a simple comparison shows that every value that meets `assertions` also meets `other`.

    False means that the comparison does not show it.
    """
    if assertions.types & ~other.types or other.composites is not None:
        return False
    if (other.number and assertions.types & NUMBER) or (other.string and assertions.types & STRING):
        return False
    if other.array and assertions.types & ARRAY:
        return False
    part, asked = assertions.object, other.object
    if asked is None or not assertions.types & OBJECT:
        return True
    if (
        part is None
        or asked.minimum
        or asked.maximum is not None
        or asked.keys
        or asked.demands
        or asked.counted_disjunctions
    ):
        return False
    if not (asked.forbidden <= part.forbidden and asked.required.keys() <= part.required.keys()):
        return False
    return not asked.rule_sets or (
        all(
            any(rules.names.get(name, ANYTHING) >= conjunction for rules in part.rule_sets)
            for inner in asked.rule_sets
            for name, conjunction in inner.names.items()
        )
        and not any(inner.patterns or inner.additional for inner in asked.rule_sets)
    )


def _smaller_limit(left: int | None, right: int | None) -> int | None:
    """Return the smaller of two upper limits; None: no limit."""
    return right if left is None else left if right is None else min(left, right)


# -- numbers


def _numbers(left: NumberAssertions, right: NumberAssertions) -> NumberAssertions | None:
    low, open_low = left.low, left.open_low
    if right.low is not None and (low is None or right.low > low or (right.low == low and right.open_low)):
        low, open_low = right.low, right.open_low
    high, open_high = left.high, left.open_high
    if right.high is not None and (high is None or right.high < high or (right.high == high and right.open_high)):
        high, open_high = right.high, right.open_high
    enum = left.enum if right.enum is None else right.enum
    if left.enum is not None and right.enum is not None:
        enum = left.enum & right.enum
    digits_only = left.digits_only if right.digits_only is None else right.digits_only
    if left.digits_only is not None and left.digits_only is not digits_only:
        return None
    made = NumberAssertions(
        low,
        high,
        open_low,
        open_high,
        tuple(dict.fromkeys(left.multiple + right.multiple)),
        tuple(dict.fromkeys(left.not_multiple + right.not_multiple)),
        enum,
        left.excluded | right.excluded,
        digits_only,
    )
    if is_empty_interval(made) or set(made.multiple) & set(made.not_multiple):
        return None
    if enum is not None:
        made.enum = frozenset(value for value in enum if within(value, made))
        return NumberAssertions(enum=made.enum, digits_only=digits_only) if made.enum else None
    return made


def is_empty_interval(part: NumberAssertions) -> bool:
    """Return whether no number lies between the bounds. Other assertions are ignored."""
    low, high = part.low, part.high
    if low is None or high is None:
        return False
    return low > high or (low == high and (part.open_low or part.open_high))


def within(value: int | Decimal, part: NumberAssertions) -> bool:
    """Return whether a number meets the assertions. `enum` and `digits_only` are ignored."""
    if part.low is not None and (value < part.low or (part.open_low and value == part.low)):
        return False
    if part.high is not None and (value > part.high or (part.open_high and value == part.high)):
        return False
    if value in part.excluded:
        return False
    return all(_divides(one, value) for one in part.multiple) and not any(
        _divides(one, value) for one in part.not_multiple
    )


def _divides(divisor: int | Decimal, value: int | Decimal) -> bool:
    return (Fraction(value) / Fraction(divisor)).denominator == 1


# -- strings


def _strings(left: StringAssertions, right: StringAssertions) -> StringAssertions | None:
    minimum, maximum = max(left.minimum, right.minimum), _smaller_limit(left.maximum, right.maximum)
    if maximum is not None and minimum > maximum:
        return None
    excluded = left.excluded | right.excluded
    enum = left.enum if right.enum is None else right.enum
    if enum is not None:
        other = right.enum if left.enum is not None and right.enum is not None else enum
        first = left.enum if left.enum is not None else enum
        enum = {
            text: None
            for text in first
            if text in other
            and text not in excluded
            and minimum <= len(text)
            and (maximum is None or len(text) <= maximum)
        }
        if not enum:
            return None
        minimum, maximum, excluded = 0, None, _NO_NAMES
    tests = left.tests + tuple(test for test in right.tests if test not in left.tests)
    held = {(kind, text) for holds, kind, text, _ in tests if holds}
    if any(not holds and (kind, text) in held for holds, kind, text, _ in tests):
        return None
    return StringAssertions(minimum, maximum, tests, enum, excluded)


# -- arrays


def _arrays(left: ArrayAssertions, right: ArrayAssertions) -> ArrayAssertions | None:
    minimum, maximum = max(left.minimum, right.minimum), _smaller_limit(left.maximum, right.maximum)
    if maximum is not None and minimum > maximum:
        return None
    length = max(len(left.prefix), len(right.prefix))
    prefix = tuple(
        join(
            left.prefix[i] if i < len(left.prefix) else left.rest,
            right.prefix[i] if i < len(right.prefix) else right.rest,
        )
        for i in range(length)
    )
    made = ArrayAssertions(
        prefix,
        join(left.rest, right.rest),
        minimum,
        maximum,
        tuple(dict.fromkeys(left.contains + right.contains)),
        left.unique or right.unique,
        left.duplicates or right.duplicates,
    )
    return tidy_array(made)


def tidy_array(part: ArrayAssertions) -> ArrayAssertions | None:
    """Reduce the maximum number of items if the condition on some item contains the literal 1 (no value).

    Returns the assertions, or None if no number of items is allowed.
    """
    maximum = part.maximum
    for i, items in enumerate(part.prefix):
        if items is NOTHING or 1 in items:
            maximum = _smaller_limit(maximum, i)
            break
    else:
        if 1 in part.rest:
            maximum = _smaller_limit(maximum, len(part.prefix))
    if maximum is not None and part.minimum > maximum:
        return None
    if maximum == part.maximum:
        return part
    return replace(part, maximum=maximum)


# -- objects


def _objects(left: ObjectAssertions, right: ObjectAssertions) -> ObjectAssertions | None:
    required, forbidden, rule_sets = left.required, left.forbidden, left.rule_sets
    if right.required:
        if forbidden and not forbidden.isdisjoint(right.required):
            return None
        if not right.required.keys() <= required.keys():
            required = {**required, **right.required}
    if right.forbidden:
        if not right.forbidden.isdisjoint(required):
            return None
        forbidden = forbidden | right.forbidden
    if not rule_sets:
        rule_sets = right.rule_sets
    elif right.rule_sets is not rule_sets:
        for rules in right.rule_sets:
            if rules not in rule_sets:
                rule_sets = (*rule_sets, rules)
    maximum = right.maximum if left.maximum is None else _smaller_limit(left.maximum, right.maximum)
    minimum = left.minimum if left.minimum > right.minimum else right.minimum
    if maximum is not None and max(minimum, len(required)) > maximum:
        return None
    keys = join(left.keys, right.keys) if right.keys else left.keys
    demands, counted_disjunctions = left.demands + right.demands, left.counted_disjunctions + right.counted_disjunctions
    return ObjectAssertions(rule_sets, required, forbidden, minimum, maximum, keys, demands, counted_disjunctions)


def _can_merge_objects(left: ObjectAssertions, right: ObjectAssertions) -> bool:
    """Return whether `_objects` returns assertions, not None."""
    if not left.forbidden.isdisjoint(right.required):
        return False
    # As in `_objects`, the keys that `right` requires are compared with its own forbidden keys as well.
    if right.forbidden and not (
        right.forbidden.isdisjoint(left.required) and right.forbidden.isdisjoint(right.required)
    ):
        return False
    maximum = _smaller_limit(left.maximum, right.maximum)
    if maximum is None:
        return True
    return max(left.minimum, right.minimum, len(left.required.keys() | right.required.keys())) <= maximum


def constant_key(value: object) -> str:
    """Return a string for a JSON value. Two values have the same string if and only if they are equal."""
    return identity(value)


Option = tuple[TypeAssertions | None, tuple[int, ...]]
"""One branch of a disjunction: assertions (None: no assertion) and literals, all of which must hold."""


def assertions_of_constant(value: Any, literal_of: Callable[[Any], int]) -> TypeAssertions:
    """Return assertions that allow only the given array or object: its items or entries, and no others.

    `literal_of` returns the literal of a schema that allows only the given value.
    """
    if isinstance(value, list):
        items = tuple(conjunction_of(literal_of(item)) for item in value)
        return TypeAssertions(ARRAY, array=ArrayAssertions(items, NOTHING, len(items), len(items)))
    rules = PropertyRules({name: conjunction_of(literal_of(inner)) for name, inner in value.items()}, (), NOTHING)
    return TypeAssertions(OBJECT, object=ObjectAssertions((rules,), dict.fromkeys(value)))


def negations(own: TypeAssertions, literal_of: Callable[[Any], int]) -> list[Option]:
    """Return the negation of assertions as a disjunction: a list of branches.

    Args:
        own: The assertions of one schema.
        literal_of: Returns the literal of a schema.
    """
    options: list[Option] = []
    if own.types != ALL:
        options.append((TypeAssertions(ALL & ~own.types), ()))
    if own.composites:
        options += _negated_composites(own.composites, literal_of)
    if own.number:
        options += (((TypeAssertions(NUMBER, number=part)), ()) for part in _negated_numbers(own.number))
    if own.string:
        options += (((TypeAssertions(STRING, string=part)), ()) for part in _negated_strings(own.string))
    if own.array:
        options += (((TypeAssertions(ARRAY, array=part)), ()) for part in _negated_arrays(own.array))
    if own.object:
        options += (((TypeAssertions(OBJECT, object=part)), ()) for part in _negated_objects(own.object))
    return options


def _negated_composites(composites: dict[str, object], literal_of: Callable[[Any], int]) -> list[Option]:
    options: list[Option] = []
    for kind, types in ((list, ARRAY), (dict, OBJECT)):
        same = [composite for composite in composites.values() if isinstance(composite, kind)]
        if len(same) > 1:
            others = tuple(literal_of({"enum": [composite]}) ^ 1 for composite in same)
            options.append((TypeAssertions(types), others))
        elif same:
            part = assertions_of_constant(same[0], lambda value: literal_of({"enum": [value]}))
            if part.array:
                options += (((TypeAssertions(ARRAY, array=one)), ()) for one in _negated_arrays(part.array))
            elif part.object:
                options += (((TypeAssertions(OBJECT, object=one)), ()) for one in _negated_objects(part.object))
    return options


def _negated_numbers(part: NumberAssertions) -> list[NumberAssertions]:
    made = []
    if part.digits_only is not None:
        made.append(NumberAssertions(digits_only=False) if part.digits_only else WHOLE_DIGITS)
    if part.enum is not None:
        return [*made, NumberAssertions(excluded=part.enum)]
    if part.low is not None:
        made.append(NumberAssertions(high=part.low, open_high=not part.open_low))
    if part.high is not None:
        made.append(NumberAssertions(low=part.high, open_low=not part.open_high))
    multiple = tuple(one for one in part.multiple if one != 1) if part.digits_only else part.multiple
    return made + [NumberAssertions(not_multiple=(one,)) for one in multiple]


def _negated_strings(part: StringAssertions) -> list[StringAssertions]:
    made = []
    if part.enum is not None:
        made.append(StringAssertions(excluded=frozenset(part.enum)))
    if part.minimum:
        made.append(StringAssertions(maximum=part.minimum - 1))
    if part.maximum is not None:
        made.append(StringAssertions(minimum=part.maximum + 1))
    return made + [StringAssertions(tests=((not holds, kind, text, at),)) for holds, kind, text, at in part.tests]


def _negated_condition(one: Conjunction) -> Conjunction:
    """Return the negation of a conjunction with at most one literal. No condition of a single schema has more."""
    return conjunction_of(next(iter(one)) ^ 1) if one else NOTHING


def _negated_arrays(part: ArrayAssertions) -> list[ArrayAssertions]:
    made = []
    if part.minimum:
        made.append(ArrayAssertions(maximum=part.minimum - 1))
    if part.maximum is not None:
        made.append(ArrayAssertions(minimum=part.maximum + 1))
    for i, one in enumerate(part.prefix):
        if one:
            made.append(ArrayAssertions((ANYTHING,) * i + (_negated_condition(one),), minimum=i + 1))
    if part.rest:
        made.append(ArrayAssertions(contains=((len(part.prefix), _negated_condition(part.rest), 1, None),)))
    for start, what, least, maximum in part.contains:
        if least:
            made.append(ArrayAssertions(contains=((start, what, 0, least - 1),)))
        if maximum is not None:
            made.append(ArrayAssertions(contains=((start, what, maximum + 1, None),)))
    if part.unique:
        made.append(ArrayAssertions(minimum=2, duplicates=True))
    return made


def _negated_objects(part: ObjectAssertions) -> list[ObjectAssertions]:
    made = []
    if part.minimum:
        made.append(ObjectAssertions(maximum=part.minimum - 1))
    if part.maximum is not None:
        made.append(ObjectAssertions(minimum=part.maximum + 1))
    made += [ObjectAssertions(forbidden=frozenset((name,))) for name in part.required]
    for rules in part.rule_sets:
        for name, one in rules.names.items():
            if one:
                made.append(ObjectAssertions((PropertyRules({name: _negated_condition(one)}),), {name: None}))
        for pattern, at, one in rules.patterns:
            if one:
                made.append(ObjectAssertions(demands=(Demand(_negated_condition(one), inside=((pattern, at),)),)))
        if rules.additional:
            outside = tuple((pattern, at) for pattern, at, _ in rules.patterns)
            made.append(
                ObjectAssertions(
                    demands=(Demand(_negated_condition(rules.additional), frozenset(rules.names), (), outside),)
                )
            )
    if part.keys:
        made.append(ObjectAssertions(demands=(Demand(ANYTHING, keys=_negated_condition(part.keys)),)))
    return made
