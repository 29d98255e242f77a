"""Random schemas compared with an independent validator: exactly the valid instances are allowed."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings, strategies as st

from guideway.constraints import JsonSchema
from guideway.errors import UnsupportedError
from tests.helpers.grammar_sampler import Sampler
from tests.helpers.reference_grammar import fits
from tests.unit.frontends.json_schema.test_json_schema import closed, valid, written

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.one_of(st.integers(-120, 120), st.sampled_from([0.5, -0.25, 1.5, 99.75, 100.01, -100.5, 0.001]))
COUNTS = st.integers(0, 3)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, st.text("ab1é\n", max_size=4), st.just("2024-02-29"))
VALUES = st.recursive(
    SCALARS, lambda v: st.one_of(st.lists(v, max_size=4), st.dictionaries(NAMES, v, max_size=3)), max_leaves=6
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.one_of(TYPES, st.lists(TYPES, min_size=1, max_size=3, unique=True)),
        "minimum": NUMBERS,
        "maximum": NUMBERS,
        "exclusiveMinimum": NUMBERS,
        "exclusiveMaximum": NUMBERS,
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "pattern": st.sampled_from(["a", "^a", "b$", "^[ab]+$", "1|^$", "^.{2}$"]),
        "format": st.just("date"),
        "minItems": COUNTS,
        "maxItems": COUNTS,
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": inner,
    }
    unions = st.fixed_dictionaries(
        {"anyOf": st.lists(inner, min_size=1, max_size=3)}, optional={"type": keywords["type"]}
    )
    scalars = {name: keywords[name] for name in ("type", "minimum", "maximum", "minLength", "pattern")}
    given_values = st.fixed_dictionaries({"enum": st.lists(SCALARS, max_size=5)}, optional=scalars)
    references = st.sampled_from([{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two", "type": "array"}])
    return st.one_of(st.fixed_dictionaries({}, optional=keywords), unions, given_values, references)


LEAVES = schemas(st.booleans())
DOCUMENTS = st.builds(
    lambda schema, one, two: {**schema, "$defs": {"one": one, "two": two}},
    schemas(schemas(LEAVES)),
    LEAVES.filter(lambda schema: "$ref" not in str(schema)),
    LEAVES.filter(lambda schema: "$ref" not in str(schema)),
)


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.lists(VALUES, min_size=1, max_size=12))
def test_allows_exactly_what_is_valid(schema: Any, values: list[Any]) -> None:
    grammar = JsonSchema(schema, key_order="any").grammar()  # the values come with their keys in any order
    strict = closed(schema)
    for value in values:
        assert fits(grammar, written(value)) == valid(strict, value), value
    for seed in range(4):
        text = Sampler(grammar, seed).sample(tries=5)
        assert text is None or (valid(strict, json.loads(text)) and fits(grammar, text)), text


@settings(max_examples=40, deadline=None)
@given(DOCUMENTS, st.lists(VALUES, min_size=1, max_size=6))
def test_exact_profile(schema: Any, values: list[Any]) -> None:
    try:
        grammar = JsonSchema(schema, profile="exact").grammar()
    except UnsupportedError:
        return
    for value in values:
        assert fits(grammar, json.dumps(value, indent=1)) == valid(schema, value), value
