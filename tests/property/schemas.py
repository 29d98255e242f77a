"""Random small schemas over the supported keywords, and random values that are valid more often than not."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from tests.oracle import regular
from tests.oracle.machine import Oracle
from tests.oracle.schemas import Profile, SchemaWorld

from . import patterns
from .patterns import Pattern

NAMES = ("a", "b", "ab", "é", 'q"', "")
TEXTS = ("", "a", "b", "ab", "ba", "é", 'a"b', "\n", "a\\", "日本")
NUMBERS = (0, 1, -1, 7, 10, 12, 99, 100, -25, 0.5, -0.25, 1.5, 3.25)
BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


@dataclass
class Case:
    """A schema and the patterns in it."""

    schema: Any
    patterns: dict[str, Pattern] = field(default_factory=dict)

    def oracle(self, profile: Profile | None = None) -> Oracle:
        """Reads texts of the schema."""
        return self.world(profile).oracle()

    def world(self, profile: Profile | None = None) -> SchemaWorld:
        """The schema as the oracle sees it. Patterns in a schema are searched for, not matched in full."""
        table = {text: regular.search(pattern.expr()) for text, pattern in self.patterns.items()}
        table |= {f"^(?:{text})$": pattern.expr() for text, pattern in self.patterns.items()}
        return SchemaWorld(self.schema, profile or Profile(), table)


class Maker:
    """Draws schemas. `levels`: how deep objects and arrays nest."""

    def __init__(self, rng: random.Random, levels: int) -> None:
        self.rng, self.levels = rng, levels
        self.patterns: dict[str, Pattern] = {}

    def case(self) -> Case:
        """A schema, sometimes with definitions that may be recursive."""
        if self.rng.random() < 0.7:
            return Case(self.schema(self.levels), self.patterns)
        schema = self.recursive()
        return Case(schema, self.patterns)

    def schema(self, levels: int) -> Any:
        """Any kind; at level 0 no objects and arrays."""
        kinds = ["string", "integer", "number", "boolean", "null", "enum", "const", "types"]
        if levels > 0:
            kinds += ["object"] * 7 + ["array"] * 4 + ["anyOf"] * 2
        return getattr(self, self.rng.choice(kinds))(levels)

    def string(self, _: int) -> Any:
        made: dict[str, Any] = {"type": "string"}
        if self.rng.random() < 0.4:
            made["minLength"] = self.rng.randrange(3)
        if self.rng.random() < 0.5:
            made["maxLength"] = made.get("minLength", 0) + self.rng.randrange(3)
        if self.rng.random() < 0.3:
            letters = self.rng.choice((("a", "b", "c"), ('"', "a", "é")))
            pattern = patterns.drawn(self.rng, self.rng.randrange(1, 4), letters)
            self.patterns[pattern.text] = pattern
            made["pattern"] = f"^(?:{pattern.text})$" if self.rng.random() < 0.5 else pattern.text
        return {"type": "string", "format": "date"} if self.rng.random() < 0.05 else made

    def integer(self, _: int) -> Any:
        made: dict[str, Any] = {"type": "integer"}
        low = self.rng.choice((-12, -1, 0, 1, 5, 10, 98))
        if self.rng.random() < 0.5:
            made[self.rng.choice(("minimum", "exclusiveMinimum"))] = low
        if self.rng.random() < 0.5:
            made[self.rng.choice(("maximum", "exclusiveMaximum"))] = low + self.rng.choice((2, 3, 9, 15, 120))
        return made

    def number(self, _: int) -> Any:
        made: dict[str, Any] = {"type": "number"}
        low = self.rng.choice((-12, -0.5, 0, 0.25, 1, 9.75, 10))
        if self.rng.random() < 0.3:
            made[self.rng.choice(("minimum", "exclusiveMinimum"))] = low
        if self.rng.random() < 0.3:
            made[self.rng.choice(("maximum", "exclusiveMaximum"))] = low + self.rng.choice((0.01, 0.5, 2, 9, 90.5))
        return made

    def boolean(self, _: int) -> Any:
        return {"type": "boolean"}

    def null(self, _: int) -> Any:
        return {"type": "null"}

    def enum(self, _: int) -> Any:
        pool = [*TEXTS, 0, 1, 12, -3, True, None]
        return {"enum": self.rng.sample(pool, self.rng.randrange(1, 5))}

    def const(self, _: int) -> Any:
        return {"const": self.rng.choice([*TEXTS, 5, False, None, [1, "a"], {"a": 1, "b": []}, []])}

    def types(self, _: int) -> Any:
        pool = ["string", "integer", "boolean", "null"]
        return {"type": self.rng.sample(pool, self.rng.randrange(1, 4)), "maxLength": 1}

    def object(self, levels: int) -> Any:
        made: dict[str, Any] = {"type": "object"}
        names = self.rng.sample(NAMES, self.rng.randrange(0, 4))
        if names or self.rng.random() < 0.5:
            made["properties"] = {name: self.schema(levels - 1) for name in names}
        required = [name for name in names if self.rng.random() < 0.5]
        if required:
            made["required"] = required
        if self.rng.random() < 0.3:
            made["additionalProperties"] = self.rng.choice((True, False, {"type": "null"}, self.schema(0)))
        return made

    def array(self, levels: int) -> Any:
        made: dict[str, Any] = {"type": "array"}
        if self.rng.random() < 0.3:
            made["prefixItems"] = [self.schema(levels - 1) for _ in range(self.rng.randrange(1, 3))]
        if self.rng.random() < 0.9:
            made["items"] = self.rng.choice((False, self.schema(levels - 1), self.schema(levels - 1)))
        if self.rng.random() < 0.3:
            made["minItems"] = self.rng.randrange(3)
        if self.rng.random() < 0.3:
            made["maxItems"] = made.get("minItems", 0) + self.rng.randrange(3)
        return made

    def anyOf(self, levels: int) -> Any:
        """Alternatives that differ in their first byte."""
        kinds = ["string", "integer", "null", "boolean", "object", "array"]
        chosen = self.rng.sample(kinds, self.rng.randrange(1, 4))
        return {"anyOf": [getattr(self, kind)(levels) for kind in chosen]}

    def recursive(self) -> Any:
        """A definition that refers to itself, so that it ends somewhere or (seldom) nowhere."""
        ref = {"$ref": "#/$defs/n"}
        inner = self.rng.choice(
            (
                {"type": "array", "items": ref, "maxItems": 2},
                {"anyOf": [ref, {"type": "null"}]},
                {"anyOf": [{"type": "array", "items": ref}, {"type": "string", "maxLength": 1}]},
                ref,
            )
        )
        body: dict[str, Any] = {
            "type": "object",
            "properties": {"v": self.schema(0), "n": inner},
            "additionalProperties": False,
        }
        body["required"] = self.rng.choice((["v"], ["n"], [], ["v", "n"]))
        root = self.rng.choice((ref, {"type": "array", "items": ref}, {"type": "object", "properties": {"r": ref}}))
        return {**root, "$defs": {"n": body}}


def value(rng: random.Random, case: Case, schema: Any, depth: int = 0) -> Any:
    """A value that fits the schema more often than not; keys come in the schema's order."""
    while isinstance(schema, dict) and ("$ref" in schema or "anyOf" in schema):
        if "$ref" in schema:
            schema = case.world().at(schema["$ref"])
        else:
            schema = rng.choice(schema["anyOf"])
    if isinstance(schema, bool) or not schema or rng.random() < 0.03:
        return rng.choice([*TEXTS, *NUMBERS, None, True, [], {}, [1], {"a": 1}])
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    names = schema.get("type", ["string", "null"])
    return _of_type(rng, case, schema, names if isinstance(names, str) else rng.choice(names), depth)


