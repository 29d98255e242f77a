"""The fast path for simple schemas gives the same grammar as the general path."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from guideway.constraints import JsonSchema, json_schema as source
from guideway.errors import ConstraintError, InvalidConstraintError
from guideway.frontends.json_schema.dnf import Expander
from guideway.frontends.json_schema.keywords import dialect_named
from guideway.frontends.json_schema.lower import Lowering
from guideway.frontends.json_schema.references import Documents
from guideway.frontends.json_schema.style import Profile, Style, make_style
from guideway.grammar.nodes import Grammar, children, renumbered
from guideway.jsontext.copying import copy_schema
from tests.helpers.counts import counts

TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
NAMES = ["a", "b", "c/d", "~e", "é"]


class Drawer:
    """Documents out of what most schemas say, and some of what few say; now and then a value of the wrong shape."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def document(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"in": self.schema(3)},
            "$defs": {"one": self.schema(1), "two": self.schema(1)},
        }

    def schema(self, depth: int) -> Any:
        """One schema that nests so deep."""
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice([True, False, {}, {"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two", "title": "two"}])
        if depth and rng.random() < 0.2:
            branches = [self.schema(depth - 1) for _ in range(rng.randint(1, 3))]
            return {rng.choice(["anyOf", "oneOf"]): branches}
        made: dict[str, Any] = {}
        if rng.random() < 0.9:
            made["type"] = rng.choice(TYPES) if rng.random() < 0.8 else rng.sample(TYPES, rng.randint(1, 3))
        for name, value in self.keywords(depth).items():
            if rng.random() < 0.15 or (name in ("properties", "items") and name[:1] in str(made.get("type"))):
                made[name] = value if rng.random() < 0.99 else rng.choice([None, 5, "x", [1], -1])
        return made

    def keywords(self, depth: int) -> dict[str, Any]:
        rng, inner = self.rng, max(depth - 1, 0)
        few = {name: self.schema(inner) if depth else {"type": "null"} for name in rng.sample(NAMES, rng.randint(0, 3))}
        found: dict[str, Any] = {
            "properties": few,
            "required": [rng.choice(NAMES) for _ in range(rng.randint(0, 2))],
            "additionalProperties": rng.choice([True, False, {"type": "string"}]),
            "patternProperties": {
                rng.choice(["^x", "b", "^(a|b)$", "("]): rng.choice([True, False, {"type": "integer"}])
                for _ in range(rng.choice([1, 1, 1, 2]))
            },
            "minProperties": rng.randint(0, 2),
            "maxProperties": rng.randint(0, 3),
            "uniqueItems": rng.random() < 0.7,
            "additionalItems": rng.choice([True, False, {"type": "string"}]),
            "items": self.schema(inner) if depth else {"type": "string"},
            "minItems": rng.randint(0, 2),
            "maxItems": rng.randint(0, 3),
            "minLength": rng.randint(0, 2),
            "maxLength": rng.randint(0, 4),
            "pattern": rng.choice(["^a", "^(a|b)$", "(?=x)y", "("]),
            "format": rng.choice(["date", "int32"]),
            "minimum": rng.choice([0, 1.5, -3]),
            "maximum": rng.choice([0, 7, 2.5]),
            "multipleOf": rng.choice([2, 0.5]),
            "enum": rng.choice(
                [["a", "b", "a"], [None, True, "x"], [1, "x"], [2, 1.5, True, "x", 2], [3, 1], [False], []]
            ),
            "const": rng.choice(["a", 2, 2.5, None, False, [1]]),
            "title": "a title",
        }
        return found


STYLES = [
    make_style("exact", None, None, None, None, "known"),
    make_style("generation", None, None, None, None, "known"),
]


NAMED = ["2020-12", "2019-09", "draft-07", "draft-06", "draft-04"]


def _lowered(schema: Any, profile: Profile, dialect: str | None = None) -> Grammar:
    return JsonSchema(schema, profile=profile, dialect=dialect, unknown_keywords="ignore").grammar()


Made = Grammar | type[ConstraintError]


def made(lower: Callable[[], Grammar]) -> Made:
    """The grammar, or how it is refused."""
    try:
        return lower()
    except ConstraintError as problem:
        return type(problem)


