"""Constraints that are slow in one engine or another, each with a text to walk."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Slow:
    """A schema (a document or JSON text) or a pattern, a text that fits it, and what compiling may take (ms)."""

    name: str
    schema: Any
    text: str
    pattern: bool = False
    compile_ms: float = 50


def words(rng: random.Random, count: int) -> str:
    """Made-up words with single spaces between."""
    return " ".join("".join(rng.choices("abcdefghiklmnoprstuvwz", k=rng.randint(2, 9))) for _ in range(count))


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An object without other keys."""
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def layered(count: int, levels: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns `count` definitions in levels, each referring to one of the next level, and an instance."""
    width = count // levels
    defs: dict[str, Any] = {}
    for n in range(count):
        level, place = divmod(n, width)
        below: dict[str, Any] = {"type": "integer"}
        if level + 1 < levels:
            below = {"$ref": f"#/$defs/d{(level + 1) * width + (place * 7 + level) % width}"}
        defs[f"d{n}"] = closed({f"n{n}": below, "label": {"type": "string"}}, required=[f"n{n}"])
    roots = {f"r{n}": {"$ref": f"#/$defs/d{n}"} for n in range(width)}
    schema = {"$defs": defs, **closed(roots)}
    made: dict[str, Any] = {}
    for start in (0, width // 2, width - 1):
        chain, at = [], start
        for level in range(levels):
            chain.append(level * width + at)
            at = (at * 7 + level) % width
        value: Any = 5
        for n in reversed(chain):
            value = {f"n{n}": value, "label": "x"}
        made[f"r{start}"] = value
    return schema, made


def nested(depth: int) -> tuple[str, str]:
    """A schema of arrays in arrays, as text (deeper than Python's json writes), and its instance."""
    schema = '{"type":"array","items":' * depth + '{"type":"integer"}' + "}" * depth
    return schema, "[" * depth + "7" + "]" * depth


def slow_cases() -> list[Slow]:
    """Those of the issue, in its order."""
    rng = random.Random(1)
    names = sorted({words(rng, 2) for _ in range(10_400)})[:10_000]
    optional = {f"{words(rng, 1)}_{n}": {"type": ["string", "integer", "null"]} for n in range(100)}
    filled = {name: rng.choice(["x", 3, None]) for name in optional if rng.random() < 0.6}
    formats = closed({name: {"type": "string", "format": name} for name in ("uri", "email", "date-time")})
    mail = {
        "uri": "https://ada@example.com:80/a?b=c#d",
        "email": "ada.l@example.com",
        "date-time": "2024-02-29T10:00:00Z",
    }
    tree = closed({"kids": {"type": "array", "items": {"$ref": "#"}}})
    deep, deep_text = nested(1000)
    layers, layers_made = layered(20_000, 4)
    return [
        Slow("enum of 10,000 strings", {"enum": names}, json.dumps(names[1234])),
        Slow(
            "maxLength 10000",
            {"type": "string", "maxLength": 10_000},
            json.dumps(words(rng, 150) + " é日本\n", ensure_ascii=False),
        ),
        Slow("maxLength 10000, at the end", {"type": "string", "maxLength": 10_000}, json.dumps("ab c" * 2499 + "de")),
        Slow(
            "100 words: pattern", {"type": "string", "pattern": r"^(?:\S+\s+){0,99}\S+$"}, json.dumps(words(rng, 100))
        ),
        Slow("100 words: regex", r"(?:\S+\s+){0,99}\S+", words(rng, 100), pattern=True),
        Slow("100 optional properties", closed(optional), json.dumps(filled)),
        Slow("uri, email and date-time", formats, json.dumps(mail)),
        Slow(".*x.{20}", r".*x.{20}", words(rng, 40) + "x" + "abcdefgh xyz 1234567", pattern=True),
        Slow("values 1,000 deep", tree, '{"kids": [' * 1000 + "]}" * 1000),
        Slow("schema 1,000 deep", deep, deep_text),
        Slow("20,000 $defs in 4 levels", layers, json.dumps(layers_made), compile_ms=2000),
    ]
