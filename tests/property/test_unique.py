"""Unique arrays of arrays and objects: every mask along every text, compared with the enumeration of all texts."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import guideway as gw

TOKENS = [
    *(bytes([n]) for n in range(256)),
    *(p.encode() for p in ('{"', '":', "1}", '"a":1', "},{", "]]", "],[", "[0,", "[[")),
]
VOCABULARY = gw.Vocabulary([*TOKENS, b""], eos_ids=[len(TOKENS)])

Boxes = list[list[str]]  # for each value, its spellings


def entries(*given: tuple[str, tuple[int, ...], bool]) -> Boxes:
    """Objects with these keys, values of each, and whether it must be there; keys in any order."""
    made: list[list[str]] = [[]]
    for key, values, needed in given:
        made = [
            [*one, *more] for one in made for more in [*([] if needed else [[]]), *([f'"{key}":{v}'] for v in values)]
        ]
    return [["{" + ",".join(order) + "}" for order in permutations(one)] for one in made]


def lists(items: Boxes, least: int, most: int) -> list[str]:
    """Arrays of `least` to `most` different items."""
    found = []
    for count in range(least, most + 1):
        for chosen in permutations(items, count):
            texts = [""]
            for ways in chosen:
                texts = [f"{text},{way}" if text else way for text in texts for way in ways]
            found += [f"[{text}]" for text in texts]
    return found


NUMBERS = [["0"], ["1"]]
PAIRS = [[text] for text in lists(NUMBERS, 0, 2)]
ZEROS = {"type": "array", "items": {"const": 0}, "maxItems": 2}
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "objects": (
        {"items": {"properties": {"a": {"enum": [1, 2]}, "b": {"enum": [1]}}, "required": ["a"]}, "maxItems": 3},
        lists(entries(("a", (1, 2), True), ("b", (1,), False)), 0, 3),
    ),
    "all of them": (
        {"items": {"properties": {"a": {"enum": [1]}, "b": {"enum": [1]}}}, "minItems": 4},
        lists(entries(("a", (1,), False), ("b", (1,), False)), 4, 4),
    ),
    "arrays of different items": (
        {"items": {"type": "array", "items": {"enum": [0, 1]}, "uniqueItems": True}, "minItems": 2, "maxItems": 3},
        lists(PAIRS, 2, 3),
    ),
    "given ones": (
        {"items": {"enum": [[], [0], {"a": 1}, 1, 10]}, "minItems": 3},
        lists([["[]"], ["[0]"], ['{"a":1}'], ["1"], ["10"]], 3, 5),
    ),
    "of several sorts": (
        {"items": {"anyOf": [ZEROS, {"enum": [[0], {}, 1]}]}, "maxItems": 3},
        lists([["[]"], ["[0]"], ["[0,0]"], ["{}"], ["1"]], 0, 3),
    ),
}  # fmt: skip


def with_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Closed objects, and nothing but arrays at the top."""
    item = schema["items"]
    if "properties" in item:
        item = {**item, "type": "object", "additionalProperties": False}
    return {**schema, "type": "array", "uniqueItems": True, "items": item}


@pytest.mark.parametrize("name", CASES)
def test_masks_allow_what_can_become_one_of_all_texts(name: str) -> None:
    schema, texts = CASES[name]
    source = gw.JsonSchema(with_types(schema), whitespace="compact", key_order="any")
    automaton = gw.compile(source, VOCABULARY, cache=False)
    whole = {text.encode() for text in texts}
    starts = {text[:n] for text in whole for n in range(len(text) + 1)}
    row = np.zeros(automaton.matcher().words, np.uint32)
    fewest = min(map(len, whole))
    assert len(automaton.matcher().completion()) == fewest
    todo = [(b"", automaton.matcher())]
    while todo:
        text, matcher = todo.pop()
        matcher.fill_mask(row)
        legal = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(TOKENS) + 1].astype(bool)
        expected = [text + token in starts for token in TOKENS]
        assert legal.tolist() == [*expected, text in whole], text
        for byte in np.flatnonzero(legal[:256]).tolist():
            after = matcher.fork()
            after.advance(byte)
            todo.append((text + bytes([byte]), after))


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"uniqueItems": True}, ['[[1], [1, 2], {"a": 1}, 1, "1", null]', '[{"a": [1, 2]}, {"a": [2, 1]}]', "[[], {}]"],
         ["[[1], [ 1.0 ]]", '[{"a": 1, "b": 2}, 0, {"b": 2, "a": 1e0}]', '[["\\u0061\\n"], ["a\\u000a"]]', "[[], []]"]),
        ({"items": {"items": {"uniqueItems": True}}, "uniqueItems": True}, ["[[[1, 2]], [[2, 1]]]", '["a", ["a"]]'],
         ["[[[1, 2]], [[1, 2.0]]]", "[[[1, 1]]]", "[[[{}, {}]]]"]),
        ({"prefixItems": [{"type": "object"}, {"enum": [{"a": 1}, [1]]}], "uniqueItems": True},
         ['[{"a": 1}, [1]]', '[{"a": 2}, {"a": 1}, 3]'], ['[{"a": 1}, {"a": 1.0}]', '[{}, [1], [10e-1]]']),
    ],
)  # fmt: skip
def test_values_are_the_same_however_they_are_written(schema: dict[str, Any], good: list[str], bad: list[str]) -> None:
    automaton = gw.compile(gw.JsonSchema(schema, profile="exact"), VOCABULARY, cache=False)
    for text in good + bad:
        json.loads(text)
        ids = [*text.encode(), len(TOKENS)]
        assert (automaton.matcher().validate(ids) == len(ids)) is (text in good), text


def test_a_completion_is_as_long_as_was_said() -> None:
    schema = {"items": {"type": "object", "minProperties": 2}, "uniqueItems": True, "type": "array", "minItems": 2}
    matcher = gw.compile(gw.JsonSchema(schema, profile="exact"), VOCABULARY, cache=False).matcher()
    for byte in b'[{"":0,"abc":1} , { "":0, "a':
        completion = matcher.completion()
        trial = matcher.fork()
        for following in completion:
            trial.advance(following)
        assert trial.is_accepting
        matcher.advance(byte)
    assert matcher.completion() == b'":0}]'


def test_a_minimum_of_items_that_hold_themselves_is_refused_with_its_place() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True, "minItems": 2}}}
    with pytest.raises(gw.errors.UnsupportedError, match="hold each other") as caught:
        gw.compile(gw.JsonSchema(schema, profile="exact"), VOCABULARY, cache=False)
    assert caught.value.place == "/properties/a"


def test_many_long_items_are_distinguished() -> None:
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["name", "n"],
    }
    automaton = gw.compile(
        gw.JsonSchema({"type": "array", "items": item, "uniqueItems": True}), VOCABULARY, cache=False
    )
    values = [{"name": "a long name of something " * 3, "n": n} for n in range(150)]
    ids = [*json.dumps(values).encode(), len(TOKENS)]
    assert automaton.matcher().validate(ids) == len(ids)
    again = [*json.dumps([*values, values[70]]).encode()]
    assert automaton.matcher().validate(again) == len(again) - 2
