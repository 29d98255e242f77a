"""Random schemas over all assertion keywords of drafts 4 to 2020-12, and values that may fit them."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

NAMES = ("a", "b", "ab", "c", "é")
STRINGS = (
    "",
    "a",
    "b",
    "ab",
    "aab",
    "é",
    "日本",
    "a b",
    '"',
    "x" * 5,
    "2024-02-29",
    "127.0.0.1",
    "::1",
    "0" * 8 + "-0000-4000-8000-" + "0" * 12,
)
NUMBERS = (0, 1, -1, 2, 3, 5, 10, -7, 0.5, 1.5, -0.25, 2.0, 100, 12.75)
# Patterns that Python's `re` and ECMA-262 read alike ($ aside, which the judge takes care of).
PATTERNS = ("a", "^a", "b$", "^[ab]+$", "^[^a]*$", "^(a|é){1,3}$", "a.?b|^$".replace(".", "[^x]"), "^x{2,4}", "[0-9]")
FORMATS = ("date", "ipv4", "ipv6", "uuid", "ipv4", "int32")  # those that the judge knows exactly, and an unknown one
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
DIALECTS = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
LATEST = ("2020-12",) * 5


class Drawer:
    """Draws a document of a dialect."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.draft = rng.choice((*DIALECTS, *LATEST))
        self.at_least = lambda name: list(DIALECTS).index(self.draft) >= list(DIALECTS).index(name)
        self.defs = "$defs" if self.at_least("2019-09") else "definitions"
        self.named = [f"d{n}" for n in range(rng.choice((0, 0, 1, 2)))]
        self.anchors = self.at_least("2019-09") and rng.random() < 0.3
        self.late = bool(self.named) and self.at_least("2019-09") and rng.random() < 0.25
        self.inside = 0  # of arrays and objects, where a reference may lead back
        self.defining = False

    def document(self) -> Any:
        """A schema with its dialect and definitions."""
        made = self.schema(self.rng.choice((1, 2, 2, 3)))
        if not isinstance(made, dict):
            made = {"allOf": [made]} if self.at_least("draft-06") else {}
        if self.named and ("$ref" not in made or self.at_least("2019-09")):
            made[self.defs] = self.definitions()
        elif "$ref" in made:
            made = {"allOf": [made], self.defs: self.definitions()}
        if self.late:  # with an identifier: without one the judge does not see it as the outermost document
            made = {"$id": "https://example.com/", **self.late_names(), **made}
        return {"$schema": DIALECTS[self.draft], **made}

    def definitions(self) -> dict[str, Any]:
        """Returns the targets of references; if some are resolved late, the first is a separate document."""
        self.defining = True
        found = {name: self.schema(1) for name in self.named}
        if self.anchors:
            found = {
                n: {**(one if isinstance(one, dict) else {"allOf": [one]}), "$anchor": n} for n, one in found.items()
            }
        if self.late:
            named, self.named = self.named, []
            found["d0"] = {"$id": "https://example.com/d0", **self.late_names(), **self.late_schema()}
            self.named = named
        return found

    def late_names(self) -> dict[str, Any]:
        """What makes a document one that a late reference may lead to."""
        return {"$dynamicAnchor": "node"} if self.at_least("2020-12") else {"$recursiveAnchor": True}

    def late_reference(self) -> dict[str, Any]:
        """Returns a reference to the outermost such document on the path to this schema."""
        return {"$dynamicRef": "#node"} if self.at_least("2020-12") else {"$recursiveRef": "#"}

    def late_schema(self) -> dict[str, Any]:
        """One that holds such a reference."""
        made: dict[str, Any] = {}
        self.array(made, 0)
        self.object(made, 0)
        made["properties"] = {**made.get("properties", {}), self.rng.choice(NAMES): self.late_reference()}
        return made

    def below(self, depth: int) -> Any:
        """Returns a schema of a value inside an array or object."""
        self.inside += 1
        made = self.schema(depth)
        self.inside -= 1
        return made

    def schema(self, depth: int) -> Any:
        """Any schema; a few keywords at a time, most of one kind."""
        r = self.rng
        if r.random() < 0.06:
            return r.random() < 0.7 if self.at_least("draft-06") else {}
        targets = ["#"] * (self.inside > 0)
        if self.inside or not self.defining:
            targets += [f"#/{self.defs}/{name}" for name in self.named]
        if targets and r.random() < 0.1:
            if self.late and self.inside and r.random() < 0.3:
                return self.late_reference()
            target = r.choice(targets)
            if self.anchors and target != "#" and not (self.late and target.endswith("/d0")):
                target = "#" + target.rpartition("/")[2]
            return {"$ref": target}
        made: dict[str, Any] = {}
        groups: list[Callable[[dict[str, Any], int], None]] = [self.numeric, self.textual, self.listed, self.chosen]
        if depth > 0:
            groups += [self.array, self.array, self.object, self.object, self.object, self.combined, self.combined]
        for _ in range(r.choice((1, 1, 1, 2, 3))):
            r.choice(groups)(made, depth - 1)
        if r.random() < 0.3:
            made.setdefault("type", r.choice(TYPES) if r.random() < 0.6 else r.sample(TYPES, 2))
        return made

    def some(self, made: dict[str, Any], options: dict[str, Callable[[], Any]]) -> None:
        """One to three of the keywords."""
        for name in self.rng.sample(list(options), self.rng.choice((1, 1, 2, 3)) if len(options) > 2 else 1):
            made[name] = options[name]()

    def numeric(self, made: dict[str, Any], _: int) -> None:
        r = self.rng
        options: dict[str, Callable[[], Any]] = {
            "minimum": lambda: r.choice(NUMBERS),
            "maximum": lambda: r.choice(NUMBERS),
            "multipleOf": lambda: r.choice((1, 2, 3, 0.5, 0.25, 2.5, 0.1)),
        }
        if self.at_least("draft-06"):
            options |= {"exclusiveMinimum": lambda: r.choice(NUMBERS), "exclusiveMaximum": lambda: r.choice(NUMBERS)}
        self.some(made, options)
        if not self.at_least("draft-06") and "minimum" in made and r.random() < 0.4:
            made["exclusiveMinimum"] = r.random() < 0.7
        if r.random() < 0.7:
            made["type"] = r.choice(("integer", "number"))

    def textual(self, made: dict[str, Any], _: int) -> None:
        r = self.rng
        self.some(
            made,
            {
                "minLength": lambda: r.randrange(4),
                "maxLength": lambda: r.randrange(6),
                "pattern": lambda: r.choice(PATTERNS),
                "format": lambda: r.choice(FORMATS),
            },
        )
        if r.random() < 0.7:
            made["type"] = "string"

    def value(self, depth: int = 1) -> Any:
        """A small JSON value."""
        r = self.rng
        kind = r.randrange(8 if depth else 6)
        if kind == 6:
            return [self.value(depth - 1) for _ in range(r.randrange(3))]
        if kind == 7:
            return {name: self.value(depth - 1) for name in r.sample(NAMES, r.randrange(3))}
        return r.choice((r.choice(NUMBERS), r.choice(STRINGS), r.choice(STRINGS), None, True, False))

    def listed(self, made: dict[str, Any], _: int) -> None:
        if self.at_least("draft-06") and self.rng.random() < 0.4:
            made["const"] = self.value()
        else:
            values: list[Any] = []
            for _ in range(self.rng.randrange(1, 5)):
                one = self.value()
                if repr(one) not in map(repr, values):
                    values.append(one)
            made["enum"] = values

    def chosen(self, made: dict[str, Any], _: int) -> None:
        made["type"] = self.rng.choice(TYPES) if self.rng.random() < 0.5 else self.rng.sample(TYPES, 2)

    def array(self, made: dict[str, Any], depth: int) -> None:
        r = self.rng
        tuples, more = ("prefixItems", "items") if self.at_least("2020-12") else ("items", "additionalItems")
        options: dict[str, Callable[[], Any]] = {
            "items": lambda: self.below(depth),
            "minItems": lambda: r.randrange(3),
            "maxItems": lambda: r.randrange(4),
            "uniqueItems": lambda: True,
        }
        if self.at_least("draft-06"):
            options["contains"] = lambda: self.below(depth)
        self.some(made, options)
        if r.random() < 0.3:
            made[tuples] = [self.below(depth) for _ in range(r.randrange(1, 3))]
            if r.random() < 0.5:
                made[more] = self.below(depth) if r.random() < 0.6 else (not self.at_least("draft-06") or False)
        if "contains" in made and self.at_least("2019-09"):
            if r.random() < 0.4:
                made["minContains"] = r.randrange(3)
            if r.random() < 0.4:
                made["maxContains"] = r.randrange(1, 3)
        if self.at_least("2020-12") and r.random() < 0.1:  # 2019-09: the judge counts `contains` in
            made["unevaluatedItems"] = self.below(depth)
        if r.random() < 0.6:
            made["type"] = "array"

    def object(self, made: dict[str, Any], depth: int) -> None:
        r = self.rng
        names = r.sample(NAMES, r.randrange(1, 4))
        options: dict[str, Callable[[], Any]] = {
            "properties": lambda: {name: self.below(depth) for name in names},
            "required": lambda: r.sample(NAMES, r.randrange(1, 3)),
            "additionalProperties": lambda: self.below(depth) if r.random() < 0.5 else False,
            "patternProperties": lambda: {r.choice(PATTERNS): self.below(depth) for _ in range(r.randrange(1, 3))},
            "minProperties": lambda: r.randrange(4),
            "maxProperties": lambda: r.randrange(1, 4),
        }
        if self.at_least("draft-06"):
            options["propertyNames"] = lambda: r.choice(({"maxLength": 2}, {"pattern": "^a"}, {"enum": ["a", "b"]}))
        old = {"dependencies": lambda: {r.choice(NAMES): r.choice((["b"], self.schema(depth)))}}
        new = {
            "dependentRequired": lambda: {r.choice(NAMES): r.sample(NAMES, r.randrange(1, 3))},
            "dependentSchemas": lambda: {r.choice(NAMES): self.schema(depth)},
        }
        options |= new if self.at_least("2019-09") else old
        self.some(made, options)
        if r.random() < 0.5:
            made.setdefault("properties", options["properties"]())
        if self.at_least("2020-12") and r.random() < 0.1:  # for 2019-09 the judge overlooks additionalProperties
            made["unevaluatedProperties"] = self.below(depth) if r.random() < 0.5 else False
        if r.random() < 0.6:
            made["type"] = "object"

    def combined(self, made: dict[str, Any], depth: int) -> None:
        r = self.rng
        kinds = ["allOf", "anyOf", "oneOf", "not", *(["if"] if self.at_least("draft-07") else [])]
        kind = r.choice(kinds)
        if kind == "not":
            made["not"] = self.schema(depth)
        elif kind == "if":
            made["if"] = self.schema(depth)
            for name in r.sample(("then", "else"), r.randrange(1, 3)):
                made[name] = self.schema(depth)
        else:
            made[kind] = [self.schema(depth) for _ in range(r.randrange(1, 4))]


