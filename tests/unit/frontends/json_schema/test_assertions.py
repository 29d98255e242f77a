"""`can_merge` answers as `merge` does, for assertions of random schemas."""

from __future__ import annotations

import random
from typing import Any

from guideway.frontends.json_schema.assertions import (
    ARRAY,
    NOTHING,
    NUMBER,
    OBJECT,
    STRING,
    ArrayAssertions,
    NumberAssertions,
    ObjectAssertions,
    StringAssertions,
    TypeAssertions,
    can_merge,
    merge,
)

_NAMES = "abcd"
_TYPES = (1, 2, 4, NUMBER, STRING, ARRAY, OBJECT)


def _some(draw: random.Random, values: Any) -> list[Any]:
    return [value for value in values if draw.random() < 0.3]


def _maximum(draw: random.Random) -> int | None:
    return draw.randint(0, 3) if draw.random() < 0.4 else None


def _object(draw: random.Random) -> ObjectAssertions:
    return ObjectAssertions(
        required=dict.fromkeys(_some(draw, _NAMES)),
        forbidden=frozenset(_some(draw, _NAMES)),
        minimum=draw.randint(0, 2),
        maximum=_maximum(draw),
    )


def _string(draw: random.Random) -> StringAssertions:
    enum = dict.fromkeys(_some(draw, ["", "x", "xy", "xyz"])) or None
    tests = [(draw.random() < 0.5, "pattern", text, "") for text in _some(draw, "pq")]
    return StringAssertions(draw.randint(0, 2), _maximum(draw), tuple(tests), enum)


def _number(draw: random.Random) -> NumberAssertions:
    low = draw.choice([None, 0, 1, 2])
    return NumberAssertions(
        low,
        _maximum(draw),
        open_low=draw.random() < 0.3,
        multiple=tuple(_some(draw, [1, 2])),
        not_multiple=tuple(_some(draw, [2, 3])),
        enum=frozenset(_some(draw, range(4))) or None,
    )


def _array(draw: random.Random) -> ArrayAssertions:
    rest = NOTHING if draw.random() < 0.3 else frozenset()
    return ArrayAssertions(rest=rest, minimum=draw.randint(0, 2), maximum=_maximum(draw))


def _assertions(draw: random.Random) -> TypeAssertions:
    types = sum(_some(draw, _TYPES)) or draw.choice(_TYPES)
    made = TypeAssertions(types)
    if types & OBJECT and draw.random() < 0.8:
        made.object = _object(draw)
    if types & STRING and draw.random() < 0.8:
        made.string = _string(draw)
    if types & NUMBER and draw.random() < 0.8:
        made.number = _number(draw)
    if types & ARRAY and draw.random() < 0.8:
        made.array = _array(draw)
    if types & (ARRAY | OBJECT) and draw.random() < 0.2:
        made.composites = {str(value): value for value in _some(draw, [[], [1], {}, {"a": 1}])}
    return made


def test_can_merge_agrees_with_merge() -> None:
    draw = random.Random(29)
    found = {True: 0, False: 0}
    for _ in range(20_000):
        left, right = _assertions(draw), _assertions(draw)
        expected = merge(left, right) is not None
        assert can_merge(left, right) is expected, (left, right)
        found[expected] += 1
    assert min(found.values()) > 2_000


def test_listed_arrays_and_objects_of_another_size_are_removed() -> None:
    values = [[], [1], [1, 2], {}, {"a": 1}, {"a": 1, "b": 2}]
    listed = TypeAssertions(ARRAY | OBJECT, composites={str(value): value for value in values})

    def left(**parts: Any) -> list[Any]:
        made = merge(listed, TypeAssertions(**parts))
        return [] if made is None else list((made.composites or {}).values())

    assert left(types=ARRAY, array=ArrayAssertions(minimum=1, maximum=1)) == [[1]]
    assert left(types=ARRAY, array=ArrayAssertions(minimum=3)) == []
    assert left(types=OBJECT, object=ObjectAssertions(required={"b": None})) == [{"a": 1, "b": 2}]
    assert left(types=OBJECT, object=ObjectAssertions(forbidden=frozenset("b"), minimum=1)) == [{"a": 1}]
    assert left(types=OBJECT, object=ObjectAssertions(maximum=0)) == [{}]
    assert left(array=ArrayAssertions(minimum=2)) == [[1, 2], {}, {"a": 1}, {"a": 1, "b": 2}]
