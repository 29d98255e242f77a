"""The oracle compared with two independent implementations: Python's `re` and the `jsonschema` package."""

from __future__ import annotations

import itertools
import json
import random
import re
from typing import Any

import jsonschema
import pytest

from tests.oracle import regular
from tests.oracle.machine import Oracle, Plain
from tests.oracle.schemas import Profile, SchemaWorld
from tests.oracle.spelling import Spelling, Text

from . import patterns, schemas

CHECKER = jsonschema.FormatChecker(["date"])


def test_oracle_agrees_with_re_fullmatch() -> None:
    rng = random.Random(1)
    words = ["".join(w) for size in range(5) for w in itertools.product("abc", repeat=size)]
    for pattern in [*patterns.of_size(2), *(patterns.drawn(rng, rng.randrange(3, 8)) for _ in range(300))]:
        compiled, oracle = re.compile(pattern.text), pattern.oracle()
        for word in words:
            assert oracle.matches(word) == bool(compiled.fullmatch(word)), (pattern.text, word)
        regular.forget()


def test_a_prefix_is_viable_when_a_member_begins_with_it() -> None:
    rng = random.Random(2)
    for _ in range(150):
        pattern = patterns.drawn(rng, rng.randrange(2, 6))
        if re.search(r"[{+*^]", pattern.text):
            continue  # only finite languages, so that every member is among the words
        compiled, oracle = re.compile(pattern.text), pattern.oracle()
        words = ["".join(w) for size in range(6) for w in itertools.product("abc", repeat=size)]
        members = [word for word in words if compiled.fullmatch(word)]
        for word in words:
            assert oracle.viable(word) == any(member.startswith(word) for member in members), (pattern.text, word)
        regular.forget()


@pytest.mark.parametrize("spelling", ["plain", "json", "json-any"])
def test_every_character_is_read_in_every_spelling(spelling: Spelling) -> None:
    for point in [*range(0x100), 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]:
        oracle = Oracle(Plain(), Text(regular.literal(chr(point)), spelling))
        raw = chr(point).encode()
        canonical = json.dumps(chr(point), ensure_ascii=False)[1:-1].encode()
        escaped = json.dumps(chr(point)).strip('"').encode() if point > 0x7F else b"\\u%04X" % point
        accepted = {
            "plain": {raw},
            "json": {canonical},
            "json-any": {canonical, escaped} | ({b"\\/"} if chr(point) == "/" else set()),
        }[spelling]
        for text in {raw, canonical, escaped, b"\\/", b"\\u0022", b"\\ud83d\\ude00", b"\\ude00"}:
            if point == 0x22:
                accepted |= {b"\\u0022"} if spelling == "json-any" else set()
            if point == 0x1F600:
                accepted |= {b"\\ud83d\\ude00"} if spelling == "json-any" else set()
            assert oracle.matches(text) == (text in accepted), (point, text)
            for end in range(len(text)):
                begins = any(good.startswith(text[:end]) for good in accepted)
                assert oracle.viable(text[:end]) or not begins, (point, text[:end])


def in_profile(made: Any) -> bool:
    """Whether the generation profile writes numbers like this; the rest `spelled` does already."""
    numbers = re.findall(r"-?\d[\d.eE+-]*", re.sub(r'"(\\.|[^"\\])*"', '""', json.dumps(made)))
    form = r"(?!-0(\.0+)?$)-?(0|[1-9]\d{0,15})(\.\d{1,16})?"
    return all(re.fullmatch(form, number) for number in numbers)


def closed(schema: Any) -> Any:
    """The schema with its objects closed, as the generation profile closes them."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: part if key in ("enum", "const") else closed(part) for key, part in schema.items()}
    if isinstance(made.get("properties"), dict) and isinstance(made.get("type"), str):
        made.setdefault("additionalProperties", False)
    return made


def judged(schema: Any, text: str) -> bool:
    """The `jsonschema` package's verdict."""
    validator = jsonschema.Draft202012Validator(schema, format_checker=CHECKER)
    return bool(validator.is_valid(json.loads(text)))


def test_oracle_agrees_with_jsonschema() -> None:
    verdicts = {True: 0, False: 0}
    for seed in range(600):
        case, texts = schemas.draw(seed, 2)
        oracle, schema = case.oracle(Profile(key_order="any")), closed(case.schema)
        for text in texts:
            expected = judged(schema, text) and in_profile(json.loads(text))
            assert oracle.matches(text) == expected, (case.schema, text)
            verdicts[expected] += 1
        regular.forget()
    assert min(verdicts.values()) > 500


def test_an_empty_schema_is_known_to_be_empty() -> None:
    ref: dict[str, Any] = {"$ref": "#"}
    endless: dict[str, Any] = {"type": "object", "properties": {"a": ref}, "required": ["a"]}
    assert not SchemaWorld(endless).satisfiable("#")
    assert not SchemaWorld(ref).satisfiable("#")
    assert not SchemaWorld({"type": "integer", "minimum": 3, "exclusiveMaximum": 3}).satisfiable("#")
    assert not SchemaWorld({"type": "array", "items": endless, "minItems": 1}).satisfiable("#")
    assert SchemaWorld({"type": "array", "items": ref}).satisfiable("#")
