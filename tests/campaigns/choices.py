"""Random schemas that combine choices over objects whose properties overlap, and instances of them.

    python -m tests.campaigns.choices [--count 10000] [--seed 0]

Every verdict is that of the `jsonschema` package; every text that the masks lead to is valid.
"""

from __future__ import annotations

import argparse
import json
import random
from typing import Any

import guideway as gw
from guideway.frontends.json_schema import dnf
from tests.property.judge import Judge
from tests.property.spellings import respelled

from .walks import VOCABULARY, Tally, accepts, walked

KEYS = ("a", "b", "c", "kind")
SCALARS: tuple[Any, ...] = (None, True, 0, 1, 5, "x", "y", "zz", [], ["x"], {})
VALUES: tuple[Any, ...] = (
    *({"const": "x"}, {"const": "y"}, {"enum": ["x", "zz", 1]}, {"enum": [None, "y"]}),
    *({"type": "integer"}, {"type": "string"}, {"type": ["string", "null"]}, {"minimum": 1}, {"maxLength": 1}),
    *({"type": "object"}, {"pattern": "^x"}, {"pattern": "z$"}, {"type": "array"}, {"items": {"type": "string"}}),
    *({}, True, False, {"not": {"type": "integer"}}, {"properties": {"a": {"const": "x"}}, "required": ["a"]}),
)


class Drawer:
    """Draws the schemas of one seed. `branches`: how many a choice has at most."""

    def __init__(self, rng: random.Random, branches: int) -> None:
        self._rng = rng
        self._branches = branches

    def schema(self, depth: int) -> Any:
        """A schema with choices nested to a maximum depth."""
        rng = self._rng
        made: dict[str, Any] = self._plain()
        if depth:
            for keyword in rng.sample(("anyOf", "oneOf", "not", "if", "allOf", "dependencies"), rng.choice((1, 1, 2))):
                made.update(self._choice(keyword, depth - 1))
        return made

    def _plain(self) -> dict[str, Any]:
        rng = self._rng
        made: dict[str, Any] = {}
        if rng.random() < 0.3:
            made["type"] = "object"
        if rng.random() < 0.8:
            made["properties"] = {key: rng.choice(VALUES) for key in rng.sample(KEYS, rng.randint(1, 3))}
            if "kind" not in made["properties"] and rng.random() < 0.5:
                made["properties"]["kind"] = {"const": rng.choice(("x", "y", "zz"))}
        if rng.random() < 0.4:
            made["required"] = rng.sample(KEYS, rng.choice((1, 1, 2)))
        if rng.random() < 0.3:
            made["additionalProperties"] = rng.choice((False, False, {"type": "integer"}, {"const": "x"}))
        if rng.random() < 0.1:
            made["patternProperties"] = {rng.choice(("^[a-c]$", "d")): rng.choice(VALUES)}
        if rng.random() < 0.1:
            made["minProperties"] = rng.randint(1, 3)
        if rng.random() < 0.1:
            made["maxProperties"] = rng.randint(1, 3)
        if rng.random() < 0.05:
            made["propertyNames"] = {"enum": ["a", "kind", "d"]}
        if rng.random() < 0.05:
            made["enum"] = [{"a": "x"}, {"kind": "x", "a": 1}, "x", 1]
        return made

    def _choice(self, keyword: str, depth: int) -> dict[str, Any]:
        rng = self._rng
        if keyword in ("anyOf", "oneOf", "allOf"):
            count = rng.randint(2, self._branches)
            if rng.random() < 0.3:
                return {keyword: [self._tagged(i) for i in range(count)]}
            return {keyword: [self.schema(rng.randint(0, depth)) for _ in range(count)]}
        if keyword == "not":
            return {"not": self.schema(depth)}
        if keyword == "if":
            parts = {"if": self.schema(0), "then": self.schema(depth), "else": self.schema(depth)}
            parts.pop(rng.choice(("then", "else", "", "")), None)
            return parts
        keys = rng.sample(KEYS, rng.randint(1, 3))
        return {"dependencies": {key: rng.choice(([rng.choice(KEYS)], self.schema(depth))) for key in keys}}

    def _tagged(self, number: int) -> dict[str, Any]:
        """A branch as models write them: a discriminator that may be absent."""
        rng = self._rng
        made = {"kind": {"const": ("x", "y", "zz", f"k{number}")[min(number, 3)]}}
        made.update((key, rng.choice(VALUES)) for key in rng.sample(KEYS[:3], rng.randint(0, 3)))
        whole: dict[str, Any] = {"type": "object", "properties": made}
        if rng.random() < 0.5:
            whole["required"] = rng.sample(KEYS, 1)
        return whole

    def instance(self) -> Any:
        """Mostly an object of the keys that the schemas name."""
        rng = self._rng
        if rng.random() < 0.07:
            return rng.choice(SCALARS)
        keys = rng.sample((*KEYS, "d", "e"), rng.choice((0, 1, 1, 2, 2, 3, 4)))
        return {key: {"a": rng.choice(SCALARS)} if rng.random() < 0.15 else rng.choice(SCALARS) for key in keys}


def check(seed: int, tally: Tally, first: int | None = None, branches: int = 3, instances: int = 40) -> None:
    """One schema. `first`: how long the search for alternatives is before objects are divided by cases."""
    rng = random.Random(seed)
    drawer = Drawer(rng, branches)
    schema = drawer.schema(rng.randint(1, 2))
    tally.counts["schemas"] += 1
    kept = dnf.MAX_STEPS_EARLY
    dnf.MAX_STEPS_EARLY = kept if first is None else first
    try:
        dialect = "draft-07"
        source = gw.JsonSchema(schema, profile="exact", dialect=dialect)
        automaton = gw.compile(source, VOCABULARY, cache=False)
    except gw.errors.UnsatisfiableError:
        automaton = None
    except gw.errors.ConstraintError as error:
        tally.counts[type(error).__name__] += 1
        return
    finally:
        dnf.MAX_STEPS_EARLY = kept
    judge = Judge({"$schema": "http://json-schema.org/draft-07/schema#", **schema})
    for _ in range(instances):
        value = drawer.instance()
        good = judge(json.dumps(value))
        taken = automaton is not None and accepts(automaton, respelled(rng, value))
        tally.counts["valid" if good else "invalid"] += 1
        if taken != good:
            tally.fault("valid, but refused" if good else "taken, but invalid", schema, seed, json.dumps(value))
    for _ in range(2 if automaton is not None else 0):
        try:
            text = walked(automaton.matcher(), rng, rng.choice((3, 12, 40)))
            tally.counts["walks"] += 1
            if not judge(text):
                tally.fault("allowed, but invalid", schema, seed, text)
        except LookupError as error:
            tally.fault(str(error), schema, seed)
        except (ArithmeticError, RecursionError):
            tally.counts["unjudged"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int)
    parser.add_argument("--branches", type=int, default=3)
    options = parser.parse_args()
    tally = Tally()
    for seed in range(options.seed, options.seed + options.count):
        check(seed, tally, options.first if seed % 2 else None, options.branches)
        if len(tally.faults) > 5:
            break
    print(dict(tally.counts))
    for fault in tally.faults:
        print(json.dumps(fault))
    raise SystemExit(bool(tally.faults))


if __name__ == "__main__":
    main()
