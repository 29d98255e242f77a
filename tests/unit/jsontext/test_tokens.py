"""`jsontext`: tokens, paths, partial texts and JSON Pointers agree with the standard library, in linear time."""

from __future__ import annotations

import itertools
import json
import random
import time
from typing import Any

import pytest

from guideway.constraints.captures.json_values import values_of
from guideway.jsontext.decoder import decode_prefix
from guideway.jsontext.partial import PartialReader
from guideway.jsontext.pointer import MISSING, child, pointer, unescape
from guideway.jsontext.tokens import is_deeper, located, nesting, tokens
from tests.helpers.counts import counts

WORDS = ["", "a", "~", "/", "~1/", '"', "\\", "é\n", "0", "\U0001f980", "{", "]", ","]


def drawn(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(7 if depth else 5)
    if kind < 3:
        return [True, None, rng.randrange(-99, 999), 0.5, -1.5e300][rng.randrange(5)]
    if kind < 5:
        return "".join(rng.choices(WORDS, k=rng.randrange(4)))
    if kind == 5:
        return [drawn(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {"".join(rng.choices(WORDS, k=2)): drawn(rng, depth - 1) for _ in range(rng.randrange(4))}


def written(rng: random.Random, value: Any) -> str:
    return json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 0, 1]))


def test_tokens_and_values_are_those_of_the_standard_library() -> None:
    rng = random.Random(3)
    seen = set[str]()
    for _ in range(400):
        value = drawn(rng, 4)
        text = written(rng, value)
        found = list(tokens(text))
        seen |= {token.kind for token in found}
        gaps = [text[a.end : b.start] for a, b in itertools.pairwise(found)]
        assert all(token.text == text[token.start : token.end] for token in found)
        assert not "".join(gaps).strip()
        assert found[0].start == 0
        assert found[-1].end == len(text)
        assert found[0].depth == found[-1].depth == 0
        assert max(token.depth for token in found) + (found[-1].kind in "}]") >= nesting(text)[0]
        for capture in values_of(text):
            held = value
            for part in capture.name.split("/")[1:]:
                held = child(held, unescape(part))
            assert held is not MISSING
            assert json.loads(capture.text) == held
        paths = [pointer("", *path) for token, path in located(text) if token.kind not in "}],:" and not token.key]
        assert paths == [capture.name for capture in values_of(text)]
    assert seen == {"{", "}", "[", "]", ",", ":", "key", "string", "number", "word"}


def test_a_text_in_any_pieces_has_the_same_partial_values() -> None:
    rng = random.Random(4)
    for _ in range(300):
        value = {"k": drawn(rng, 3), **{f"f{n}": drawn(rng, 2) for n in range(rng.randrange(3))}}
        text = written(rng, value)
        entries: dict[str, Any] = {}
        reader = PartialReader(entries.__setitem__)
        at = 0
        while at < len(text):
            step = rng.randrange(1, 6)
            reader.push(text[at : at + step])
            at += step
        reader.finish()
        assert reader.root == value == entries


def test_scalars_count_once_they_are_complete() -> None:
    reader = PartialReader(lambda key, value: None)
    seen = []
    for char in '{"a": 12, "b": ["x\\"", tru':
        reader.push(char)
        seen.append(json.dumps(reader.root))
    assert seen[7] == "{}"
    assert seen[8] == '{"a": 12}'
    assert seen[-1] == '{"a": 12, "b": ["x\\""]}'
    reader.push("e]}")
    assert reader.root == {"a": 12, "b": ['x"', True]}


@pytest.mark.parametrize("bad", ["[1,]x", '"\\x"', "01x", "{a: 1}"])
def test_tokens_of_other_texts_are_an_error(bad: str) -> None:
    with pytest.raises(ValueError, match="expected a JSON token at character"):
        list(tokens(bad))


def test_nesting_ends_with_the_first_value() -> None:
    assert nesting('{"[[": [1]} [[[') == (2, 11)
    assert nesting("[[[", stop=1) == (2, None)
    assert nesting('["\\"]') == (1, None)
    assert is_deeper("[" * 9 + "]" * 9, 8)
    assert not is_deeper("[" * 8 + "]" * 8, 8)
    assert not is_deeper("[]" * 99, 8)
    assert decode_prefix("x" + "[" * 2000 + "]" * 2000 + "y", 1)[1] == 4001


@counts(500, 2_000)
def test_time_is_linear(count: int) -> None:
    def run(size: int) -> float:
        start = time.process_time()
        at, text = 0, '{"a": 1} ' * size
        for _ in range(size):
            at = decode_prefix(text, at)[1] + 1
        reader = PartialReader(lambda key, value: None)
        for char in '{"a": "' + "x" * (20 * size) + '"}':
            reader.push(char)
        nesting("[" + '\\"' * (20 * size))
        nesting('["' + '\\"' * (20 * size))
        return time.process_time() - start

    assert run(10 * count) < 30 * max(run(count), count * 1e-5)  # quadratic: 100 times
