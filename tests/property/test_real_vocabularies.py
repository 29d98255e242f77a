"""Real vocabularies: masks compared with the oracle, and all tokenizations of valid texts."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guideway as gw
from tests.oracle import regular

from . import schemas, vocabularies, wide
from .crowd import Crowd
from .spellings import respelled
from .wide import Cutter
from .worlds import PROFILES

VOCABULARIES = tuple(wide.FILES)
EXACT = PROFILES[-1]


@pytest.mark.parametrize("name", VOCABULARIES)
def test_masks(name: str) -> None:
    assert wide.compared(name, 200, 1) > 3


@pytest.mark.parametrize("name", VOCABULARIES)
def test_masks_where_short_cuts_are_taken(name: str) -> None:
    assert wide.compared(name, 120, 2, aimed=True) > 2


def check_without_mechanisms(name: str, constraint: Any, text: bytes) -> None:
    """Compares the masks along a text with those of a table in which all mechanisms are off."""
    cutter = Cutter(name, random.Random(1))
    plain = vocabularies.limited(wide.vocabulary(name), tuning=vocabularies.PLAIN)
    crowd = Crowd.compiled(constraint, [cutter.vocabulary, plain])
    row = np.zeros((len(cutter.vocabulary.token_bytes) + 31) // 32, np.uint32)
    tokens = cutter.cut(text)
    assert tokens
    for token in tokens:
        crowd.fill_mask(row)  # raises `Mismatch` if the masks differ
        if token != tokens[-1]:  # which is the end
            crowd.advance(token)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"[一-龥]{1,12}[a-z]", "我知"),
        (r"[^一-鿿]{20}日{0,40}", "a"),
        (r"日[\u0080-\uffff]*(?:\w\d){2}", "日é"),
        (r"[^\x00-\x7f]{3,}\S{2}|x", "é"),
    ],
)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_characters_beyond_ascii(name: str, pattern: str, text: str) -> None:
    """Characters with equal first bytes are accepted together, unless a count or the text after them prevents it."""
    check_without_mechanisms(name, gw.Regex(pattern), text.encode())


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"[a-z]{3,}[A-Z]\w*", "a"),
        (r"[\w-]+(?:\.[\w-]+)*", "some-name.x"),
        (r"\w{1,15}", "name"),
        (r"[0-9A-Za-z]{8}-[0-9A-Za-z]{4}", "0123abcd-ab"),
        (r"(https?://)?[\da-z.-]+\.[a-z.]{2,6}([/\w .-]*)*/?", "http://example.com/a"),
        (r".*\.md", "notes.m"),
        (r"[acegikmoqsuwy]+[0-9]?", "ace"),
        (r"[a-z]+[^a-z][a-z ]{2,}!", "the cat s"),
    ],
)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_classes_of_characters(name: str, pattern: str, text: str) -> None:
    """States that loop by some characters, in which subtrees are searched for the other ones."""
    check_without_mechanisms(name, gw.Regex(pattern), text.encode())
    schema = {"type": "string", "pattern": f"^{pattern}$"}
    check_without_mechanisms(name, gw.JsonSchema(schema, **EXACT[1]), f'"{text}'.encode())


@pytest.mark.slow
@pytest.mark.parametrize("aimed", [False, True])
@pytest.mark.parametrize("name", VOCABULARIES)
def test_thousands_of_masks(name: str, aimed: bool) -> None:
    constraints = wide.compared(name, 2500, 100, aimed=aimed)
    print(f"{name}: 2,500 masks of {constraints} constraints, {aimed=}")
    assert constraints > 10


def drawn(cutter: Cutter, seeds: range, each: int) -> int:
    """Schemas drawn at random, values that the oracle takes, in any spelling."""
    done = 0
    for seed in seeds:
        case, texts = schemas.draw(seed, 2)
        oracle = case.oracle(EXACT[0])
        spelled = [respelled(cutter.rng, json.loads(text)) for text in texts for _ in range(2)]
        try:
            done += cutter.taken(gw.JsonSchema(case.schema, **EXACT[1]), list(filter(oracle.matches, spelled)), each)
        except (gw.errors.UnsupportedError, gw.errors.UnsatisfiableError):
            continue
        finally:
            regular.forget()
    return done


def published(step: int, first: int) -> Iterator[tuple[str, Any, list[Any]]]:
    """Schemas of MaskBench and their valid instances; skips where the data is not there."""
    home = Path(os.environ.get("GUIDEWAY_DATA") or Path(__file__).parents[3] / "shared" / "data") / "maskbench-dev"
    if not home.is_dir():
        pytest.skip(f"no MaskBench schemas in {home}")
    for path in sorted(home.glob("*.json"))[first::step]:
        given = json.loads(path.read_text(encoding="utf-8"))
        yield path.stem, given["schema"], [test["data"] for test in given["tests"] if test["valid"]]


def instances(cutter: Cutter, step: int, first: int, each: int) -> tuple[int, int]:
    """Published instances in other spellings and tokens; returns the numbers of instances and of schemas."""
    done = compiled = 0
    for _, schema, values in published(step, first):
        try:
            source = gw.JsonSchema(schema, profile="exact", unknown_keywords="ignore")
            draft4 = isinstance(schema, dict) and "draft-04" in str(schema.get("$schema"))
            texts = [respelled(cutter.rng, value, digits_only=draft4) for value in values]
            done += cutter.taken(source, texts, each)
        except (
            gw.errors.InvalidConstraintError,
            gw.errors.UnsupportedError,
            gw.errors.LimitExceededError,
        ):  # one has a reference that leads nowhere
            continue
        except gw.errors.UnsatisfiableError:  # one needs a property that its `oneOf` refuses
            assert not values
            continue
        compiled += 1
    return done, compiled


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_way_to_cut_a_valid_text(name: str) -> None:
    assert drawn(Cutter(name, random.Random(1)), range(60), 3) > 100


def test_published_instances() -> None:
    done, compiled = instances(Cutter("tekken", random.Random(2)), 23, 5, 2)
    assert compiled > 5
    assert done > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", VOCABULARIES)
def test_many_tokenizations(name: str) -> None:
    cutter = Cutter(name, random.Random(3))
    texts = drawn(cutter, range(1000, 3000), 5)
    done, compiled = instances(cutter, 1, 0, 5)
    print(f"{name}: {texts} texts of drawn schemas, {done} texts of {compiled} published schemas")
    assert texts > 3000
    assert done > compiled > 100


@pytest.mark.parametrize("name", VOCABULARIES)
def test_masks_that_each_leave_tokens_out(name: str) -> None:
    """Several strings at once, each nearly free: what one leaves out another may allow."""
    vocabulary = wide.vocabulary(name)
    some = {"type": "string", "not": {"enum": ["abc", "hello", "the"]}}
    lists: list[dict[str, Any]] = [
        {"items": {"type": "string", "maxLength": 6}, "maxItems": 2},
        {"items": some, "minItems": 2},
        {"items": {"type": "string", "maxLength": 9}, "minItems": 2, "maxItems": 5},
    ]
    automaton = gw.compile(gw.JsonSchema({"anyOf": [{"type": "array", **one} for one in lists]}), vocabulary)
    table = vocabulary.token_bytes
    rng, ids = random.Random(5), {token: i for i, token in enumerate(table) if token}
    text, walk = b'["the", "hello"]', []
    while text:
        piece = next(text[:n] for n in range(len(text), 0, -1) if text[:n] in ids)
        walk.append(ids[piece])
        text = text[len(piece) :]
    for _ in range(2):  # found, and found again
        matcher = automaton.matcher()
        row = np.zeros(matcher.words, np.uint32)
        for token in walk:
            matcher.advance(token)
            matcher.fill_mask(row)
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")
            for other in rng.sample(range(len(table)), 3000):
                if table[other]:
                    assert bits[other] == (matcher.validate([other]) == 1), (token, other)