def difference(left: Grammar, right: Grammar) -> str:
    """Where two grammars part, followed from their roots; empty: nowhere."""
    seen, todo = set[tuple[int, int]](), [(left.root, right.root)]
    while todo:
        pair = todo.pop()
        if pair in seen:
            continue
        seen.add(pair)
        one, other = left.nodes[pair[0]], right.nodes[pair[1]]
        assert one is not None
        assert other is not None
        parts, others = children(one), children(other)
        if len(parts) != len(others) or (
            renumbered(one, dict.fromkeys(parts, 0)) != renumbered(other, dict.fromkeys(others, 0))
        ):
            return f"{one} is not {other} (at {left.place(pair[0])})"
        todo += zip(parts, others, strict=True)
    return ""


@counts(500, 1500)
@pytest.mark.parametrize("style", STYLES, ids=["exact", "generation"])
def test_fast_path_gives_the_same_grammar(style: Style, count: int) -> None:
    agreed = refused = 0
    for seed in range(count):
        schema, dialect = Drawer(seed).document(), NAMED[seed % len(NAMED)]
        documents = Documents(copy_schema(schema)[0], dialect_named(dialect), {}, False)
        expected = made(Lowering(Expander(documents), style).run)
        profile: Profile = "exact" if style is STYLES[0] else "generation"
        grammar = made(partial(_lowered, schema, profile, dialect))
        if not isinstance(grammar, Grammar) or not isinstance(expected, Grammar):
            assert grammar is expected, (seed, schema)
            refused += 1
            continue
        assert not difference(grammar, expected), (seed, schema)
        agreed += 1
    assert agreed > 7 * count // 15
    assert refused > count // 30


def test_most_documents_need_no_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    def expander(documents: Documents) -> Expander:
        raise AssertionError("a closer look")

    monkeypatch.setattr(source, "Expander", expander)
    names = {"type": ["string", "null"], "maxLength": 5}
    few = {
        "a": names,
        "b": {"enum": ["x"]},
        "c": {"$ref": "#/$defs/n"},
        "d": {"anyOf": [{"type": "null"}, names | {"type": "string"}]},
    }
    JsonSchema(
        {"type": "object", "properties": few, "required": ["a"], "$defs": {"n": {"type": "array", "items": names}}}
    )
    with pytest.raises(AssertionError, match="a closer look"):
        JsonSchema({"type": "object", "patternProperties": {"^x": names, "^y": names}})


@pytest.mark.parametrize("values", [[None], [True, "x"], ["x", None]])
def test_enum_of_several_types_in_one_of(values: list[Any]) -> None:
    for other in ({"type": "null"}, {"type": "boolean"}, {"type": "string"}, {"type": "object"}):
        schema = {"type": "array", "items": {"oneOf": [{"enum": values}, other]}}
        documents = Documents(copy_schema(schema)[0], None, {}, False)
        expected = Lowering(Expander(documents), STYLES[1]).run()
        assert not difference(_lowered(schema, "generation"), expected), other


def test_any_of_with_an_unconstrained_branch_is_not_refused() -> None:
    hard = {"type": "array", "uniqueItems": True, "items": {"type": "number"}, "contains": {"minimum": 3}}
    for free in (True, {}, {"title": "any"}):
        for one in ({"type": "array", "items": hard}, {"type": "object", "properties": {"a": hard}}):
            assert JsonSchema({"anyOf": [one, free]}).parse("3") == 3


def test_places_of_nodes() -> None:
    schema = {"type": "object", "properties": {"a/b": {"type": "array", "items": {"enum": ["~"]}}}}
    grammar = JsonSchema(schema).grammar()
    places = {grammar.place(number) for number in range(len(grammar.nodes))}
    assert {"", "/properties/a~1b", "/properties/a~1b/items"} <= places


def test_a_contract_has_every_place() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}}
    told = JsonSchema(schema).keyword_report()
    assert ("/properties/a", "type", "enforced") in told
    assert ("/properties/b", "$ref", "enforced") in told


def test_a_contract_says_what_is_wrong_where_nothing_was_read() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["integer", {}]}}, "anyOf": [{"const": 3}, False]}
    with pytest.raises(InvalidConstraintError, match="/properties/a/type"):
        JsonSchema(schema).keyword_report()
