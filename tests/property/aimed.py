"""Constraints and prefixes that reach the optimised paths of mask computation, for walks over real vocabularies.

They cover open objects at their first keys, keys and names in any spelling, strings near their maximum length, formats,
long counts and large enums. Masks are compared with the oracle of the grammar; other tests check the lowering.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import guideway as gw
from tests.oracle import grammars
from tests.oracle.machine import Oracle

from .spellings import text as spelled

NAMES = (
    *("name", "names", "nam", "id", "ID", "type", "$ref", "x", "xy", "description", "descriptions", "value", "values"),
    *(
        "",
        "a b",
        'q"uote',
        "back\\slash",
        "sla/sh",
        "é",
        "été",
        "日本",
        "日",
        "🎉",
        "line\nbreak",
        "\t",
        "\x01",
        "e\u0301",
    ),
    *(f"key{n}" for n in range(12)),
)
SCALARS: tuple[Any, ...] = (
    *({}, {"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "number"}, {"maxLength": 3}),
    *({"enum": ["a", "ab", "é"]}, {"const": 1}, {"type": "array", "items": {"type": "string"}}, {"type": "object"}),
)
FORMATS = {
    "email": "some.one+tag@mail.example.com",
    "date-time": "2026-11-21T08:45:10.25+01:00",
    "date": "2024-02-29",
    "time": "08:45:10Z",
    "uri": "https://user@www.example.com:8080/a/b%20c?q=1#top",
    "hostname": "www.example.com",
    "ipv4": "192.168.1.254",
    "ipv6": "2001:db8::ff00:42:8329",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "duration": "P3Y6M4DT12H30M5S",
    "json-pointer": "/a~1b/0",
}
CHARACTERS = ("a", "e", " ", "the ", "é", "日", "本", "\\n", '\\"', "\\u00e9", "\\ud83c\\udf89", "🎉", "0", ".", "-")


@dataclass(frozen=True)
class Aim:
    """A constraint, its oracle, and texts that a walk may begin with."""

    name: str
    source: Any
    oracle: Oracle
    beginnings: tuple[bytes, ...] = (b"",)


def profile(rng: random.Random) -> dict[str, Any]:
    """Returns a random profile; the one with all spellings is more probable."""
    some: tuple[dict[str, Any], ...] = ({}, {"key_order": "any"}, {"escapes": "any"}, {"whitespace": "any"})
    return {"profile": "exact"} if rng.random() < 0.6 else rng.choice(some)


def _object(rng: random.Random) -> tuple[Any, list[str]]:
    names = rng.sample(NAMES, rng.choice((1, 2, 3, 5, 8, 13, 20, 30)))
    made: dict[str, Any] = {"type": "object", "properties": {name: rng.choice(SCALARS) for name in names}}
    if rng.random() < 0.5:
        made["required"] = rng.sample(names, rng.randrange(min(len(names), 6)))
    if rng.random() < 0.6:
        made["additionalProperties"] = rng.choice((False, True, {"type": "string"}, {"type": "integer"}))
    if rng.random() < 0.15:
        made["patternProperties"] = {rng.choice(("^x-", "^[a-d]", "ey")): {"type": "integer"}}
    if rng.random() < 0.15:
        made["minProperties"] = rng.randrange(3)
    begun = [spelled(rng, name) for name in rng.sample(names, min(len(names), 3))]
    keys = [one[: rng.randrange(1, len(one) + 1)] for one in begun]
    return made, ["{", '{"', *("{" + key for key in keys), '{"\\u00', '{"zz', '{"zz": 1, "', '{"zz": "q", ']


def _string(rng: random.Random) -> tuple[Any, list[str]]:
    most = rng.choice((1, 2, 3, 5, 8, 20, 64, 100, 255, 300, rng.randrange(1, 300)))
    made: dict[str, Any] = {"type": "string", "maxLength": most}
    if rng.random() < 0.3:
        made["minLength"] = rng.randrange(most + 1)
    if rng.random() < 0.2:
        made["pattern"] = rng.choice(("^[a-z ]*$", '^[^"é]+$', "[0-9]", r"^\S+( \S+)*$"))
    units = [rng.choice(CHARACTERS if rng.random() < 0.5 else ("a", "the ", "e")) for _ in range(most + 1)]
    lengths = [max(0, most - rng.randrange(12)) for _ in range(4)]
    return made, ['"', *('"' + "".join(units[:n]) for n in lengths)]


def _format(rng: random.Random) -> tuple[Any, list[str]]:
    name = rng.choice((*FORMATS, "email", "date-time", "uri", "uri"))
    text = FORMATS[name]
    cuts = ['"' + text[: rng.randrange(len(text) + 1)] for _ in range(4)]
    made: dict[str, Any] = {"type": "string", "format": name}
    if rng.random() < 0.2:
        made["maxLength"] = len(text) + rng.randrange(3)
    return made, ['"', *cuts]


def _listed(rng: random.Random) -> tuple[Any, list[str]]:
    kind = rng.randrange(4)
    if kind == 0:
        words = [
            rng.choice(NAMES) + rng.choice(("", " ", "é", "x")) * rng.randrange(3) for _ in range(rng.randrange(1, 200))
        ]
        return {"enum": sorted(set(words))}, ['"', '"key', '"\\u00']
    if kind == 1:
        low = rng.randrange(-2000, 2000)
        return {"type": "integer", "minimum": low, "maximum": low + rng.choice((1, 9, 1500))}, [
            "",
            "-",
            "1",
            "-1",
            "1e",
        ]
    if kind == 2:
        item = rng.choice(({"type": "string", "maxLength": 5}, {"type": "integer"}, {"enum": ["a", "b", 1, None]}))
        made = {"type": "array", "items": item, "uniqueItems": True, "maxItems": rng.randrange(2, 5)}
        return made, ["[", '["a", "', "[1, ", '["a"']
    more: dict[str, Any] = {"contains": {"type": "integer"}, "maxContains": 2, "maxItems": rng.randrange(2, 9)}
    return {"type": "array", **more}, ["[", "[1, ", '["a", 2, ', "[1, 2, "]


def _schema(rng: random.Random) -> tuple[Any, tuple[str, ...]]:
    made, texts = rng.choice((_object, _object, _object, _string, _string, _format, _format, _listed))(rng)
    nested = rng.random()
    if nested < 0.15:
        return {"type": "object", "properties": {"in": made}}, tuple('{"in": ' + text for text in texts)
    if nested < 0.25:
        return {"type": "array", "items": made}, tuple("[" + text for text in texts)
    return made, tuple(texts)


def _pattern(rng: random.Random) -> tuple[Any, tuple[str, ...]]:
    most = rng.choice((1, 3, 9, 99))
    words = " ".join(rng.choice(("a", "word", "日本", "x1")) for _ in range(rng.choice((1, 2, most, most + 1))))
    kinds: tuple[Callable[[], str], ...] = (
        lambda: rf"(\S+\s+){{0,{most}}}\S+",
        lambda: rf"([a-z]+ ){{0,{most}}}[a-z]+",
        lambda: rf".*x.{{{rng.randrange(1, 21)}}}",
        lambda: rf"[a-zé ]{{{rng.randrange(3)},{most * 3}}}",
        lambda: rf"(?:[^é]{{1,{most}}}|\w{{2,{most + 1}}})日{{0,3}}",
        lambda: r"\w+(?:-\w+)*@\w+\.[a-z]{2,4}",
    )
    return gw.Regex(rng.choice(kinds)()), ("", words, words + " ", words[: rng.randrange(len(words) + 1)], "x", "axb")


def aims(rng: random.Random) -> Iterator[Aim]:
    """Without an end."""
    while True:
        if rng.random() < 0.15:
            source, texts = _pattern(rng)
            name = repr(source)
        else:
            schema, texts = _schema(rng)
            how = profile(rng)
            name = f"JsonSchema({json.dumps(schema, ensure_ascii=False)}, **{how})"
            source = gw.JsonSchema(schema, **how)
        try:
            oracle = grammars.GrammarWorld(source.grammar()).oracle()
        except (gw.errors.UnsupportedError, gw.errors.UnsatisfiableError):
            continue
        yield Aim(name, source, oracle, tuple(text.encode() for text in texts))
        grammars.forget()