def values(rng: random.Random, schema: Any, count: int) -> list[Any]:
    """Returns values derived from the content of the schema, and unrelated values."""
    drawer, seen = Drawer(rng), list(_constants(schema))
    made = [copy.deepcopy(rng.choice(seen)) if seen and rng.random() < 0.4 else drawer.value(2) for _ in range(count)]
    return [mutated(rng, value, drawer) if rng.random() < 0.5 else value for value in made]


def _constants(schema: Any) -> list[Any]:
    """Returns the values and numbers in a schema."""
    found, left = [], [schema]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            found += [*part.get("enum", []), *([part["const"]] if "const" in part else [])]
            found += [one for one in part.values() if isinstance(one, int | float)]
            left += part.values()
        elif isinstance(part, list):
            left += part
    return found


def mutated(rng: random.Random, value: Any, drawer: Drawer | None = None) -> Any:
    """A value with a small change somewhere in it."""
    drawer, value = drawer or Drawer(rng), copy.deepcopy(value)
    if isinstance(value, dict) and value and rng.random() < 0.7:
        key = rng.choice(list(value))
        if rng.random() < 0.3:
            del value[key]
        elif rng.random() < 0.7:
            value[key] = mutated(rng, value[key], drawer)
        else:
            value[rng.choice(NAMES)] = drawer.value()
        return value
    if isinstance(value, list) and rng.random() < 0.7:
        kind = rng.randrange(4)
        if kind == 0 or not value:
            value.insert(rng.randrange(len(value) + 1), drawer.value())
        elif kind == 1:
            value.append(copy.deepcopy(rng.choice(value)))
        elif kind == 2:
            del value[rng.randrange(len(value))]
        else:
            at = rng.randrange(len(value))
            value[at] = mutated(rng, value[at], drawer)
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.7:
        return rng.choice((value + 1, value - 1, value * 2, value + 0.5, -value))
    if isinstance(value, str) and rng.random() < 0.7:
        return rng.choice((value + "a", value[:-1], "a" + value, value * 2))
    return drawer.value()
