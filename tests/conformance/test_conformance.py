"""Every case of the TOML files, byte by byte and in random pieces, with every cache setting."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import guideway as gw
from tests.helpers.byte_tokens import BYTES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
EOS = 256


def cases(name: str, table: str = "case") -> list[Any]:
    return [pytest.param(case, id=str(n)) for n, case in enumerate(tomllib.loads((HERE / name).read_text())[table])]


def pieces(texts: list[str], seed: int) -> list[bytes]:
    """All bytes, the end, and random pieces of the texts as tokens."""
    rng, made = random.Random(seed), [bytes([n]) for n in range(256)] + [b"</s>"]
    whole = [text.encode() for text in texts if text]
    for _ in range(60 if whole else 0):
        text = rng.choice(whole)
        start = rng.randrange(len(text))
        made.append(text[start : start + rng.randrange(1, 12)])
    return list(dict.fromkeys(made))


def spellings(text: bytes, tokens: list[bytes], rng: random.Random) -> list[list[int]]:
    """The text as tokens: byte by byte, and thrice at random."""
    found = [[*text]]
    for _ in range(3):
        ids, at = [], 0
        while at < len(text):
            fitting = [n for n, token in enumerate(tokens) if n != EOS and text.startswith(token, at)]
            ids.append(rng.choice(fitting))
            at += len(tokens[ids[-1]])
        found.append(ids)
    return found


def takes(matcher: Any, ids: list[int]) -> bool:
    """Whether the tokens are taken and the text is then complete."""
    trial = matcher.fork()
    for token in ids:
        try:
            trial.advance(token)
        except gw.errors.RejectedTokenError:
            return False
    accepting = trial.is_accepting
    assert trial.validate([EOS]) == int(accepting)
    return bool(accepting)


def holds(constraint: Any, passing: list[str], missing: list[str]) -> None:
    tokens = pieces(passing + missing, 1)
    vocabulary = gw.Vocabulary(tokens, eos_ids=[EOS], special_ids=[])
    rng = random.Random(2)
    matcher = gw.compile(constraint, vocabulary, cache=False).matcher()
    for texts, expected in ((passing, True), (missing, False)):
        for text in texts:
            for ids in spellings(text.encode(), tokens, rng):
                assert takes(matcher, ids) is expected, (text, [tokens[n] for n in ids])
                assert (matcher.validate([*ids, EOS]) == len(ids) + 1) is expected, text


@pytest.mark.parametrize("case", cases("regex.toml"))
def test_regex(case: dict[str, Any]) -> None:
    for text in case["pass"] + case["miss"]:
        assert bool(re.fullmatch(case["pattern"], text)) == (text in case["pass"]), "the case itself is wrong"
    holds(gw.Regex(case["pattern"]), case["pass"], case["miss"])


@pytest.mark.parametrize("case", cases("choice.toml"))
def test_choice(case: dict[str, Any]) -> None:
    holds(gw.Choice(case["choices"]), case["pass"], case["miss"])


@pytest.mark.parametrize("case", cases("formats.toml"))
def test_formats(case: dict[str, Any]) -> None:
    holds(gw.Format(case["format"]), case["pass"], case["miss"])


@pytest.mark.parametrize("case", cases("schema.toml"))
def test_schema(case: dict[str, Any]) -> None:
    schema = json.loads(case["schema"])
    judge = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker(["date"]))
    judge.check_schema(schema)
    assert all(judge.is_valid(json.loads(text)) for text in case["pass"]), "the case itself is wrong"
    holds(gw.JsonSchema(schema, **case.get("knobs", {})), case["pass"], case["miss"])


def refused(make: Any, case: dict[str, Any]) -> gw.errors.ConstraintError:
    """Returns the error, which construction or compilation of the constraint may raise."""
    expected = tuple(getattr(gw.errors, name) for name in case["error"].split("|"))
    with pytest.raises(expected) as caught:
        gw.compile(make(), BYTES, cache=False)
    return caught.value


@pytest.mark.parametrize("case", cases("hostile.toml", "schema"))
def test_refused_schema(case: dict[str, Any]) -> None:
    error = refused(lambda: gw.JsonSchema(json.loads(case["schema"])), case)
    assert error.place in case["place"].split("|"), str(error)
    assert len(str(error)) > 10


@pytest.mark.parametrize("case", cases("hostile.toml", "pattern"))
def test_refused_pattern(case: dict[str, Any]) -> None:
    error = refused(lambda: gw.Regex(case["pattern"]), case)
    assert error.place is not None, str(error)
    assert "^" in error.place, f"no caret: {error.place}"
    assert case["pattern"] in error.place