def _of_type(rng: random.Random, case: Case, schema: dict[str, Any], name: str, depth: int) -> Any:
    match name:
        case "null":
            return None
        case "boolean":
            return rng.random() < 0.5
        case "integer":
            base = [int(schema[k]) for k in BOUNDS if k in schema]
            return rng.choice(base or [0, 40]) + rng.randrange(-2, 3)
        case "number":
            base = [schema[k] for k in BOUNDS if k in schema]
            return rng.choice([*NUMBERS, *base, *(b + rng.choice((0.25, 1, -0.5)) for b in base)])
        case "string" if "format" in schema:
            return rng.choice(("2024-02-29", "1999-12-31", "2023-02-29", "0001-01-01"))
        case "string":
            length = schema.get("minLength", 0) + rng.randrange(3)
            return "".join(rng.choice('aabbcé"') for _ in range(min(length, schema.get("maxLength", 9))))
        case "array":
            return _array(rng, case, schema, depth)
        case _:
            return _object(rng, case, schema, depth)


def _array(rng: random.Random, case: Case, schema: dict[str, Any], depth: int) -> Any:
    count = schema.get("minItems", 0) + (rng.randrange(3) if depth < 3 else 0)
    prefix = schema.get("prefixItems", [])
    if schema.get("items") is False:
        count = min(count, len(prefix))
    places = [prefix[n] if n < len(prefix) else schema.get("items", True) for n in range(count)]
    return [value(rng, case, place, depth + 1) for place in places]


def _object(rng: random.Random, case: Case, schema: dict[str, Any], depth: int) -> Any:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    names = [n for n in properties if n in required or (rng.random() < 0.5 and depth < 3)]
    made = {name: value(rng, case, properties[name], depth + 1) for name in names if rng.random() < 0.98}
    if schema.get("additionalProperties") or rng.random() < 0.05:
        more = schema.get("additionalProperties", True)
        for name in rng.sample(("x", "yé", "abc", "a"), rng.randrange(3)):
            made.setdefault(name, value(rng, case, more, depth + 1))
    return made


def spelled(made: Any) -> str:
    """On one line, as the generation profile writes it."""
    return json.dumps(made, ensure_ascii=False)


def draw(seed: int, levels: int) -> tuple[Case, list[str]]:
    """A schema and some texts that more or less fit it."""
    rng = random.Random(seed)
    case = Maker(rng, levels).case()
    return case, [spelled(value(rng, case, case.schema)) for _ in range(6)]
