"""The automaton of a constraint accepts the same texts as its grammar."""

from __future__ import annotations

import json
from typing import Any

import pytest

import guideway as gw
from guideway.errors import UnsatisfiableError
from tests.helpers.byte_tokens import BYTES, accepts
from tests.helpers.reference_grammar import matches
from tests.unit.frontends.json_schema.test_json_schema import SCHEMAS, VALUES, closed, valid, written
from tests.unit.frontends.regex.test_regex import EXACT, TEXTS


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:70])
def test_generation_profile(schema: Any) -> None:
    automaton = gw.compile(gw.JsonSchema(schema, unknown_keywords="ignore"), BYTES)
    for value in VALUES:
        assert accepts(automaton, written(value)) == valid(closed(schema), value), value


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:70])
def test_exact_profile(schema: Any) -> None:
    try:
        automaton = gw.compile(gw.JsonSchema(schema, profile="exact", unknown_keywords="ignore"), BYTES)
    except gw.errors.UnsupportedError:  # numbers of every spelling
        return
    for value in VALUES:
        for text in (written(value), "\n" + json.dumps(value, indent=1).replace("/", "\\/") + " "):
            assert accepts(automaton, text) == valid(schema, value), text


@pytest.mark.parametrize("pattern", EXACT)
def test_patterns(pattern: str) -> None:
    source = gw.Regex(pattern)
    automaton = gw.compile(source, BYTES)
    for text in TEXTS:
        assert accepts(automaton, text) == matches(source.regular(), text), text


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "array", "minItems": 2, "maxItems": 1},
        {"type": "string", "minLength": 3, "pattern": "^a?$"},
        {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]},
    ],
    ids=json.dumps,
)
def test_unsatisfiable(schema: Any) -> None:
    with pytest.raises(UnsatisfiableError):
        gw.compile(gw.JsonSchema(schema), BYTES)
