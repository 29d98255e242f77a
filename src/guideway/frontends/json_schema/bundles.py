"""Assertions per type (`Bundle`), and their conjunction (`merge`).

A `Want` is a conjunction of schema references, called literals. The literal 2n refers to schema n, and 2n+1 to its
negation. The literal 0 is `true`, and 1 is `false`. A value meets a want if it meets all its literals. Parts of bundles
are not changed after construction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from guideway.jsontext.encoder import identity

__all__ = [
    "ALL",
    "ANYTHING",
    "ARRAY",
    "FALSE",
    "FREE",
    "NOTHING",
    "NULL",
    "NUMBER",
    "OBJECT",
    "STRING",
    "TRUE",
    "WHOLE_DIGITS",
    "ArrayPart",
    "Bundle",
    "Demand",
    "Group",
    "NumberPart",
    "ObjectPart",
    "StringPart",
    "Tally",
    "Want",
    "box_key",
    "is_void",
    "join",
    "merge",
    "says",
    "tidy_array",
    "within",
]

NULL, TRUE, FALSE, NUMBER, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32, 64
ALL = 127

Want = frozenset[int]
ANYTHING: Want = frozenset()
NOTHING: Want = frozenset({1})
_NO_NAMES: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class NumberPart:
    """Assertions about numbers: an interval, divisors, and listed values.

    `digits_only` says whether the text has neither fraction nor exponent, because draft 4 defines integers by their
    text. None allows both.
    """

    low: int | Decimal | None = None
    high: int | Decimal | None = None
    open_low: bool = False
    open_high: bool = False
    multiple: tuple[int | Decimal, ...] = ()
    not_multiple: tuple[int | Decimal, ...] = ()
    given: frozenset[int | Decimal] | None = None
    excluded: frozenset[int | Decimal] = frozenset()
    digits_only: bool | None = None


WHOLE_DIGITS = NumberPart(multiple=(1,), digits_only=True)
"""The integers of draft 4. `1.0` and `1e2` are numbers, but not integers."""


@dataclass(slots=True, eq=False)
class StringPart:
    """Assertions about strings: lengths in code points, tests, and listed values.

    A test has four fields: whether it must hold, its kind ("pattern" or "format"), its text, and its JSON Pointer.
    """

    fewest: int = 0
    most: int | None = None
    tests: tuple[tuple[bool, str, str, str], ...] = ()
    given: dict[str, None] | None = None
    excluded: frozenset[str] = _NO_NAMES


@dataclass(slots=True, eq=False)
class ArrayPart:
    """Assertions about arrays.

    Attributes:
        contains: The first index, the condition, the minimum count and the maximum count.
        twins: Whether the array must contain duplicates (two equal items).
    """

    prefix: tuple[Want, ...] = ()
    rest: Want = ANYTHING
    fewest: int = 0
    most: int | None = None
    contains: tuple[tuple[int, Want, int, int | None], ...] = ()
    unique: bool = False
    twins: bool = False


@dataclass(slots=True, eq=False)
class Group:
    """Property rules of one schema: `properties`, `patternProperties` and the condition on all other keys.

    Attributes:
        patterns: The pattern, its JSON Pointer and the condition on the value.
        listed: Whether the schema has `properties`, even if it is empty.
    """

    names: dict[str, Want] = field(default_factory=dict)
    patterns: tuple[tuple[str, str, Want], ...] = ()
    extra: Want | None = None
    listed: bool = False


@dataclass(slots=True, eq=False)
class Demand:
    """An existential property: an object must have some key with a given value.

    The key is none of `names`, matches all patterns of `inside` and none of `outside`, and meets `keys`. Its value
    meets `value`. Alternatively, a key of `named` has a value that meets the condition listed with it.
    """

    value: Want
    names: frozenset[str] = _NO_NAMES
    inside: tuple[tuple[str, str], ...] = ()
    outside: tuple[tuple[str, str], ...] = ()
    keys: Want = ANYTHING
    named: tuple[tuple[str, Want], ...] = ()


@dataclass(slots=True, eq=False)
class Tally:
    """A disjunction of several sets of conditions on the values of keys, called branches.

    Bit i of `marks` means that branch i fails. A branch holds if no entry and no missing key makes it fail.

    Attributes:
        branches: The number of branches.
        most: The maximum number of branches that hold. At least one must hold.
        ways: For each key, disjoint conditions on its value, each with the marks of the branches that it makes fail.
        missing: For keys whose absence makes branches fail, the marks of these branches.
    """

    branches: int
    most: int
    ways: dict[str, list[tuple[int, Want]]]
    missing: dict[str, int]


@dataclass(slots=True, eq=False)
class ObjectPart:
    """Assertions about objects.

    All groups (property rules) and all tallies (disjunctions) must hold. Every key, as a string, must meet `keys`.
    """

    groups: tuple[Group, ...] = ()
    required: dict[str, None] = field(default_factory=dict)
    banned: frozenset[str] = _NO_NAMES
    fewest: int = 0
    most: int | None = None
    keys: Want = ANYTHING
    demands: tuple[Demand, ...] = ()
    tallies: tuple[Tally, ...] = ()


@dataclass(slots=True, eq=False)
class Bundle:
    """The allowed types as bits, and the assertions about each type.

    None means that there is no assertion. `boxes` (constant arrays and objects) lists the only allowed arrays and
    objects.
    """

    types: int = ALL
    number: NumberPart | None = None
    string: StringPart | None = None
    array: ArrayPart | None = None
    object: ObjectPart | None = None
    boxes: dict[str, Any] | None = None

    @property
    def free(self) -> bool:
        """Whether the bundle asserts nothing except its types."""
        return not (self.object or self.string or self.number or self.array) and self.boxes is None


FREE = Bundle()


def join(left: Want, right: Want) -> Want:
    """Return the conjunction of two wants, or `NOTHING` if a literal of one is negated in the other."""
    if not left or left is right:
        return right
    if not right:
        return left
    both = left | right
    if 1 in both or any(one ^ 1 in left for one in right):
        return NOTHING
    return both


def merge(left: Bundle, right: Bundle) -> Bundle | None:
    """Return the conjunction of two bundles, or None if no type remains."""
    types = left.types & right.types
    if left.types == types and not right.object and right.free:
        return left
    if right.types == types and not left.object and left.free:
        return right
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
    boxes = left.boxes if left.boxes is not None else right.boxes
    if boxes is not None:
        if left.boxes is not None and right.boxes is not None:
            boxes = {key: box for key, box in left.boxes.items() if key in right.boxes}
        kinds = {list if types & ARRAY else None, dict if types & OBJECT else None}
        boxes = {key: box for key, box in boxes.items() if type(box) in kinds}
        kept = set(map(type, boxes.values()))
        types &= ~((0 if list in kept else ARRAY) | (0 if dict in kept else OBJECT))
    return Bundle(types, number, string, array, object_, boxes) if types else None


def says(bundle: Bundle, other: Bundle) -> bool:
    """Whether a bundle syntactically implies another, small one."""
    if bundle.types & ~other.types or other.boxes is not None:
        return False
    if (other.number and bundle.types & NUMBER) or (other.string and bundle.types & STRING):
        return False
    if other.array and bundle.types & ARRAY:
        return False
    part, asked = bundle.object, other.object
    if asked is None or not bundle.types & OBJECT:
        return True
    if part is None or asked.fewest or asked.most is not None or asked.keys or asked.demands or asked.tallies:
        return False
    if not (asked.banned <= part.banned and asked.required.keys() <= part.required.keys()):
        return False
    return all(
        any(group.names.get(name, ANYTHING) >= wanted for group in part.groups)
        for inner in asked.groups
        for name, wanted in inner.names.items()
    ) and not any(inner.patterns or inner.extra for inner in asked.groups)


def _highest(left: int | None, right: int | None) -> int | None:
    """The smaller of two upper limits."""
    return right if left is None else left if right is None else min(left, right)


# -- numbers


def _numbers(left: NumberPart, right: NumberPart) -> NumberPart | None:
    low, open_low = left.low, left.open_low
    if right.low is not None and (low is None or right.low > low or (right.low == low and right.open_low)):
        low, open_low = right.low, right.open_low
    high, open_high = left.high, left.open_high
    if right.high is not None and (high is None or right.high < high or (right.high == high and right.open_high)):
        high, open_high = right.high, right.open_high
    given = left.given if right.given is None else right.given
    if left.given is not None and right.given is not None:
        given = left.given & right.given
    digits_only = left.digits_only if right.digits_only is None else right.digits_only
    if left.digits_only is not None and left.digits_only is not digits_only:
        return None
    made = NumberPart(
        low,
        high,
        open_low,
        open_high,
        tuple(dict.fromkeys(left.multiple + right.multiple)),
        tuple(dict.fromkeys(left.not_multiple + right.not_multiple)),
        given,
        left.excluded | right.excluded,
        digits_only,
    )
    if is_void(made) or set(made.multiple) & set(made.not_multiple):
        return None
    if given is not None:
        made.given = frozenset(value for value in given if within(value, made))
        return NumberPart(given=made.given, digits_only=digits_only) if made.given else None
    return made


def is_void(part: NumberPart) -> bool:
    """Whether the interval is empty."""
    low, high = part.low, part.high
    if low is None or high is None:
        return False
    return low > high or (low == high and (part.open_low or part.open_high))


def within(value: int | Decimal, part: NumberPart) -> bool:
    """Whether a number meets all assertions about its value. The spelling is not considered."""
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


def _strings(left: StringPart, right: StringPart) -> StringPart | None:
    fewest, most = max(left.fewest, right.fewest), _highest(left.most, right.most)
    if most is not None and fewest > most:
        return None
    excluded = left.excluded | right.excluded
    given = left.given if right.given is None else right.given
    if given is not None:
        other = right.given if left.given is not None and right.given is not None else given
        first = left.given if left.given is not None else given
        given = {
            text: None
            for text in first
            if text in other and text not in excluded and fewest <= len(text) and (most is None or len(text) <= most)
        }
        if not given:
            return None
        fewest, most, excluded = 0, None, _NO_NAMES
    tests = left.tests + tuple(test for test in right.tests if test not in left.tests)
    held = {(kind, text) for holds, kind, text, _ in tests if holds}
    if any(not holds and (kind, text) in held for holds, kind, text, _ in tests):
        return None
    return StringPart(fewest, most, tests, given, excluded)


# -- arrays


def _arrays(left: ArrayPart, right: ArrayPart) -> ArrayPart | None:
    length = max(len(left.prefix), len(right.prefix))
    prefix = tuple(
        join(
            left.prefix[i] if i < len(left.prefix) else left.rest,
            right.prefix[i] if i < len(right.prefix) else right.rest,
        )
        for i in range(length)
    )
    made = ArrayPart(
        prefix,
        join(left.rest, right.rest),
        max(left.fewest, right.fewest),
        _highest(left.most, right.most),
        tuple(dict.fromkeys(left.contains + right.contains)),
        left.unique or right.unique,
        left.twins or right.twins,
    )
    return tidy_array(made)


def tidy_array(part: ArrayPart) -> ArrayPart | None:
    """Tighten the maximum length by positions that allow no value. Return None if no length remains."""
    most = part.most
    for i, want in enumerate(part.prefix):
        if want is NOTHING or 1 in want:
            most = _highest(most, i)
            break
    else:
        if 1 in part.rest:
            most = _highest(most, len(part.prefix))
    if most is not None and part.fewest > most:
        return None
    if most == part.most:
        return part
    return replace(part, most=most)


# -- objects


def _objects(left: ObjectPart, right: ObjectPart) -> ObjectPart | None:
    required, banned, groups = left.required, left.banned, left.groups
    if right.required:
        if banned and not banned.isdisjoint(right.required):
            return None
        required = {**required, **right.required}
    if right.banned:
        if not right.banned.isdisjoint(required):
            return None
        banned = banned | right.banned
    if right.groups:
        groups += tuple([group for group in right.groups if group not in groups])
    most = _highest(left.most, right.most)
    fewest = left.fewest if left.fewest > right.fewest else right.fewest
    if most is not None and max(fewest, len(required)) > most:
        return None
    keys = join(left.keys, right.keys)
    demands, tallies = left.demands + right.demands, left.tallies + right.tallies
    return ObjectPart(groups, required, banned, fewest, most, keys, demands, tallies)


def box_key(value: object) -> str:
    """A key that equal arrays or objects share."""
    return identity(value)
