"""Values with many readings: masks along texts, compared with single tokens and with enumerations."""

from __future__ import annotations

import json
import random
from itertools import permutations, product
from typing import Any

import jsonschema
import numpy as np
import pytest

import guideway as gw
from tests.helpers.counts import seeds

PIECES = ['{"', '":', '": "', '"a":', "},{", '"}, {"', "]}", "}}", '"},', '": {"', "1}", '"p":{"', "[{", "true,"]
TOKENS = [*(bytes([n]) for n in range(256)), *(piece.encode() for piece in PIECES)]
VOCABULARY = gw.Vocabulary([*TOKENS, b""], eos_ids=[len(TOKENS)])


def legal(matcher: gw.Matcher, row: np.ndarray) -> np.ndarray:
    """The mask as one bool per token."""
    matcher.fill_mask(row)
    return np.unpackbits(row.view(np.uint8), bitorder="little").astype(bool)


def accepts(matcher: gw.Matcher, token: int) -> bool:
    """Whether the matcher advances by the token."""
    try:
        matcher.fork().advance(token)
    except gw.errors.RejectedTokenError:
        return False
    return True


def check_masks(automaton: Any, text: str) -> None:
    """Every mask along the text holds exactly the tokens by which the matcher advances."""
    matcher = automaton.matcher()
    row = np.zeros(matcher.words, np.uint32)
    for byte in text.encode():
        mask = legal(matcher, row)
        assert mask[: len(TOKENS)].tolist() == [accepts(matcher, token) for token in range(len(TOKENS))]
        matcher.advance(byte)
    assert matcher.is_accepting


SECTIONS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "v": {"type": "integer"},
        "s": {
            "type": "array",
            "uniqueItems": True,
            "items": {
                "type": "object",
                "properties": {"o": {"type": "object", "properties": {"n": {"type": "integer"}}}},
                "anyOf": [{"properties": {"u": {"type": "string"}}}, {"properties": {"m": {"$ref": "#"}}}],
            },
        },
    },
    "required": ["v"],
}


@pytest.mark.parametrize(
    "text",
    [
        '{"v": 1, "s": [{"u": "x", "o": {"n": 0}}, {"m": {"v": 2, "s": [{"m": 7}]}}]}',
        '{"s":[{},{"u":{"a":[]},"k":[1]}, 1e400, {"o": {"n": -1}}],"v":3}'.replace(" 1e400,", ""),
    ],
)
def test_unique_items_that_hold_themselves_in_several_ways(text: str) -> None:
    check_masks(gw.compile(gw.JsonSchema(SECTIONS, profile="exact"), VOCABULARY, cache=False), text)


def test_masks_of_unique_items_make_no_state_for_each_token() -> None:
    """An open key stores the characters that it has read, so each token would lead to a separate state."""
    rng = random.Random(1)
    words = {"".join(rng.choices("abcdefgh", k=rng.randrange(2, 8))) for _ in range(20_000)}
    tokens = [*(bytes([n]) for n in range(256)), *(word.encode() for word in sorted(words))]
    vocabulary = gw.Vocabulary([*tokens, b""], eos_ids=[len(tokens)])
    automaton = gw.compile(gw.JsonSchema(SECTIONS, profile="exact"), vocabulary, cache=False)
    matcher = automaton.matcher()
    row = np.zeros(matcher.words, np.uint32)
    for byte in b'{"v": 1, "s": [{"url": "x", "o':
        matcher.fill_mask(row)
        matcher.advance(byte)
    assert automaton.stats()["expressions"] < 5000


def nested(depth: int, width: int) -> dict[str, Any]:
    """Objects in objects, each with `width` branches that differ in a key that comes after the nested value."""
    levels: dict[str, Any] = {"n0": {"type": "integer"}}
    for level in range(depth):
        inside = {"$ref": f"#/$defs/n{level}"}
        branches = [{"properties": {"p": inside, f"k{i}": {"const": i}}, "required": [f"k{i}"]} for i in range(width)]
        levels[f"n{level + 1}"] = {"type": "object", "anyOf": branches}
    return {"$defs": levels, "$ref": f"#/$defs/n{depth}"}


def test_nested_alternatives_share_their_stack() -> None:
    """Branches that differ only after their values multiply with each nesting: 27,000 here."""
    schema = nested(3, 30)
    automaton = gw.compile(gw.JsonSchema(schema, profile="exact"), VOCABULARY, cache=False)
    start = '{"p":{"p":{"p":1,"k2":2},"k29":29},"k0":0}'
    assert automaton.matcher().validate([*start.encode(), len(TOKENS)]) == len(start) + 1
    for wrong in ('{"p":{"p":{"p":1,"k2":3},"k29":29},"k0":0}', '{"p":{"p":{"p":1},"k29":29},"k0":0}'):
        taken = automaton.matcher().validate([*wrong.encode(), len(TOKENS)])
        assert taken < len(wrong)
    check_masks(
        gw.compile(gw.JsonSchema(nested(2, 40), profile="exact"), VOCABULARY, cache=False),
        '{"p":{"p":1,"k2":2},"k1":1}',
    )


def condition(rng: random.Random, depth: int) -> dict[str, Any]:
    """A condition on the entries of an object."""
    kind = rng.randrange(5 if depth else 2)
    if kind == 0:
        return {"required": [rng.choice("abcd")]}
    if kind == 1:
        return {
            "properties": {key: {"enum": rng.sample([1, 2, "x"], rng.randrange(1, 3))} for key in rng.sample("abcd", 2)}
        }
    if kind == 2:
        return {"not": condition(rng, depth - 1)}
    name = rng.choice(["anyOf", "oneOf", "allOf"])
    return {name: [condition(rng, depth - 1) for _ in range(rng.randrange(2, 4))]}


@pytest.mark.parametrize("order", ["any", "schema"])
@pytest.mark.parametrize("seed", seeds(12, 30))
def test_conditions_on_entries(seed: int, order: Any) -> None:
    """Which names and values may come next, against all objects of four keys and three values."""
    rng = random.Random(seed)
    keys = "abcd"[: rng.randrange(3, 5)]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: {"enum": [1, 2, "x"]} for key in keys},
        "additionalProperties": False,
        "allOf": [{"not": condition(rng, 2)}, condition(rng, 2)],
    }
    if rng.random() < 0.3:
        schema["minProperties"] = rng.randrange(1, 4)
    validator = jsonschema.Draft202012Validator(schema)
    whole: set[bytes] = set()
    for values in product([None, 1, 2, "x"], repeat=len(keys)):
        entries = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
        if validator.is_valid(dict(entries)):
            for ordered in permutations(entries) if order == "any" else [entries]:
                whole.add(json.dumps(dict(ordered), separators=(",", ":")).encode())
    source = gw.JsonSchema(schema, whitespace="compact", key_order=order)
    if not whole:
        with pytest.raises(gw.errors.ConstraintError):
            gw.compile(source, VOCABULARY, cache=False)
        return
    automaton = gw.compile(source, VOCABULARY, cache=False)
    starts = {text[:n] for text in whole for n in range(len(text) + 1)}
    row = np.zeros(automaton.matcher().words, np.uint32)
    todo = [(b"", automaton.matcher())]
    while todo:
        text, matcher = todo.pop()
        mask = legal(matcher, row)
        assert mask[: len(TOKENS) + 1].tolist() == [*(text + token in starts for token in TOKENS), text in whole], text
        if len(todo) > 40:  # a sample of the longer ones
            continue
        for byte in np.flatnonzero(mask[:256]).tolist():
            after = matcher.fork()
            after.advance(byte)
            todo.append((text + bytes([byte]), after))
